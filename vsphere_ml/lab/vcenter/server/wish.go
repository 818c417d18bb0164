package server

import (
	"github.com/vmware/govmomi/vim25/types"
)

// wish is the configuration a VM has now, or would have once a spec is applied: what the rules look at.
type wish struct {
	version   int
	firmware  string
	secure    bool
	memoryMB  int64
	cpus      int32
	cores     int32 // per socket
	locked    bool
	memory    *types.ResourceAllocationInfo
	cpu       *types.ResourceAllocationInfo
	latency   *types.LatencySensitivity
	hotPlug   bool
	devices   []types.BaseVirtualDevice
	groups    *types.VirtualMachineVirtualDeviceGroups
	numa      bool
	extra     []types.BaseOptionValue
	poweredOn bool
}

// present is the configuration as it is; take the VM's lock.
func present(config *types.VirtualMachineConfigInfo, state types.VirtualMachinePowerState) wish {
	w := wish{
		version: hardwareVersion(config.Version), firmware: config.Firmware,
		memoryMB: int64(config.Hardware.MemoryMB), cpus: config.Hardware.NumCPU,
		locked: isTrue(config.MemoryReservationLockedToMax), memory: config.MemoryAllocation, cpu: config.CpuAllocation,
		latency: config.LatencySensitivity, hotPlug: isTrue(config.FixedPassthruHotPlugEnabled),
		devices: append([]types.BaseVirtualDevice(nil), config.Hardware.Device...), groups: config.DeviceGroups,
		extra: config.ExtraConfig, poweredOn: state == types.VirtualMachinePowerStatePoweredOn,
	}
	if config.Hardware.NumCoresPerSocket != nil {
		w.cores = *config.Hardware.NumCoresPerSocket
	}
	w.numa = config.NumaInfo != nil && config.NumaInfo.CoresPerNumaNode != nil
	if config.BootOptions != nil {
		w.secure = isTrue(config.BootOptions.EfiSecureBootEnabled)
	}
	return w
}

// with is the configuration after the spec, its devices aside.
func (w wish) with(spec *types.VirtualMachineConfigSpec) wish {
	if spec.Version != "" {
		w.version = hardwareVersion(spec.Version)
	}
	if spec.Firmware != "" {
		w.firmware = spec.Firmware
	}
	if spec.BootOptions != nil && spec.BootOptions.EfiSecureBootEnabled != nil {
		w.secure = *spec.BootOptions.EfiSecureBootEnabled
	}
	if spec.MemoryMB != 0 {
		w.memoryMB = spec.MemoryMB
	}
	if spec.NumCPUs != 0 {
		w.cpus = spec.NumCPUs
	}
	if spec.NumCoresPerSocket != nil {
		w.cores = *spec.NumCoresPerSocket
	}
	if spec.DeviceGroups != nil {
		w.groups = spec.DeviceGroups
	}
	w.numa = w.numa || spec.VirtualNuma != nil
	return w
}

// isPCI tells a device that takes a place in the host's hardware.
func isPCI(device types.BaseVirtualDevice) bool {
	switch device.(type) {
	case *types.VirtualPCIPassthrough, *types.VirtualSriovEthernetCard:
		return true
	}
	return false
}

// vgpuOf is the profile of a vGPU, "" for any other device.
func vgpuOf(device types.BaseVirtualDevice) string {
	backing, ok := device.GetVirtualDevice().Backing.(*types.VirtualPCIPassthroughVmiopBackingInfo)
	if !ok {
		return ""
	}
	return backing.Vgpu
}

// groupNames are the device groups by instance key.
func groupNames(groups *types.VirtualMachineVirtualDeviceGroups) map[int32]string {
	names := map[int32]string{}
	if groups == nil {
		return names
	}
	for _, group := range groups.DeviceGroup {
		if vendor, ok := group.(*types.VirtualMachineVirtualDeviceGroupsVendorDeviceGroup); ok {
			names[vendor.GroupInstanceKey] = vendor.DeviceGroupName
		}
	}
	return names
}
