package server

import (
	"fmt"
	"sort"
	"strings"
	"time"

	command "github.com/vmware/govmomi/cli/esx"
	"github.com/vmware/govmomi/simulator"
	simulated "github.com/vmware/govmomi/simulator/esx"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/esxi"
)

// esxcliCommands are the lab's commands. Their fields are those that esxcli prints (known, not verified by this lab).
var esxcliCommands = []esxcliCommand{
	{group: "system.settings.kernel", name: "list", help: "List VMkernel kernel settings.", kind: "KernelSetting", run: kernelList,
		param: []command.CommandInfoParam{parameter("option", "-o")},
		shown: []string{"Name", "Type", "Configured", "Runtime", "Default", "Description"}},
	{group: "system.settings.kernel", name: "set", help: "Set a VMKernel setting.", run: kernelSet, how: esxi.Silent,
		param: []command.CommandInfoParam{parameter("setting", "-s"), parameter("value", "-v")}},
	{group: "graphics.host", name: "get", help: "Get host graphics properties.", kind: "GraphicsHost", run: graphicsGet,
		shown: []string{"Default Graphics Type", "Shared Passthru Assignment Policy"}, how: esxi.Fields},
	{group: "graphics.host", name: "set", help: "Set host graphics properties.", run: graphicsSet, how: esxi.Silent, optional: true,
		param: []command.CommandInfoParam{parameter("default-type", "-d"), parameter("shared-passthru-assignment-policy", "-a")}},
	{group: "graphics.device", name: "list", help: "Lists the graphics devices of the system.", kind: "GraphicsDevice", run: graphicsList,
		shown: []string{"Address", "Vendor Name", "Device Name", "Module Name", "Graphics Type", "Memory Size in KB", "Number of VMs"}, how: esxi.Records},
	{group: "hardware.pci", name: "list", help: "List the PCI devices of the host.", kind: "PciDevice", run: pciList,
		shown: []string{"Address", "Bus", "Slot", "Function", "Vendor Name", "Device Name", "Vendor ID", "Device ID", "SubVendor ID",
			"SubDevice ID", "Device Class", "Device Class Name", "Parent Device", "NUMA Node"}, how: esxi.Records},
	{group: "software.vib", name: "list", help: "List the installed VIB packages.", kind: "SummaryExt", run: vibList,
		shown: []string{"Name", "Version", "Vendor", "Acceptance Level", "Install Date"}},
	{group: "system.maintenanceMode", name: "get", help: "Get the maintenance mode state of the system.", kind: "MaintenanceMode", run: maintenanceGet,
		shown: []string{"Mode"}, how: esxi.Bare},
	{group: "system.module.parameters", name: "list", help: "List the module options for a given module.", kind: "ModuleParameter", run: moduleList,
		param: []command.CommandInfoParam{parameter("module", "-m")}, shown: []string{"Name", "Type", "Value", "Description"}},
	{group: "system.module.parameters", name: "set", help: "Allows setting the load time parameters for the given module.", run: moduleSet, how: esxi.Silent,
		param: []command.CommandInfoParam{parameter("module", "-m"), parameter("parameter-string", "-p")}},
	{group: "system.shutdown", name: "reboot", help: "Reboot the system. The host must be in maintenance mode.", run: shutdownReboot, how: esxi.Silent,
		param: []command.CommandInfoParam{parameter("reason", "-r")}},
	{group: "system.version", name: "get", help: "Display the product name, version and build information.", kind: "SystemVersion", run: versionGet,
		shown: []string{"Product", "Version", "Build", "Update", "Patch"}, how: esxi.Fields},
}

func parameter(name, short string) command.CommandInfoParam {
	return command.CommandInfoParam{
		CommandInfoItem: command.CommandInfoItem{Name: name, DisplayName: name, Help: name}, Aliases: []string{short, "--" + name},
	}
}

// The descriptions let govc's host.esxcli find the commands, which it asks the host about first.
func init() {
	for _, own := range esxcliCommands {
		describe(own)
	}
}

func describe(own esxcliCommand) {
	method := command.CommandInfoMethod{
		CommandInfoItem: command.CommandInfoItem{Name: own.name, DisplayName: own.name, Help: own.help}, Param: own.param,
		Hints: command.CommandInfoHints{{Key: "formatter", Value: "table"}},
	}
	for i := range simulated.CommandInfo {
		if simulated.CommandInfo[i].Name == own.group {
			simulated.CommandInfo[i].Method = append(withoutMethod(simulated.CommandInfo[i].Method, own.name), method)
			return
		}
	}
	words := strings.Split(own.group, ".")
	simulated.CommandInfo = append(simulated.CommandInfo, command.CommandInfo{
		CommandInfoItem: command.CommandInfoItem{Name: own.group, DisplayName: words[len(words)-1], Help: own.help},
		Method:          []command.CommandInfoMethod{method},
	})
}

func withoutMethod(methods []command.CommandInfoMethod, name string) []command.CommandInfoMethod {
	var kept []command.CommandInfoMethod
	for _, method := range methods {
		if method.Name != name {
			kept = append(kept, method)
		}
	}
	return kept
}

func values(pairs ...string) command.Values {
	row := command.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		row[pairs[i]] = []string{pairs[i+1]}
	}
	return row
}

// capital writes TRUE and FALSE, as esxcli does for kernel settings.
func capital(value bool) string { return strings.ToUpper(fmt.Sprint(value)) }

func kernelList(l *Lab, _ *simulator.Context, machine *esx, arguments command.Values) ([]command.Values, *esxcliError) {
	wanted := arguments.Value("option")
	var rows []command.Values
	for name, option := range l.view(machine).Kernel {
		if wanted == "" || wanted == name {
			rows = append(rows, values("Name", name, "Type", "Bool", "Configured", capital(option.Configured),
				"Runtime", capital(option.Runtime), "Default", capital(option.Default), "Description", option.Description))
		}
	}
	if wanted != "" && len(rows) == 0 {
		return nil, &esxcliError{"Invalid Key Name: " + wanted}
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i].Value("Name") < rows[j].Value("Name") })
	return rows, nil
}

func kernelSet(l *Lab, ctx *simulator.Context, machine *esx, arguments command.Values) ([]command.Values, *esxcliError) {
	name, value := arguments.Value("setting"), strings.ToUpper(arguments.Value("value"))
	if value != "TRUE" && value != "FALSE" {
		return nil, &esxcliError{fmt.Sprintf("Invalid value %s for setting %s", arguments.Value("value"), name)}
	}
	if !l.setKernel(ctx, machine, name, value == "TRUE") {
		return nil, &esxcliError{"Invalid Key Name: " + name}
	}
	return nil, nil
}

func graphicsGet(l *Lab, _ *simulator.Context, machine *esx, _ command.Values) ([]command.Values, *esxcliError) {
	view := l.view(machine)
	policy := strings.ToUpper(view.Policy[:1]) + view.Policy[1:]
	return []command.Values{values("DefaultGraphicsType", graphicsName(view.GraphicsType), "SharedPassthruAssignmentPolicy", policy)}, nil
}

func pciList(l *Lab, _ *simulator.Context, machine *esx, _ command.Values) ([]command.Values, *esxcliError) {
	view := l.view(machine)
	nodes := map[string]int{}
	for _, node := range numaInfo(view).NumaNode {
		for _, id := range node.PciId {
			nodes[id] = int(node.TypeId)
		}
	}
	var rows []command.Values
	for _, device := range pciDevices(view) {
		rows = append(rows, pciRow(device, nodes[device.Id]))
	}
	return rows, nil
}

func pciRow(device types.HostPciDevice, node int) command.Values {
	hex := func(id int16) string { return fmt.Sprintf("0x%04x", uint16(id)) }
	return values("Address", device.Id, "Bus", fmt.Sprintf("0x%02x", device.Bus), "Slot", fmt.Sprintf("0x%02x", device.Slot),
		"Function", fmt.Sprintf("0x%x", device.Function), "VendorName", device.VendorName, "DeviceName", device.DeviceName,
		"VendorID", hex(device.VendorId), "DeviceID", hex(device.DeviceId), "SubVendorID", hex(device.SubVendorId),
		"SubDeviceID", hex(device.SubDeviceId), "DeviceClass", hex(device.ClassId), "DeviceClassName", device.DeviceClassName,
		"ParentDevice", device.ParentBridge, "NUMANode", fmt.Sprint(node))
}

// vibList prints what the image configuration manager tells.
func vibList(l *Lab, _ *simulator.Context, machine *esx, _ command.Values) ([]command.Values, *esxcliError) {
	levels := map[string]string{"vmware_certified": "VMwareCertified", "vmware_accepted": "VMwareAccepted", "partner": "PartnerSupported"}
	var rows []command.Values
	for _, found := range l.installed(machine) {
		rows = append(rows, values("Name", found.Name, "Version", found.Version, "Vendor", found.Vendor,
			"AcceptanceLevel", levels[found.AcceptanceLevel], "InstallDate", found.CreationDate.Format(time.DateOnly),
			"ID", found.Vendor+"_"+found.Type+"_"+found.Name+"_"+found.Version))
	}
	return rows, nil
}
