package server

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// CloneVMTask copies the VM or template with its whole configuration and applies the whole of spec.config.
func (v *vm) CloneVMTask(ctx *simulator.Context, req *types.CloneVM_Task) soap.HasFault {
	request := *req
	task := v.lab.start(ctx, job{Method: "CloneVM_Task", Entity: v, Name: req.Name, Hosts: v.lab.cloneHosts(v, &request.Spec),
		Run: func(ctx *simulator.Context, _ *simulator.Task) (types.AnyType, types.BaseMethodFault) {
			return v.clone(ctx, &request)
		}})
	return &methods.CloneVM_TaskBody{Res: &types.CloneVM_TaskResponse{Returnval: task}}
}

func (v *vm) clone(ctx *simulator.Context, req *types.CloneVM_Task) (types.AnyType, types.BaseMethodFault) {
	made, fault := v.copyTo(ctx, req)
	if fault != nil {
		return nil, fault
	}
	if req.Spec.Template {
		locked(ctx, made, func() { made.MarkAsTemplate(&types.MarkAsTemplate{This: made.Self}) })
		return made.Self, nil
	}
	if req.Spec.PowerOn {
		// As vCenter does, the clone stays when it cannot be started.
		if fault := v.lab.powerOn(ctx, made, nil); fault != nil {
			return nil, fault
		}
	}
	return made.Self, nil
}

// copyTo makes the clone, powered off. Nothing is left of one that is refused.
func (v *vm) copyTo(ctx *simulator.Context, req *types.CloneVM_Task) (*simulator.VirtualMachine, types.BaseMethodFault) {
	l := v.lab
	l.provisioning.creating.Lock()
	defer l.provisioning.creating.Unlock()
	var at place
	var fault types.BaseMethodFault
	locked(ctx, v.VirtualMachine, func() { at, fault = v.checkClone(ctx, req) })
	if fault != nil {
		return nil, fault
	}
	made, fault := v.duplicate(ctx, req)
	if fault != nil {
		return nil, fault
	}
	l.origins.inherit(made.Self, v.Self)
	l.storage.set(made.Self, cloneProfiles(&req.Spec.Location))
	locked(ctx, made, func() {
		v.inherit(ctx, made, req)
		if req.Spec.Config != nil {
			fault = l.applyClone(ctx, made, req.Spec.Config, at)
		}
	})
	if fault == nil {
		fault = l.customize(ctx, made, req.Spec.Customization)
	}
	if fault != nil {
		l.discard(ctx, made)
		return nil, fault
	}
	return made, nil
}

// checkClone settles where the clone goes, writing it into the request, and checks the configuration it would
// have; take the source's lock.
func (v *vm) checkClone(ctx *simulator.Context, req *types.CloneVM_Task) (place, types.BaseMethodFault) {
	l, location := v.lab, &req.Spec.Location
	at := place{datacenter: l.site.datacenter}
	if fault := v.checkTarget(ctx, req); fault != nil {
		return at, fault
	}
	cluster := l.clusterOf(ctx, *location.Pool)
	if cluster == nil {
		return at, &types.InvalidArgument{InvalidProperty: "spec.location.pool"}
	}
	store, fault := v.storeOf(ctx, location)
	if fault != nil {
		return at, fault
	}
	at.hosts = l.hostsOf(cluster)
	if fault := l.checkProfiles(cloneProfiles(location)); fault != nil {
		return at, fault
	}
	now, change := v.source(), cloneSpec(req)
	if fault := l.checkSpec(ctx, now, &change, at); fault != nil {
		return at, fault
	}
	host, fault := l.cloneHost(ctx, location, at, store, planned(now, &change))
	if fault != nil {
		return at, fault
	}
	location.Host = &host.system.Self
	return at, nil
}

// source is the configuration that the clone begins with.
func (v *vm) source() wish {
	return present(v.Config, types.VirtualMachinePowerStatePoweredOff)
}

// cloneSpec is the clone's changes, with the devices of spec.location first.
func cloneSpec(req *types.CloneVM_Task) types.VirtualMachineConfigSpec {
	var spec types.VirtualMachineConfigSpec
	if req.Spec.Config != nil {
		spec = *req.Spec.Config
	}
	spec.DeviceChange = slices.Concat(req.Spec.Location.DeviceChange, spec.DeviceChange)
	return spec
}

// checkTarget: name, folder, pool and snapshot.
func (v *vm) checkTarget(ctx *simulator.Context, req *types.CloneVM_Task) types.BaseMethodFault {
	spec := &req.Spec
	if spec.Location.Folder != nil {
		req.Folder = *spec.Location.Folder
	}
	into, ok := ctx.Map.Get(req.Folder).(*simulator.Folder)
	if !ok || !slices.Contains(into.ChildType, "VirtualMachine") {
		return &types.InvalidArgument{InvalidProperty: "folder"}
	}
	if req.Name == "" {
		return &types.InvalidArgument{InvalidProperty: "name"}
	}
	if spec.Location.Pool == nil && !v.Config.Template {
		spec.Location.Pool = v.ResourcePool
	}
	if spec.Location.Pool == nil {
		return &types.InvalidArgument{InvalidProperty: "spec.location.pool"}
	}
	if spec.Snapshot != nil && ctx.Map.Get(*spec.Snapshot) == nil {
		return &types.ManagedObjectNotFound{Obj: *spec.Snapshot}
	}
	if linked(spec) && (spec.Snapshot == nil || !v.hasSnapshot(*spec.Snapshot)) {
		return &types.InvalidArgument{InvalidProperty: "spec.snapshot"}
	}
	return duplicate(ctx, &req.Folder, req.Name)
}

// linked clones share their disks with a snapshot.
func linked(spec *types.VirtualMachineCloneSpec) bool {
	return spec.Location.DiskMoveType == string(types.VirtualMachineRelocateDiskMoveOptionsCreateNewChildDiskBacking)
}

func (v *vm) hasSnapshot(reference types.ManagedObjectReference) bool {
	return v.Snapshot != nil && inTree(v.Snapshot.RootSnapshotList, reference)
}

func inTree(tree []types.VirtualMachineSnapshotTree, reference types.ManagedObjectReference) bool {
	return slices.ContainsFunc(tree, func(node types.VirtualMachineSnapshotTree) bool {
		return node.Snapshot == reference || inTree(node.ChildSnapshotList, reference)
	})
}

// storeOf is the clone's datastore: the one named, or the source's.
func (v *vm) storeOf(ctx *simulator.Context, location *types.VirtualMachineRelocateSpec) (*simulator.Datastore, types.BaseMethodFault) {
	if location.Datastore != nil {
		store, ok := ctx.Map.Get(*location.Datastore).(*simulator.Datastore)
		if !ok {
			return nil, &types.ManagedObjectNotFound{Obj: *location.Datastore}
		}
		return store, nil
	}
	store := datastoreIn(ctx, v.lab.site.datacenter, v.Config.Files.VmPathName)
	if store == nil {
		return nil, &types.InvalidDatastorePath{DatastorePath: v.Config.Files.VmPathName}
	}
	return store, nil
}

func (l *Lab) cloneHost(ctx *simulator.Context, location *types.VirtualMachineRelocateSpec, at place, store *simulator.Datastore, then wish) (*esx, types.BaseMethodFault) {
	if location.Host == nil {
		return l.home(ctx, at.hosts, store, requestOf("", then))
	}
	host := l.esxOf(location.Host)
	if host == nil || !slices.Contains(at.hosts, host) {
		return nil, &types.InvalidArgument{InvalidProperty: "spec.location.host"}
	}
	why := &reasons{}
	if len(l.openHosts(ctx, []*esx{host}, store, why)) == 0 {
		return nil, why.fault.Error[0].Fault
	}
	return host, nil
}

// inherit gives the clone the source's settings and new addresses; take the clone's lock.
func (v *vm) inherit(ctx *simulator.Context, made *simulator.VirtualMachine, req *types.CloneVM_Task) {
	var source types.VirtualMachineConfigInfo
	locked(ctx, v.VirtualMachine, func() { source = *v.Config })
	config := made.Config
	config.Firmware, config.Flags, config.Annotation = source.Firmware, source.Flags, source.Annotation
	config.MemoryReservationLockedToMax = source.MemoryReservationLockedToMax
	config.CpuHotAddEnabled, config.CpuHotRemoveEnabled = source.CpuHotAddEnabled, source.CpuHotRemoveEnabled
	config.MemoryHotAddEnabled, config.NestedHVEnabled = source.MemoryHotAddEnabled, source.NestedHVEnabled
	config.CpuAllocation = blended(source.CpuAllocation, &types.ResourceAllocationInfo{})
	config.MemoryAllocation = blended(source.MemoryAllocation, &types.ResourceAllocationInfo{})
	config.LatencySensitivity = blended(source.LatencySensitivity, &types.LatencySensitivity{})
	config.BootOptions = blended(source.BootOptions, &types.VirtualMachineBootOptions{})
	config.Tools, config.SwapPlacement = blended(source.Tools, &types.ToolsConfigInfo{}), source.SwapPlacement
	config.CpuAffinity, config.MemoryAffinity = source.CpuAffinity, source.MemoryAffinity
	config.DeviceGroups, config.NumaInfo = source.DeviceGroups, source.NumaInfo
	config.FixedPassthruHotPlugEnabled = source.FixedPassthruHotPlugEnabled
	config.Hardware.SimultaneousThreads = source.Hardware.SimultaneousThreads
	config.Hardware.MotherboardLayout = source.Hardware.MotherboardLayout
	config.ExtraConfig = mergeExtraConfig(source.ExtraConfig, nil)
	v.lab.renewAddresses(made)
	if linked(&req.Spec) {
		linkDisks(&source, config)
	}
	ctx.Map.Update(ctx, made, []types.PropertyChange{{Name: "config.extraConfig", Val: config.ExtraConfig}})
}

// renewAddresses gives each adapter an address of its own.
func (l *Lab) renewAddresses(made *simulator.VirtualMachine) {
	for _, device := range made.Config.Hardware.Device {
		adapter, ok := device.(types.BaseVirtualEthernetCard)
		if !ok {
			continue
		}
		card := adapter.GetVirtualEthernetCard()
		if card.AddressType == string(types.VirtualEthernetCardMacTypeManual) {
			continue
		}
		card.MacAddress, card.AddressType = l.nextMAC(), string(types.VirtualEthernetCardMacTypeAssigned)
		for i := range made.Guest.Net {
			if made.Guest.Net[i].DeviceConfigId == card.Key {
				made.Guest.Net[i].MacAddress = card.MacAddress
			}
		}
	}
}

// linkDisks shows the clone's disks as children of the source's, in order.
func linkDisks(source, config *types.VirtualMachineConfigInfo) {
	parents := diskBackings(source)
	for i, backing := range diskBackings(config) {
		if i < len(parents) {
			parent := *parents[i]
			backing.Parent = &parent
		}
	}
}

func diskBackings(config *types.VirtualMachineConfigInfo) []*types.VirtualDiskFlatVer2BackingInfo {
	var backings []*types.VirtualDiskFlatVer2BackingInfo
	for _, device := range config.Hardware.Device {
		if disk, ok := device.(*types.VirtualDisk); ok {
			if backing, ok := disk.Backing.(*types.VirtualDiskFlatVer2BackingInfo); ok {
				backings = append(backings, backing)
			}
		}
	}
	return backings
}

// applyClone applies spec.config; take the clone's lock. The name is the clone's already.
func (l *Lab) applyClone(ctx *simulator.Context, made *simulator.VirtualMachine, config *types.VirtualMachineConfigSpec, at place) types.BaseMethodFault {
	spec := *config
	spec.Name, spec.ChangeVersion, spec.Files = "", "", nil
	now := present(made.Config, types.VirtualMachinePowerStatePoweredOff)
	if fault := l.checkSpec(ctx, now, &spec, at); fault != nil {
		return fault
	}
	return l.apply(ctx, made, &spec)
}

func (l *Lab) discard(ctx *simulator.Context, made *simulator.VirtualMachine) {
	_, _ = delegate(ctx, made, func() types.ManagedObjectReference {
		body := made.DestroyTask(ctx, &types.Destroy_Task{This: made.Self})
		return body.(*methods.Destroy_TaskBody).Res.Returnval
	})
}
