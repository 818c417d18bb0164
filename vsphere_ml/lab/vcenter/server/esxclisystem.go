package server

import (
	"fmt"
	"strconv"
	"strings"

	command "github.com/vmware/govmomi/cli/esx"
	"github.com/vmware/govmomi/simulator"

	"vsml.dev/lab/vcenter/rack"
)

func graphicsList(l *Lab, _ *simulator.Context, machine *esx, _ command.Values) ([]command.Values, *esxcliError) {
	view := l.view(machine)
	var rows []command.Values
	for _, gpu := range view.GPUs {
		rows = append(rows, values("Address", gpu.Address, "VendorName", gpu.Board.VendorName(), "DeviceName", gpu.Board.DeviceName,
			"ModuleName", "None", "GraphicsType", graphicsName(gpu.GraphicsType),
			"MemorySizeinKB", strconv.Itoa(gpu.Board.MemoryMiB*1024), "NumberofVMs", strconv.Itoa(len(view.VMs(gpu.Address)))))
	}
	return rows, nil
}

// graphicsName is a graphics type of the vSphere API as esxcli spells it.
func graphicsName(graphics string) string {
	return map[string]string{"sharedDirect": "SharedPassthru", "shared": "Shared"}[graphics]
}

func graphicsSet(l *Lab, ctx *simulator.Context, machine *esx, arguments command.Values) ([]command.Values, *esxcliError) {
	graphics, policy := arguments.Value("default-type"), strings.ToLower(arguments.Value("shared-passthru-assignment-policy"))
	known := map[string]string{"": "", "Shared": "shared", "SharedPassthru": rack.SharedDirect}
	kind, ok := known[graphics]
	if !ok || policy != "" && policy != rack.Performance && policy != rack.Consolidation {
		return nil, &esxcliError{fmt.Sprintf("Invalid value %s%s", graphics, policy)}
	}
	if err := l.Rack.SetGraphics(machine.name, kind, policy); err != nil {
		return nil, &esxcliError{err.Error()}
	}
	l.refresh(ctx, machine.name)
	return nil, nil
}

func maintenanceGet(l *Lab, ctx *simulator.Context, machine *esx, _ command.Values) ([]command.Values, *esxcliError) {
	mode := "Disabled"
	if (&host{machine.system, l}).inMaintenance(ctx) {
		mode = "Enabled"
	}
	return []command.Values{values("Mode", mode)}, nil
}

func shutdownReboot(l *Lab, ctx *simulator.Context, machine *esx, _ command.Values) ([]command.Values, *esxcliError) {
	system := &host{machine.system, l}
	if !system.inMaintenance(ctx) || !system.goDown(ctx, true) {
		return nil, &esxcliError{"The host must be in maintenance mode, and not going down already"}
	}
	return nil, nil
}

func versionGet(_ *Lab, _ *simulator.Context, machine *esx, _ command.Values) ([]command.Values, *esxcliError) {
	version := machine.model.ESXiVersion
	update := "0"
	if parts := strings.Split(version, "."); len(parts) > 2 {
		update = parts[2]
	}
	return []command.Values{values("Product", "VMware ESXi", "Version", version, "Build", "Releasebuild-"+machine.model.ESXiBuild,
		"Update", update, "Patch", "0")}, nil
}
