package server

import (
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/rack"
)

// requestOf is what the configuration needs of a host at power-on.
func requestOf(vm string, w wish) rack.Request {
	request := rack.Request{VM: vm, ReservedMiB: w.reservedMB(), Groups: groupNames(w.groups)}
	for _, device := range w.devices {
		if asked, ok := deviceRequest(device); ok {
			request.Devices = append(request.Devices, asked)
		}
	}
	return request
}

func (w wish) reservedMB() int64 {
	if w.locked {
		return w.memoryMB
	}
	if w.memory != nil && w.memory.Reservation != nil {
		return *w.memory.Reservation
	}
	return 0
}

func deviceRequest(device types.BaseVirtualDevice) (rack.Device, bool) {
	base := device.GetVirtualDevice()
	asked := rack.Device{Key: base.Key}
	if base.DeviceGroupInfo != nil {
		asked.Group = base.DeviceGroupInfo.GroupInstanceKey
	}
	if card, ok := device.(*types.VirtualSriovEthernetCard); ok {
		asked.Kind, asked.Address = rack.SRIOVNIC, physicalFunction(card)
		return asked, true
	}
	switch backing := base.Backing.(type) {
	case *types.VirtualPCIPassthroughVmiopBackingInfo:
		asked.Kind, asked.Profile = rack.VGPU, backing.Vgpu
	case *types.VirtualPCIPassthroughDeviceBackingInfo:
		asked.Kind, asked.Address = rack.Fixed, address(backing.Id)
	case *types.VirtualPCIPassthroughDynamicBackingInfo:
		asked.Kind, asked.Label = rack.Dynamic, backing.CustomLabel
		asked.Allowed = allowed(backing.AllowedDevice)
	default:
		return rack.Device{}, false
	}
	return asked, true
}

// physicalFunction is the adapter that the card names, "" for any. Clients write "Automatic" or nothing to leave
// the choice to the host.
func physicalFunction(card *types.VirtualSriovEthernetCard) string {
	if card.SriovBacking == nil || card.SriovBacking.PhysicalFunctionBacking == nil {
		return ""
	}
	id := card.SriovBacking.PhysicalFunctionBacking.Id
	if !strings.Contains(id, ":") {
		return ""
	}
	return address(id)
}

// address writes a PCI address as the host lists it: with the domain, in lower case.
func address(id string) string {
	if strings.Count(id, ":") == 1 {
		id = "0000:" + id
	}
	return strings.ToLower(id)
}

// allowed masks the identifiers, which may come as signed 16-bit numbers.
func allowed(devices []types.VirtualPCIPassthroughAllowedDevice) []rack.PCIID {
	var ids []rack.PCIID
	for _, device := range devices {
		ids = append(ids, rack.PCIID{
			Vendor: uint16(device.VendorId), Device: uint16(device.DeviceId),
			SubVendor: uint16(device.SubVendorId), SubDevice: uint16(device.SubDeviceId),
		})
	}
	return ids
}
