package server

import (
	"slices"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// CreateVMTask makes a VM as asked, or refuses it before anything is made.
func (f *folder) CreateVMTask(ctx *simulator.Context, req *types.CreateVM_Task) soap.HasFault {
	request := *req
	task := f.lab.start(ctx, job{Method: "CreateVM_Task", Entity: f, Name: req.Config.Name,
		Run: func(ctx *simulator.Context, _ *simulator.Task) (types.AnyType, types.BaseMethodFault) {
			return f.create(ctx, &request)
		}})
	return &methods.CreateVM_TaskBody{Res: &types.CreateVM_TaskResponse{Returnval: task}}
}

func (f *folder) create(ctx *simulator.Context, req *types.CreateVM_Task) (types.AnyType, types.BaseMethodFault) {
	l := f.lab
	l.provisioning.creating.Lock()
	defer l.provisioning.creating.Unlock()
	if fault := f.checkNew(ctx, req); fault != nil {
		return nil, fault
	}
	at, store, fault := l.destination(ctx, req)
	if fault != nil {
		return nil, fault
	}
	fillDefaults(&req.Config, at)
	blank := present(blankConfig(&req.Config), types.VirtualMachinePowerStatePoweredOff)
	if fault := l.checkSpec(ctx, blank, &req.Config, at); fault != nil {
		return nil, fault
	}
	if req.Host == nil {
		home, fault := l.home(ctx, at.hosts, store, requestOf("", planned(blank, &req.Config)))
		if fault != nil {
			return nil, fault
		}
		req.Host = &home.system.Self
	}
	return f.make(ctx, req)
}

func (f *folder) checkNew(ctx *simulator.Context, req *types.CreateVM_Task) types.BaseMethodFault {
	switch {
	case !slices.Contains(f.ChildType, "VirtualMachine"):
		return &types.InvalidFolder{Target: f.Self}
	case req.Config.Name == "":
		return &types.InvalidVmConfig{Property: "configSpec.name"}
	case req.Config.Files == nil || req.Config.Files.VmPathName == "":
		return &types.InvalidVmConfig{Property: "configSpec.files.vmPathName"}
	}
	return duplicate(ctx, &f.Self, req.Config.Name)
}

// destination is the cluster, the hosts that may run the VM, and its datastore.
func (l *Lab) destination(ctx *simulator.Context, req *types.CreateVM_Task) (place, *simulator.Datastore, types.BaseMethodFault) {
	cluster := l.clusterOf(ctx, req.Pool)
	if cluster == nil {
		return place{}, nil, &types.InvalidArgument{InvalidProperty: "pool"}
	}
	at := place{hosts: l.hostsOf(cluster), datacenter: l.site.datacenter}
	store := datastoreIn(ctx, at.datacenter, req.Config.Files.VmPathName)
	if store == nil {
		return at, nil, &types.InvalidDatastorePath{DatastorePath: req.Config.Files.VmPathName}
	}
	if req.Host == nil {
		return at, store, nil
	}
	host := l.esxOf(req.Host)
	if host == nil || host.cluster != cluster {
		return at, nil, &types.InvalidArgument{InvalidProperty: "host"}
	}
	at.hosts = []*esx{host}
	why := &reasons{}
	if len(l.openHosts(ctx, at.hosts, store, why)) == 0 {
		return at, nil, why.fault.Error[0].Fault
	}
	return at, store, nil
}

// fillDefaults: a VM without a version gets the newest that its host knows.
func fillDefaults(spec *types.VirtualMachineConfigSpec, at place) {
	if spec.Version == "" && len(at.hosts) > 0 && at.hosts[0].model.MaxHardwareVersion > 0 {
		spec.Version = types.HardwareVersion(at.hosts[0].model.MaxHardwareVersion).String()
	}
	if spec.Firmware == "" {
		spec.Firmware = string(types.GuestOsDescriptorFirmwareTypeBios)
	}
	asUsualIn(spec)
}

func blankConfig(spec *types.VirtualMachineConfigSpec) *types.VirtualMachineConfigInfo {
	return &types.VirtualMachineConfigInfo{Version: spec.Version, Firmware: spec.Firmware}
}

// make lets the simulator make the VM, without what would end its process, and completes it.
func (f *folder) make(ctx *simulator.Context, req *types.CreateVM_Task) (types.AnyType, types.BaseMethodFault) {
	l, spec := f.lab, &req.Config
	l.dress(nil, spec)
	extra := spec.ExtraConfig
	rest := *req
	rest.Config.ExtraConfig = nil
	result, fault := delegate(ctx, f, func() types.ManagedObjectReference {
		body := f.Folder.CreateVMTask(ctx, &rest)
		return body.(*methods.CreateVM_TaskBody).Res.Returnval
	})
	if fault != nil {
		return nil, fault
	}
	machine := machineOf(ctx, result.(types.ManagedObjectReference))
	locked(ctx, machine, func() { l.keep(ctx, machine, spec, extra) })
	return result, nil
}

// planned is a configuration with the spec's settings and added devices.
func planned(now wish, spec *types.VirtualMachineConfigSpec) wish {
	then := now.with(spec)
	if spec.MemoryReservationLockedToMax != nil {
		then.locked = *spec.MemoryReservationLockedToMax
	}
	if spec.MemoryAllocation != nil {
		then.memory = blended(then.memory, spec.MemoryAllocation)
	}
	devices := object.VirtualDeviceList(then.devices)
	for _, change := range spec.DeviceChange {
		device := change.GetVirtualDeviceConfigSpec()
		if device.Operation != types.VirtualDeviceConfigSpecOperationAdd {
			devices = slices.DeleteFunc(slices.Clone(devices), func(d types.BaseVirtualDevice) bool {
				return d.GetVirtualDevice().Key == device.Device.GetVirtualDevice().Key
			})
		}
		if device.Operation != types.VirtualDeviceConfigSpecOperationRemove {
			devices = append(devices, device.Device)
		}
	}
	then.devices = devices
	return then
}
