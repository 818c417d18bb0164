package server

import (
	"fmt"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/catalogue"
)

// checkDevices looks at each device that is added or edited.
func (l *Lab) checkDevices(ctx *simulator.Context, then wish, spec *types.VirtualMachineConfigSpec, at place) types.BaseMethodFault {
	for i, change := range spec.DeviceChange {
		device := change.GetVirtualDeviceConfigSpec()
		index := int32(i)
		if fault := checkHotPlug(then, device); fault != nil {
			return fault
		}
		if device.Operation == types.VirtualDeviceConfigSpecOperationRemove {
			continue
		}
		if fault := checkDeviceVersion(then, device.Device, index); fault != nil {
			return fault
		}
		if fault := checkPVRDMA(device.Device, index); fault != nil {
			return fault
		}
		if fault := l.checkBacking(ctx, device, index, at); fault != nil {
			return fault
		}
	}
	return nil
}

// checkHotPlug: PCI devices come and go with the power off; from vSphere 8.0 U1 on fixed passthrough devices may be
// hot-plugged when the VM is set for it (fixedPassthruHotPlugEnabled). An SR-IOV adapter that is added fails in the VM
// itself (source: as of the device keys); which fault the others get is not known.
func checkHotPlug(then wish, change *types.VirtualDeviceConfigSpec) types.BaseMethodFault {
	if !then.poweredOn || !isPCI(change.Device) {
		return nil
	}
	_, fixed := change.Device.GetVirtualDevice().Backing.(*types.VirtualPCIPassthroughDeviceBackingInfo)
	if fixed && then.hotPlug {
		return nil
	}
	_, function := change.Device.(*types.VirtualSriovEthernetCard)
	if function && change.Operation == types.VirtualDeviceConfigSpecOperationAdd {
		return vmFault("The hot-plug operation failed.")
	}
	return &types.InvalidPowerState{
		RequestedState: types.VirtualMachinePowerStatePoweredOff, ExistingState: types.VirtualMachinePowerStatePoweredOn,
	}
}

func checkDeviceVersion(then wish, device types.BaseVirtualDevice, index int32) types.BaseMethodFault {
	needed := 0
	base := device.GetVirtualDevice()
	if _, ok := base.Backing.(*types.VirtualPCIPassthroughDynamicBackingInfo); ok {
		needed = dynamicPassthroughVersion
	}
	if _, ok := device.(*types.VirtualVmxnet3Vrdma); ok {
		needed = pvrdmaVersion
	}
	if base.DeviceGroupInfo != nil || base.NumaNode != nil && *base.NumaNode >= 0 {
		needed = topologyVersion
	}
	if then.version >= needed {
		return nil
	}
	fault := &types.DeviceUnsupportedForVmVersion{
		CurrentVersion: fmt.Sprintf("vmx-%02d", then.version), ExpectedVersion: fmt.Sprintf("vmx-%d", needed),
	}
	fault.DeviceIndex = index
	return fault
}

func (l *Lab) checkBacking(ctx *simulator.Context, change *types.VirtualDeviceConfigSpec, index int32, at place) types.BaseMethodFault {
	invalid := &types.InvalidDeviceBacking{}
	invalid.DeviceIndex = index
	switch backing := change.Device.GetVirtualDevice().Backing.(type) {
	case *types.VirtualPCIPassthroughVmiopBackingInfo:
		if !l.offered(backing.Vgpu, at) {
			return invalid
		}
	case *types.VirtualPCIPassthroughDeviceBackingInfo:
		if backing.Id == "" {
			return invalid
		}
	case *types.VirtualPCIPassthroughDynamicBackingInfo:
		if len(backing.AllowedDevice) == 0 {
			return invalid
		}
	case *types.VirtualEthernetCardNetworkBackingInfo:
		// The simulator ends the process over a network it does not know.
		if at.datacenter == nil || ctx.Map.FindByName(backing.DeviceName, at.datacenter.Network) == nil {
			return invalid
		}
	case *types.VirtualEthernetCardDistributedVirtualPortBackingInfo:
		group := types.ManagedObjectReference{Type: "DistributedVirtualPortgroup", Value: backing.Port.PortgroupKey}
		if ctx.Map.Get(group) == nil {
			return invalid
		}
	case types.BaseVirtualDeviceFileBackingInfo:
		return checkFile(ctx, change, backing.GetVirtualDeviceFileBackingInfo(), at)
	case nil:
		if _, ok := change.Device.(*types.VirtualPCIPassthrough); ok {
			return invalid
		}
	}
	return nil
}

// offered: some host the VM may run on has the profile; one that no board has is refused wherever it may run.
func (l *Lab) offered(profile string, at place) bool {
	if _, _, ok := catalogue.ProfileNamed(profile); !ok {
		return false
	}
	for _, name := range at.names() {
		for _, offered := range l.Rack.Profiles(name) {
			if offered.Name == profile {
				return true
			}
		}
	}
	return false
}

func checkFile(ctx *simulator.Context, change *types.VirtualDeviceConfigSpec, file *types.VirtualDeviceFileBackingInfo, at place) types.BaseMethodFault {
	disk, isDisk := change.Device.(*types.VirtualDisk)
	if file.FileName == "" {
		return nil
	}
	store := datastoreIn(ctx, at.datacenter, file.FileName)
	if store == nil {
		return &types.InvalidDatastorePath{DatastorePath: file.FileName}
	}
	size := int64(0)
	if isDisk && change.FileOperation == types.VirtualDeviceConfigSpecFileOperationCreate {
		size = max(disk.CapacityInBytes, disk.CapacityInKB<<10)
	}
	var free int64
	locked(ctx, store, func() { free = store.Summary.FreeSpace })
	if size > free {
		return &types.NoDiskSpace{FileFault: types.FileFault{File: file.FileName}, Datastore: store.Name}
	}
	return nil
}
