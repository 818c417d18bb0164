package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/rack"
)

// assignableHardware is a host's HostAssignableHardwareManager.
type assignableHardware struct {
	mo.HostAssignableHardwareManager
	lab *Lab
	esx *esx
}

func newAssignableHardware(lab *Lab, owner *esx) *assignableHardware {
	return &assignableHardware{lab: lab, esx: owner}
}

// RetrieveVendorDeviceGroupInfo lists the device groups of the host.
func (a *assignableHardware) RetrieveVendorDeviceGroupInfo(*simulator.Context, *types.RetrieveVendorDeviceGroupInfo) soap.HasFault {
	return &methods.RetrieveVendorDeviceGroupInfoBody{Res: &types.RetrieveVendorDeviceGroupInfoResponse{
		Returnval: a.lab.deviceGroups(a.esx),
	}}
}

// RetrieveDynamicPassthroughInfo lists what Dynamic DirectPath I/O can hand out.
func (a *assignableHardware) RetrieveDynamicPassthroughInfo(*simulator.Context, *types.RetrieveDynamicPassthroughInfo) soap.HasFault {
	return &methods.RetrieveDynamicPassthroughInfoBody{Res: &types.RetrieveDynamicPassthroughInfoResponse{
		Returnval: dynamicPassthrough(a.lab.view(a.esx)),
	}}
}

// DownloadDescriptionTree is not served: its format is not published.
func (a *assignableHardware) DownloadDescriptionTree(*simulator.Context, *types.DownloadDescriptionTree) soap.HasFault {
	return &methods.DownloadDescriptionTreeBody{Fault_: simulator.Fault("", &types.NotSupported{})}
}

// UpdateAssignableHardwareConfig keeps the overrides for reading back.
func (a *assignableHardware) UpdateAssignableHardwareConfig(ctx *simulator.Context, request *types.UpdateAssignableHardwareConfig) soap.HasFault {
	ctx.Map.Update(ctx, a, []types.PropertyChange{{Name: "config", Val: request.Config}})
	own := *ctx
	ctx.Map.AtomicUpdate(&own, a.esx.system, []types.PropertyChange{{Name: "config.assignableHardwareConfig", Val: &request.Config}})
	return &methods.UpdateAssignableHardwareConfigBody{Res: &types.UpdateAssignableHardwareConfigResponse{}}
}

// deviceGroups are the host's vendor device groups; vSphere has them from API 8.0.0.1 on.
func (l *Lab) deviceGroups(machine *esx) []types.VirtualMachineVendorDeviceGroupInfo {
	if older(apiVersion(l.File), "8.0.0.1") {
		return nil
	}
	view := l.view(machine)
	var infos []types.VirtualMachineVendorDeviceGroupInfo
	for _, group := range l.Rack.Groups(machine.name) {
		info := types.VirtualMachineVendorDeviceGroupInfo{
			VirtualMachineTargetInfo: types.VirtualMachineTargetInfo{Name: group.Name},
			DeviceGroupName:          group.Name, DeviceGroupDescription: group.Description,
		}
		for number, component := range group.Components {
			info.ComponentDeviceInfo = append(info.ComponentDeviceInfo, groupComponent(view, component, int32(-number-1)))
		}
		infos = append(infos, info)
	}
	return infos
}

// groupComponent describes one device of a group, with the device to put into a VM's spec. The adapter of a group is
// an SR-IOV function where SR-IOV is on and a passed-through one elsewhere: inferred, no source says which vSphere prints.
func groupComponent(view rack.View, component rack.Component, key int32) types.VirtualMachineVendorDeviceGroupInfoComponentDeviceInfo {
	info := types.VirtualMachineVendorDeviceGroupInfoComponentDeviceInfo{
		VendorName: component.Board.VendorName(), DeviceName: component.Board.DeviceName,
	}
	switch {
	case !component.NIC:
		info.Type, info.DeviceName = "nvidiaVgpu", component.Profile
		info.Device = &types.VirtualPCIPassthrough{VirtualDevice: types.VirtualDevice{
			Key: key, Backing: &types.VirtualPCIPassthroughVmiopBackingInfo{Vgpu: component.Profile},
		}}
	case slices.ContainsFunc(view.NICs, func(n rack.NIC) bool { return n.Board.Name == component.Board.Name && n.SRIOV.Active > 0 }):
		info.Type, info.IsConfigurable = "sriovNic", true
		card := &types.VirtualSriovEthernetCard{SriovBacking: &types.VirtualSriovEthernetCardSriovBackingInfo{}}
		card.Key = key
		info.Device = card
	default:
		info.Type = "pciPassthru"
		info.Device = &types.VirtualPCIPassthrough{VirtualDevice: types.VirtualDevice{Key: key, Backing: dynamicBacking(component)}}
	}
	return info
}

func dynamicBacking(component rack.Component) *types.VirtualPCIPassthroughDynamicBackingInfo {
	return &types.VirtualPCIPassthroughDynamicBackingInfo{AllowedDevice: []types.VirtualPCIPassthroughAllowedDevice{{
		VendorId: int32(component.Board.VendorID), DeviceId: int32(component.Board.DeviceID),
	}}}
}

// dynamicPassthrough lists each model of function that is enabled for passthrough, once a label.
func dynamicPassthrough(view rack.View) []types.VirtualMachineDynamicPassthroughInfo {
	var infos []types.VirtualMachineDynamicPassthroughInfo
	add := func(set rack.Passthrough, vendor, name string, vendorID, deviceID uint16) {
		info := types.VirtualMachineDynamicPassthroughInfo{
			VirtualMachineTargetInfo: types.VirtualMachineTargetInfo{Name: name},
			VendorName:               vendor, DeviceName: name, CustomLabel: set.Label,
			VendorId: int32(vendorID), DeviceId: int32(deviceID),
		}
		same := func(other types.VirtualMachineDynamicPassthroughInfo) bool {
			return other.VendorId == info.VendorId && other.DeviceId == info.DeviceId && other.CustomLabel == info.CustomLabel
		}
		if set.Active && !slices.ContainsFunc(infos, same) {
			infos = append(infos, info)
		}
	}
	for _, gpu := range view.GPUs {
		add(gpu.Passthrough, gpu.Board.VendorName(), gpu.Board.DeviceName, gpu.Board.VendorID, gpu.Board.DeviceID)
	}
	for _, nic := range view.NICs {
		add(nic.Passthrough, nic.Board.VendorName(), nic.Board.DeviceName, nic.Board.VendorID, nic.Board.DeviceID)
	}
	return infos
}

// bindings name the assignable devices in use and their VMs.
func bindings(view rack.View) []types.HostAssignableHardwareBinding {
	var bound []types.HostAssignableHardwareBinding
	for address := range view.Uses {
		for _, machine := range references(view.VMs(address)) {
			bound = append(bound, types.HostAssignableHardwareBinding{InstanceId: fmt.Sprintf("pcip:%s", address), Vm: machine})
		}
	}
	slices.SortFunc(bound, func(a, b types.HostAssignableHardwareBinding) int {
		return strings.Compare(a.InstanceId+a.Vm.Value, b.InstanceId+b.Vm.Value)
	})
	return bound
}
