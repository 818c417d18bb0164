package server

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

// firstDirectKey is where vCenter begins to number a VM's PCI devices.
const firstDirectKey = 13000

// directDevices are a standing VM's vGPUs, passed-through functions and members of device groups.
func (l *Lab) directDevices(host *esx, described topology.VM) ([]types.BaseVirtualDevice, *types.VirtualMachineVirtualDeviceGroups, error) {
	var devices []types.BaseVirtualDevice
	for _, profile := range described.Profiles {
		devices = append(devices, &types.VirtualPCIPassthrough{VirtualDevice: types.VirtualDevice{
			Backing: &types.VirtualPCIPassthroughVmiopBackingInfo{Vgpu: profile},
		}})
	}
	for _, address := range described.Passthrough {
		device, err := l.passedThrough(host, address)
		if err != nil {
			return nil, nil, err
		}
		devices = append(devices, device)
	}
	members, groups, err := l.groupMembers(host, described)
	devices = append(devices, members...)
	for i, device := range devices {
		device.GetVirtualDevice().Key = int32(firstDirectKey + i)
	}
	return devices, groups, err
}

func (l *Lab) passedThrough(host *esx, address string) (types.BaseVirtualDevice, error) {
	functions := pciDevices(l.view(host))
	index := slices.IndexFunc(functions, func(d types.HostPciDevice) bool { return d.Id == address })
	if index < 0 {
		return nil, fmt.Errorf("host %s has no PCI function %s", host.name, address)
	}
	function := functions[index]
	return &types.VirtualPCIPassthrough{VirtualDevice: types.VirtualDevice{
		Backing: &types.VirtualPCIPassthroughDeviceBackingInfo{
			VirtualDeviceDeviceBackingInfo: types.VirtualDeviceDeviceBackingInfo{DeviceName: function.DeviceName},
			Id:                             address, SystemId: stableUUID(host.name), VendorId: function.VendorId,
			DeviceId: strconv.FormatUint(uint64(uint16(function.DeviceId)), 16),
		},
	}}, nil
}

// groupMembers are the devices of the VM's device groups, each naming its group.
func (l *Lab) groupMembers(host *esx, described topology.VM) ([]types.BaseVirtualDevice, *types.VirtualMachineVirtualDeviceGroups, error) {
	var devices []types.BaseVirtualDevice
	var groups types.VirtualMachineVirtualDeviceGroups
	for i, name := range described.Groups {
		offered := l.deviceGroups(host)
		index := slices.IndexFunc(offered, func(g types.VirtualMachineVendorDeviceGroupInfo) bool { return g.DeviceGroupName == name })
		if index < 0 {
			return nil, nil, fmt.Errorf("host %s offers no device group %q", host.name, name)
		}
		instance := int32(i + 1)
		groups.DeviceGroup = append(groups.DeviceGroup, &types.VirtualMachineVirtualDeviceGroupsVendorDeviceGroup{
			VirtualMachineVirtualDeviceGroupsDeviceGroup: types.VirtualMachineVirtualDeviceGroupsDeviceGroup{GroupInstanceKey: instance},
			DeviceGroupName: name,
		})
		for sequence, component := range offered[index].ComponentDeviceInfo {
			device := component.Device
			device.GetVirtualDevice().DeviceGroupInfo = &types.VirtualDeviceDeviceGroupInfo{GroupInstanceKey: instance, SequenceId: int32(sequence)}
			if card, ok := device.(*types.VirtualSriovEthernetCard); ok {
				card.Backing, card.MacAddress = l.networkBacking(described.Portgroup), l.nextMAC()
				card.AddressType = string(types.VirtualEthernetCardMacTypeAssigned)
			}
			devices = append(devices, device)
		}
	}
	if len(groups.DeviceGroup) == 0 {
		return nil, nil, nil
	}
	return devices, &groups, nil
}
