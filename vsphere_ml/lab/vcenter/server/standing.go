package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

// machineSpec is a VM to be standing when the lab opens.
type machineSpec struct {
	name, datastore, portgroup, guestID, firmware string
	version, cpus, memoryGiB, diskGiB             int
	direct                                        []types.BaseVirtualDevice // vGPUs and functions of the host
	groups                                        *types.VirtualMachineVirtualDeviceGroups
}

func (l *Lab) addTemplates() error {
	for _, described := range l.File.Templates {
		if err := l.addTemplate(described); err != nil {
			return fmt.Errorf("template %q: %w", described.Name, err)
		}
	}
	return nil
}

func (l *Lab) addTemplate(described topology.Template) error {
	owner, host := l.firstHost()
	machine, err := l.create(owner, host, machineSpec{
		name: described.Name, datastore: described.Datastore, portgroup: described.Portgroup,
		guestID: described.GuestID, firmware: described.Firmware, version: described.HardwareVersion,
		cpus: described.CPUs, memoryGiB: described.MemoryGiB, diskGiB: described.DiskGiB,
	})
	if err != nil {
		return err
	}
	limitTemplate(machine.Config, described)
	setTools(machine.Config, described)
	l.origins.add(machine.Self, described)
	if described.Snapshot != "" {
		body := machine.CreateSnapshotTask(l.Context, &types.CreateSnapshot_Task{This: machine.Self, Name: described.Snapshot})
		if _, err := l.wait(body.(*methods.CreateSnapshot_TaskBody).Res.Returnval); err != nil {
			return err
		}
	}
	body := machine.MarkAsTemplate(&types.MarkAsTemplate{This: machine.Self})
	if fault := body.Fault(); fault != nil {
		return fmt.Errorf("%s", fault.String)
	}
	return nil
}

// setTools leaves what vCenter knows of VMware Tools from the template's last boot; 12389 is of open-vm-tools 12.3.5.
func setTools(config *types.VirtualMachineConfigInfo, described topology.Template) {
	tools := types.ToolsConfigInfo{}
	if config.Tools != nil {
		tools = *config.Tools
	}
	tools.ToolsVersion = 12389
	if described.Tools != nil && !*described.Tools {
		tools.ToolsVersion = 0
	}
	config.Tools = &tools
	if described.Silent {
		key := &types.OptionValue{Key: "isolation.tools.setinfo.disable", Value: "TRUE"}
		config.ExtraConfig = mergeExtraConfig(config.ExtraConfig, []types.BaseOptionValue{key})
	}
}

// limitTemplate sets what somebody may have left in a template: cores per socket, and limits of memory and CPU.
func limitTemplate(config *types.VirtualMachineConfigInfo, described topology.Template) {
	if described.CoresPerSocket > 0 {
		config.Hardware.NumCoresPerSocket = types.NewInt32(int32(described.CoresPerSocket))
	}
	if described.MemoryLimitGiB > 0 {
		config.MemoryAllocation = blended(config.MemoryAllocation, &types.ResourceAllocationInfo{
			Limit: types.NewInt64(int64(described.MemoryLimitGiB) * 1024),
		})
	}
	if described.CPULimitMHz > 0 {
		config.CpuAllocation = blended(config.CpuAllocation, &types.ResourceAllocationInfo{
			Limit: types.NewInt64(int64(described.CPULimitMHz)),
		})
	}
}

func (l *Lab) firstHost() (*simulator.ClusterComputeResource, *esx) {
	for _, described := range l.File.Clusters {
		if len(described.Hosts) > 0 {
			return l.site.clusters[described.Name], l.site.hosts[described.Hosts[0]]
		}
	}
	return nil, nil
}

// create makes a VM the simulator's own way, files and all.
func (l *Lab) create(owner *simulator.ClusterComputeResource, host *esx, spec machineSpec) (*simulator.VirtualMachine, error) {
	if host == nil {
		return nil, fmt.Errorf("the site has no host to hold it")
	}
	vms := l.folder(l.site.datacenter.VmFolder)
	config := l.configSpec(spec)
	l.dress(nil, &config)
	body := vms.CreateVMTask(l.Context, &types.CreateVM_Task{
		This: vms.Self, Config: config, Pool: *owner.ResourcePool, Host: &host.system.Self,
	})
	result, err := l.wait(body.(*methods.CreateVM_TaskBody).Res.Returnval)
	if err != nil {
		return nil, err
	}
	machine := l.Context.Map.Get(result.(types.ManagedObjectReference)).(*simulator.VirtualMachine)
	machine.Config.DeviceGroups = spec.groups // the simulator drops it from a spec
	l.mapMemory(machine, host)
	return machine, nil
}

// mapMemory gives a standing VM the 64-bit MMIO space that its GPUs need, without which it would run now but never
// start again.
func (l *Lab) mapMemory(machine *simulator.VirtualMachine, host *esx) {
	config := machine.Config
	view := l.view(host)
	needed := 0
	for _, device := range requestOf("", present(config, types.VirtualMachinePowerStatePoweredOff)).Devices {
		needed += mmioOf(device, view)
	}
	if needed == 0 {
		return
	}
	config.ExtraConfig = mergeExtraConfig(config.ExtraConfig, []types.BaseOptionValue{
		&types.OptionValue{Key: "pciPassthru.use64bitMMIO", Value: "TRUE"},
		&types.OptionValue{Key: "pciPassthru.64bitMMIOSizeGB", Value: strconv.Itoa(needed)},
	})
}

func (l *Lab) configSpec(spec machineSpec) types.VirtualMachineConfigSpec {
	config := types.VirtualMachineConfigSpec{
		Name: spec.name, GuestId: spec.guestID, Firmware: spec.firmware, NumCPUs: int32(spec.cpus), MemoryMB: int64(spec.memoryGiB) * 1024,
		Files: &types.VirtualMachineFileInfo{VmPathName: "[" + spec.datastore + "]"},
	}
	if config.GuestId == "" {
		config.GuestId = "ubuntu64Guest"
	}
	if config.Firmware == "" {
		config.Firmware = "efi"
	}
	if spec.version > 0 {
		config.Version = fmt.Sprintf("vmx-%02d", spec.version)
	}
	if len(spec.direct) > 0 {
		config.MemoryReservationLockedToMax = types.NewBool(true)
		allocation := types.DefaultResourceConfigSpec().MemoryAllocation
		allocation.Reservation = types.NewInt64(config.MemoryMB)
		config.MemoryAllocation = &allocation
	}
	for _, device := range l.devices(spec) {
		change := &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationAdd, Device: device}
		if _, isDisk := device.(*types.VirtualDisk); isDisk {
			change.FileOperation = types.VirtualDeviceConfigSpecFileOperationCreate
		}
		config.DeviceChange = append(config.DeviceChange, change)
	}
	return config
}

// devices are a SCSI controller with one disk, a network adapter, and what the host passes on.
func (l *Lab) devices(spec machineSpec) []types.BaseVirtualDevice {
	controller := &types.ParaVirtualSCSIController{VirtualSCSIController: types.VirtualSCSIController{
		SharedBus:         types.VirtualSCSISharingNoSharing,
		VirtualController: types.VirtualController{VirtualDevice: types.VirtualDevice{Key: 1000}},
	}}
	devices := []types.BaseVirtualDevice{controller}
	if spec.diskGiB > 0 {
		devices = append(devices, &types.VirtualDisk{
			CapacityInKB: int64(spec.diskGiB) << 20, CapacityInBytes: int64(spec.diskGiB) << 30,
			StorageIOAllocation: &types.StorageIOAllocationInfo{Limit: types.NewInt64(-1)},
			VirtualDevice: types.VirtualDevice{
				Key: 2000, ControllerKey: 1000, UnitNumber: types.NewInt32(0),
				Backing: &types.VirtualDiskFlatVer2BackingInfo{
					VirtualDeviceFileBackingInfo: types.VirtualDeviceFileBackingInfo{FileName: "[" + spec.datastore + "] " + spec.name + "/" + spec.name + ".vmdk"},
					DiskMode:                     string(types.VirtualDiskModePersistent), ThinProvisioned: types.NewBool(true),
				},
			},
		})
	}
	if backing := l.networkBacking(spec.portgroup); backing != nil {
		card := &types.VirtualVmxnet3{}
		card.Key, card.Backing = 4000, backing
		card.AddressType = string(types.VirtualEthernetCardMacTypeAssigned)
		card.MacAddress = l.nextMAC()
		card.Connectable = &types.VirtualDeviceConnectInfo{StartConnected: true, AllowGuestControl: true, Connected: true}
		devices = append(devices, card)
	}
	return append(devices, spec.direct...)
}

func (l *Lab) networkBacking(name string) types.BaseVirtualDeviceBackingInfo {
	group, ok := l.site.portgroups[name]
	if !ok {
		return nil
	}
	owner := l.Context.Map.Get(*group.Config.DistributedVirtualSwitch).(*simulator.DistributedVirtualSwitch)
	return &types.VirtualEthernetCardDistributedVirtualPortBackingInfo{
		Port: types.DistributedVirtualSwitchPortConnection{PortgroupKey: group.Key, SwitchUuid: owner.Uuid},
	}
}

// nextMAC is a fresh address in vCenter's own range.
func (l *Lab) nextMAC() string {
	number := l.macs.Add(1)
	return fmt.Sprintf("00:50:56:%02x:%02x:%02x", 0x80|number>>16&0x3f, number>>8&0xff, number&0xff)
}

// addStandingVMs puts the VMs of others in place. One VM of each kind is created the simulator's way; those like it
// are copies registered directly, because ten thousand creation tasks take minutes.
func (l *Lab) addStandingVMs() error {
	first := map[string]*simulator.VirtualMachine{}
	for _, described := range l.File.VMs {
		kind := fmt.Sprint(described.CPUs, described.MemoryGiB, described.DiskGiB, described.Datastore, described.Portgroup,
			described.HardwareVersion, described.Profiles, described.Groups, described.Passthrough, described.Agent)
		machine, err := l.addStandingVM(described, first[kind])
		if err != nil {
			return fmt.Errorf("vm %q: %w", described.Name, err)
		}
		if first[kind] == nil {
			first[kind] = machine
		}
		makeAgent(machine.Config, described.Agent)
		if err := l.bring(machine, described); err != nil {
			return fmt.Errorf("vm %q: %w", described.Name, err)
		}
	}
	for _, name := range l.Rack.Hosts() {
		l.refresh(l.Context, name)
	}
	return nil
}

func (l *Lab) addStandingVM(described topology.VM, like *simulator.VirtualMachine) (*simulator.VirtualMachine, error) {
	host := l.site.hosts[described.Host]
	if like != nil {
		return l.copy(like, described.Name, host)
	}
	direct, groups, err := l.directDevices(host, described)
	if err != nil {
		return nil, err
	}
	return l.create(host.cluster, host, machineSpec{
		name: described.Name, datastore: described.Datastore, portgroup: described.Portgroup,
		version: described.HardwareVersion, cpus: described.CPUs, memoryGiB: described.MemoryGiB, diskGiB: described.DiskGiB,
		direct: direct, groups: groups,
	})
}

// bring powers a standing VM on, if it is to be, and books its devices.
func (l *Lab) bring(machine *simulator.VirtualMachine, described topology.VM) error {
	l.site.tools[machine.Self] = described.Tools
	if described.Power == "off" {
		return nil
	}
	if refusal := l.book(machine, described); refusal != nil {
		return refusal
	}
	for _, runtime := range []*types.VirtualMachineRuntimeInfo{&machine.Runtime, &machine.Summary.Runtime} {
		runtime.PowerState = types.VirtualMachinePowerStatePoweredOn
		runtime.BootTime = types.NewTime(l.Started)
	}
	machine.Guest.GuestState = string(types.VirtualMachineGuestStateRunning)
	machine.Summary.QuickStats.GuestHeartbeatStatus = types.ManagedEntityStatusGreen
	l.showTools(l.Context, machine, true)
	return nil
}

// book gives the VM what its configuration needs, as a power-on would.
func (l *Lab) book(machine *simulator.VirtualMachine, described topology.VM) error {
	request := requestOf(machine.Self.Value, present(machine.Config, types.VirtualMachinePowerStatePoweredOff))
	if _, refusal := l.Rack.Book(described.Host, request); refusal != nil {
		return refusal
	}
	return nil
}

// touch makes a VM's disk file, so that cloning the VM finds it. The other files of its home matter to nobody, and at
// ten thousand VMs they would take longer than all the rest.
func (l *Lab) touch(datastore, file string) error {
	path := filepath.Join(l.datastoreDir(), datastore, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}
