package server

import (
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	esxdefaults "github.com/vmware/govmomi/simulator/esx"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
)

// duplicate lets the simulator make a VM with the source's hardware; the rest of the configuration is inherit's.
//
// The simulator's own CloneVMTask does it by a task within a task and holds the source's lock meanwhile, so that clones
// of one template wait for each other (govmomi 0.56.0).
func (v *vm) duplicate(ctx *simulator.Context, req *types.CloneVM_Task) (*simulator.VirtualMachine, types.BaseMethodFault) {
	into := ctx.Map.Get(req.Folder).(*simulator.Folder)
	var spec types.VirtualMachineConfigSpec
	locked(ctx, v.VirtualMachine, func() { spec = v.likeness(ctx, req) })
	result, fault := delegate(ctx, into, func() types.ManagedObjectReference {
		body := into.CreateVMTask(ctx, &types.CreateVM_Task{
			This: into.Self, Config: spec, Pool: *req.Spec.Location.Pool, Host: req.Spec.Location.Host,
		})
		return body.(*methods.CreateVM_TaskBody).Res.Returnval
	})
	if fault != nil {
		return nil, fault
	}
	return machineOf(ctx, result.(types.ManagedObjectReference)), nil
}

// likeness is a spec for a VM with the source's hardware, on the clone's datastore; take the source's lock.
func (v *vm) likeness(ctx *simulator.Context, req *types.CloneVM_Task) types.VirtualMachineConfigSpec {
	hardware := &v.Config.Hardware
	return types.VirtualMachineConfigSpec{
		Name:                req.Name,
		Version:             v.Config.Version,
		GuestId:             v.Config.GuestId,
		Files:               &types.VirtualMachineFileInfo{VmPathName: v.home(ctx, req)},
		NumCPUs:             hardware.NumCPU,
		NumCoresPerSocket:   hardware.NumCoresPerSocket,
		MemoryMB:            int64(hardware.MemoryMB),
		VirtualICH7MPresent: hardware.VirtualICH7MPresent,
		VirtualSMCPresent:   hardware.VirtualSMCPresent,
		DeviceChange:        sameDevices(hardware.Device),
	}
}

// home is the folder of the clone's files.
func (v *vm) home(ctx *simulator.Context, req *types.CloneVM_Task) string {
	home := object.DatastorePath{Path: req.Name}
	var source object.DatastorePath
	source.FromString(v.Config.Files.VmPathName)
	home.Datastore = source.Datastore
	if named := req.Spec.Location.Datastore; named != nil {
		home.Datastore = ctx.Map.Get(*named).(*simulator.Datastore).Name
	}
	return home.String()
}

// sameDevices adds copies of the devices, but those that the simulator gives every VM.
func sameDevices(devices object.VirtualDeviceList) []types.BaseVirtualDeviceConfigSpec {
	given := object.VirtualDeviceList(esxdefaults.VirtualDevice)
	var changes []types.BaseVirtualDeviceConfigSpec
	for _, device := range devices {
		if given.Find(devices.Name(device)) != nil {
			continue
		}
		change := &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationAdd, Device: replica(device)}
		if disk, ok := change.Device.(*types.VirtualDisk); ok {
			change.FileOperation = types.VirtualDeviceConfigSpecFileOperationCreate
			if file, ok := disk.Backing.(*types.VirtualDiskFlatVer2BackingInfo); ok {
				file.FileName, file.Uuid, file.Parent = "", "", nil // a file of its own, beside the clone's others
			}
		}
		changes = append(changes, change)
	}
	return changes
}
