package server

import (
	"fmt"
	"strings"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// imageConfig is a host's image configuration manager, which the simulator has none of.
type imageConfig struct {
	mo.HostImageConfigManager

	lab     *Lab
	machine *esx
}

// Reference is the manager's own.
func (m *imageConfig) Reference() types.ManagedObjectReference { return m.Self }

// FetchSoftwarePackages lists the VIBs of the host.
func (m *imageConfig) FetchSoftwarePackages(ctx *simulator.Context, _ *types.FetchSoftwarePackages) soap.HasFault {
	switch fault := m.lab.checkHost(ctx, m.machine).(type) {
	case *types.HostNotReachable, *types.HostNotConnected:
		return &methods.FetchSoftwarePackagesBody{Fault_: simulator.Fault(sentence(fault), fault)}
	}
	return &methods.FetchSoftwarePackagesBody{Res: &types.FetchSoftwarePackagesResponse{Returnval: m.lab.installed(m.machine)}}
}

// installed are the VIBs that say something: ESXi itself, and the vGPU manager and NVIDIA's firmware tools where the
// topology has them. The names of the firmware tools are known, not verified.
func (l *Lab) installed(machine *esx) []types.SoftwarePackage {
	esxi := machine.model.ESXiVersion
	found := []types.SoftwarePackage{
		vib("esx-base", esxi+"-"+machine.model.ESXiBuild, "VMware", "vmware_certified", "VMware ESXi"),
	}
	if driver := machine.model.VGPUManager; driver != "" {
		vendor, name := vgpuManager(esxi)
		found = append(found, vib(name, driver+"-1OEM."+builtFor(esxi), vendor, "vmware_accepted", "NVIDIA vGPU manager (vsml lab)"))
	}
	if tools := machine.model.MFT; tools != "" && !l.view(machine).Fails("no-mft") {
		for _, name := range []string{"mft", "nmst"} {
			found = append(found, vib(name, tools+"-1OEM", "MEL", "partner", "NVIDIA firmware tools (vsml lab)"))
		}
	}
	return found
}

// vgpuManager is the vendor and name of the vGPU manager's VIB, in the manner of NVIDIA's packages for NVIDIA AI
// Enterprise: NVIDIA-AIE_ESXi_7.0.2_Driver of NVIDIA on 7.0, NVD-AIE_ESXi_8.0.0_Driver of NVD on 8.0.
func vgpuManager(esxi string) (vendor, name string) {
	if older(esxi, "8.0.0") {
		return "NVIDIA", "NVIDIA-AIE_ESXi_7.0.2_Driver"
	}
	return "NVD", fmt.Sprintf("NVD-AIE_ESXi_%s.0.0_Driver", strings.SplitN(esxi, ".", 2)[0])
}

// builtFor is the ESXi release that a VIB was built for, as partners' versions carry it.
func builtFor(esxi string) string {
	if older(esxi, "8.0.0") {
		return "702.0.0.17630552"
	}
	return "800.1.0.20613240"
}

func vib(name, version, vendor, level, summary string) types.SoftwarePackage {
	day := time.Date(2024, time.January, 10, 0, 0, 0, 0, time.UTC)
	return types.SoftwarePackage{
		Name: name, Version: version, Type: string(types.SoftwarePackageVibTypeBootbank), Vendor: vendor,
		AcceptanceLevel: level, Summary: summary, Description: summary, CreationDate: &day,
		MaintenanceModeRequired: types.NewBool(true), Capability: types.SoftwarePackageCapability{},
	}
}
