package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// vSphere 8's configuration maximums.
const (
	mostMemoryMB = 24 << 20
	mostCPUs     = 768
)

// Hardware versions that features ask for. Sources: Frank Denneman on Dynamic DirectPath I/O (17) and on vSphere 8's
// virtual topology and device groups (20).
const (
	dynamicPassthroughVersion = 17
	topologyVersion           = 20
)

// place is where a VM is or is to be: what its configuration is checked against.
type place struct {
	hosts      []*esx // any of which could run it
	datacenter *simulator.Datacenter
}

func (p place) names() []string {
	var names []string
	for _, machine := range p.hosts {
		names = append(names, machine.name)
	}
	return names
}

// checkSpec says why vCenter would not take the spec for a VM of the present configuration; nil if it would.
func (l *Lab) checkSpec(ctx *simulator.Context, now wish, spec *types.VirtualMachineConfigSpec, at place) types.BaseMethodFault {
	then := now.with(spec)
	for _, check := range []func() types.BaseMethodFault{
		func() types.BaseMethodFault { return checkGeneral(then, spec) },
		func() types.BaseMethodFault { return checkVersion(then, spec, at) },
		func() types.BaseMethodFault { return l.checkGroups(then, spec, at) },
		func() types.BaseMethodFault { return checkDeviceKeys(now, spec) },
		func() types.BaseMethodFault { return l.checkDevices(ctx, then, spec, at) },
		func() types.BaseMethodFault { return checkDeviceCount(then, spec, apiVersion(l.File)) },
	} {
		if fault := check(); fault != nil {
			return fault
		}
	}
	return nil
}

func checkGeneral(then wish, spec *types.VirtualMachineConfigSpec) types.BaseMethodFault {
	switch {
	case then.secure && then.firmware != string(types.GuestOsDescriptorFirmwareTypeEfi):
		return &types.InvalidVmConfig{Property: "msg.hostd.configSpec.efi"}
	case spec.Firmware != "" && spec.Firmware != "bios" && spec.Firmware != "efi":
		return &types.InvalidArgument{InvalidProperty: "configSpec.firmware"}
	case spec.MemoryMB < 0 || spec.MemoryMB > mostMemoryMB || spec.MemoryMB%4 != 0:
		return &types.InvalidArgument{InvalidProperty: "configSpec.memoryMB"}
	case spec.NumCPUs < 0 || spec.NumCPUs > mostCPUs:
		return &types.InvalidArgument{InvalidProperty: "configSpec.numCPUs"}
	case spec.GuestId != "" && !knownGuest(spec.GuestId):
		return &types.InvalidArgument{InvalidProperty: "configSpec.guestId"}
	}
	return nil
}

func knownGuest(id string) bool {
	return slices.Contains(types.VirtualMachineGuestOsIdentifier("").Strings(), id)
}

func checkVersion(then wish, spec *types.VirtualMachineConfigSpec, at place) types.BaseMethodFault {
	if spec.Version != "" && then.version == 0 {
		return &types.InvalidArgument{InvalidProperty: "configSpec.version"}
	}
	if then.numa && then.version < topologyVersion {
		return &types.InvalidArgument{InvalidProperty: "configSpec.virtualNuma"}
	}
	for _, machine := range at.hosts {
		if then.version <= machine.model.MaxHardwareVersion || machine.model.MaxHardwareVersion == 0 {
			return nil
		}
	}
	if len(at.hosts) == 0 {
		return nil
	}
	return &types.VirtualHardwareVersionNotSupported{HostName: at.hosts[0].name, Host: at.hosts[0].system.Self}
}

// checkGroups: a group that no host offers cannot be asked for, nor any group below hardware version 20.
func (l *Lab) checkGroups(then wish, spec *types.VirtualMachineConfigSpec, at place) types.BaseMethodFault {
	if spec.DeviceGroups == nil {
		return nil
	}
	invalid := &types.InvalidArgument{InvalidProperty: "configSpec.deviceGroups"}
	names := groupNames(spec.DeviceGroups)
	if len(names) > 0 && then.version < topologyVersion {
		return invalid
	}
	for _, name := range names {
		if _, ok := l.Rack.GroupNamed(name, at.names()); !ok {
			return invalid
		}
	}
	return nil
}

// checkDeviceKeys: within one spec a key stands for one device, and what is edited or removed must be there.
func checkDeviceKeys(now wish, spec *types.VirtualMachineConfigSpec) types.BaseMethodFault {
	have := object.VirtualDeviceList(now.devices)
	added := map[int32]bool{}
	for i, change := range spec.DeviceChange {
		device := change.GetVirtualDeviceConfigSpec()
		if device == nil || device.Device == nil {
			return &types.InvalidDeviceSpec{DeviceIndex: int32(i)}
		}
		key := device.Device.GetVirtualDevice().Key
		adds := device.Operation == types.VirtualDeviceConfigSpecOperationAdd
		if adds && key != 0 && added[key] || !adds && have.FindByKey(key) == nil {
			fault := &types.InvalidDeviceSpec{DeviceIndex: int32(i)}
			fault.Property = fmt.Sprintf("deviceChange[%d].device.key", i)
			return fault
		}
		added[key] = adds
	}
	return nil
}

// checkDeviceCount: PCI devices a VM can have. Sources: Frank Denneman, articles of 2022-08-30 and 2023-04-26, and
// Broadcom KB 309986: 16 with hardware version 19, 32 with 20, 64 with it on 8.0 U1, 128 with 21.
func checkDeviceCount(then wish, spec *types.VirtualMachineConfigSpec, api string) types.BaseMethodFault {
	count := 0
	for _, device := range then.devices {
		if isPCI(device) {
			count++
		}
	}
	for _, change := range spec.DeviceChange {
		device := change.GetVirtualDeviceConfigSpec()
		switch {
		case !isPCI(device.Device):
		case device.Operation == types.VirtualDeviceConfigSpecOperationAdd:
			count++
		case device.Operation == types.VirtualDeviceConfigSpecOperationRemove:
			count--
		}
	}
	if count <= mostPCIDevices(then.version, api) {
		return nil
	}
	return &types.TooManyDevices{InvalidVmConfig: types.InvalidVmConfig{Property: "configSpec.deviceChange"}}
}

func mostPCIDevices(version int, api string) int {
	switch {
	case version >= 21:
		return 128
	case version == 20 && !older(api, "8.0.1.0"):
		return 64
	case version == 20:
		return 32
	}
	return 16
}

// datastoreIn is the store that a path such as "[vsan] a/a.vmx" names, or nil.
func datastoreIn(ctx *simulator.Context, datacenter *simulator.Datacenter, text string) *simulator.Datastore {
	var path object.DatastorePath
	if !path.FromString(strings.TrimSpace(text)) || datacenter == nil {
		return nil
	}
	store, _ := ctx.Map.FindByName(path.Datastore, datacenter.Datastore).(*simulator.Datastore)
	return store
}
