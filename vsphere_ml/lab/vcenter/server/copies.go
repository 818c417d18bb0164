package server

import (
	"reflect"
	"slices"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// copy registers a VM like another under a name and on a host of its own, with everything that must differ differing.
func (l *Lab) copy(like *simulator.VirtualMachine, name string, host *esx) (*simulator.VirtualMachine, error) {
	machine := &simulator.VirtualMachine{VirtualMachine: like.VirtualMachine, DataSets: map[string]*simulator.DataSet{}}
	machine.Self = types.ManagedObjectReference{}
	l.putChild(l.folder(l.site.datacenter.VmFolder), machine)
	machine.Name = name
	rename(machine, like.Name, name)
	l.renumber(machine)
	seat(machine, host)
	l.list(machine, host)
	store := strings.TrimPrefix(strings.SplitN(machine.Config.Files.VmPathName, "]", 2)[0], "[")
	return machine, l.touch(store, name+"/"+name+".vmdk")
}

// rename gives the VM configuration, devices and paths of its own, under its own name.
func rename(machine *simulator.VirtualMachine, old, name string) {
	own := func(path string) string { return strings.ReplaceAll(path, old, name) }
	config := *machine.Config
	config.Name = name
	config.Uuid, config.InstanceUuid = stableUUID("bios "+name), stableUUID("instance "+name)
	config.Files.VmPathName = own(config.Files.VmPathName)
	config.Files.SnapshotDirectory = own(config.Files.SnapshotDirectory)
	config.Files.SuspendDirectory = own(config.Files.SuspendDirectory)
	config.Files.LogDirectory = own(config.Files.LogDirectory)
	config.ExtraConfig = slices.Clone(config.ExtraConfig)
	config.Hardware.Device = ownDevices(config.Hardware.Device, own)
	machine.Config = &config
	summary := &machine.Summary
	summary.Vm = &machine.Self
	summary.Config.Name, summary.Config.VmPathName = name, config.Files.VmPathName
	summary.Config.Uuid, summary.Config.InstanceUuid = config.Uuid, config.InstanceUuid
	guest, summaryGuest := *machine.Guest, *summary.Guest
	machine.Guest, summary.Guest = &guest, &summaryGuest
	machine.Layout = &types.VirtualMachineFileLayout{}
	machine.LayoutEx = &types.VirtualMachineFileLayoutEx{Timestamp: config.Modified}
	machine.Storage = &types.VirtualMachineStorageInfo{Timestamp: config.Modified}
}

// ownDevices copies the devices, because the simulator changes devices in place.
func ownDevices(devices []types.BaseVirtualDevice, own func(string) string) []types.BaseVirtualDevice {
	copied := make([]types.BaseVirtualDevice, len(devices))
	for i, device := range devices {
		value := reflect.New(reflect.TypeOf(device).Elem())
		value.Elem().Set(reflect.ValueOf(device).Elem())
		copied[i] = value.Interface().(types.BaseVirtualDevice)
		if controller, ok := copied[i].(types.BaseVirtualController); ok {
			controller.GetVirtualController().Device = slices.Clone(controller.GetVirtualController().Device)
		}
		plain := copied[i].GetVirtualDevice()
		if info, ok := plain.DeviceInfo.(*types.Description); ok {
			text := *info
			plain.DeviceInfo = &text
		}
		if backing, ok := plain.Backing.(*types.VirtualDiskFlatVer2BackingInfo); ok {
			file := *backing
			file.FileName, file.Uuid = own(file.FileName), stableUUID(own(file.FileName))
			plain.Backing = &file
		}
	}
	return copied
}

// renumber gives its network adapters fresh addresses.
func (l *Lab) renumber(machine *simulator.VirtualMachine) {
	for _, device := range machine.Config.Hardware.Device {
		if card, ok := device.(types.BaseVirtualEthernetCard); ok {
			card.GetVirtualEthernetCard().MacAddress = l.nextMAC()
		}
	}
}

func seat(machine *simulator.VirtualMachine, host *esx) {
	machine.ResourcePool = host.cluster.ResourcePool
	machine.EnvironmentBrowser = *host.cluster.EnvironmentBrowser
	machine.Runtime.Host = &host.system.Self
	machine.Summary.Runtime.Host = &host.system.Self
}

// list enters the VM where others name it: host, pool, datastores, networks.
func (l *Lab) list(machine *simulator.VirtualMachine, host *esx) {
	host.system.Vm = append(host.system.Vm, machine.Self)
	pool := l.Context.Map.Get(*machine.ResourcePool).(*simulator.ResourcePool)
	pool.Vm = append(pool.Vm, machine.Self)
	machine.Datastore = slices.Clone(machine.Datastore)
	for _, reference := range machine.Datastore {
		store := l.Context.Map.Get(reference).(*simulator.Datastore)
		store.Vm = append(store.Vm, machine.Self)
	}
	machine.Network = slices.Clone(machine.Network)
	for _, reference := range machine.Network {
		if group, ok := l.Context.Map.Get(reference).(*simulator.DistributedVirtualPortgroup); ok {
			group.Vm = append(group.Vm, machine.Self)
		}
	}
}
