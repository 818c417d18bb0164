package server

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/rack"
)

// passthruSystem is a host's HostPciPassthruSystem.
type passthruSystem struct {
	mo.HostPciPassthruSystem
	lab *Lab
	esx *esx
}

func newPassthruSystem(lab *Lab, owner *esx) *passthruSystem {
	return &passthruSystem{lab: lab, esx: owner}
}

// Refresh has nothing to find: the lab's devices never change places.
func (p *passthruSystem) Refresh(*simulator.Context, *types.Refresh) soap.HasFault {
	return &methods.RefreshBody{Res: &types.RefreshResponse{}}
}

// passthruInfos say of every PCI device what DirectPath I/O could do with it.
func passthruInfos(view rack.View, api string) []types.BaseHostPciPassthruInfo {
	var infos []types.BaseHostPciPassthruInfo
	for _, bridge := range view.Model.Bridges {
		infos = append(infos, &types.HostPciPassthruInfo{Id: bridge.Address, DependentDevice: bridge.Address})
	}
	for _, gpu := range view.GPUs {
		info := functionPassthru(gpu.Address, gpu.Passthrough, api)
		infos = append(infos, &info)
	}
	for _, nic := range view.NICs {
		infos = append(infos, sriovInfo(nic, api))
		for _, address := range nic.VFAddresses() {
			info := functionPassthru(address, rack.Passthrough{Enabled: true, Active: true, Label: nic.Passthrough.Label}, api)
			infos = append(infos, &info)
		}
	}
	return infos
}

func functionPassthru(address string, set rack.Passthrough, api string) types.HostPciPassthruInfo {
	info := types.HostPciPassthruInfo{
		Id: address, DependentDevice: address, PassthruCapable: true,
		PassthruEnabled: set.Enabled, PassthruActive: set.Active, HardwareLabel: set.Label,
	}
	if older(api, "7.0.2.0") {
		info.HardwareLabel = "" // the field came with API 7.0.2.0
	}
	return info
}

func sriovInfo(nic rack.NIC, api string) *types.HostSriovInfo {
	return &types.HostSriovInfo{
		HostPciPassthruInfo:         functionPassthru(nic.Address, nic.Passthrough, api),
		SriovCapable:                nic.Board.SRIOV && nic.MaxVFs > 0,
		SriovEnabled:                nic.SRIOV.Enabled,
		SriovActive:                 nic.SRIOV.Active > 0,
		NumVirtualFunctionRequested: int32(nic.SRIOV.Requested),
		NumVirtualFunction:          int32(nic.SRIOV.Active),
		MaxVirtualFunctionSupported: int32(nic.MaxVFs),
	}
}
