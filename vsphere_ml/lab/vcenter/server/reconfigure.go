package server

import (
	"reflect"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// ReconfigVMTask changes the VM as asked, whole, or refuses it.
func (v *vm) ReconfigVMTask(ctx *simulator.Context, req *types.ReconfigVM_Task) soap.HasFault {
	spec := req.Spec
	task := v.lab.start(ctx, job{Method: "ReconfigVM_Task", Entity: v, Name: v.Name,
		Run: func(ctx *simulator.Context, _ *simulator.Task) (types.AnyType, types.BaseMethodFault) {
			return nil, v.lab.reconfigure(ctx, v.VirtualMachine, &spec)
		}})
	return &methods.ReconfigVM_TaskBody{Res: &types.ReconfigVM_TaskResponse{Returnval: task}}
}

// reconfigure checks the spec against the VM as it is and applies all of it.
func (l *Lab) reconfigure(ctx *simulator.Context, machine *simulator.VirtualMachine, spec *types.VirtualMachineConfigSpec) (fault types.BaseMethodFault) {
	l.provisioning.creating.Lock()
	defer l.provisioning.creating.Unlock()
	locked(ctx, machine, func() {
		if fault = l.checkReconfigure(ctx, machine, spec); fault == nil {
			fault = l.apply(ctx, machine, spec)
		}
	})
	return fault
}

func (l *Lab) checkReconfigure(ctx *simulator.Context, machine *simulator.VirtualMachine, spec *types.VirtualMachineConfigSpec) types.BaseMethodFault {
	config := machine.Config
	if config == nil || ctx.Map.Get(machine.Self) == nil {
		return &types.ManagedObjectNotFound{Obj: machine.Self}
	}
	if spec.ChangeVersion != "" && spec.ChangeVersion != config.ChangeVersion {
		return &types.ConcurrentAccess{}
	}
	if config.Template && !onlyNames(spec) {
		return &types.NotSupported{}
	}
	if fault := l.checkProfiles(reconfiguredProfiles(spec)); fault != nil {
		return fault
	}
	if spec.Name != "" && spec.Name != machine.Name {
		if fault := duplicate(ctx, machine.Parent, spec.Name); fault != nil {
			return fault
		}
	}
	now := present(config, machine.Runtime.PowerState)
	if fault := checkRunning(now, config, spec); fault != nil {
		return fault
	}
	return l.checkSpec(ctx, now, spec, l.placeOf(machine))
}

// onlyNames: a template takes another name or annotation, nothing else.
func onlyNames(spec *types.VirtualMachineConfigSpec) bool {
	allowed := types.VirtualMachineConfigSpec{Name: spec.Name, Annotation: spec.Annotation, ChangeVersion: spec.ChangeVersion}
	return reflect.DeepEqual(*spec, allowed)
}

// duplicate is the refusal of a name that the folder has already.
func duplicate(ctx *simulator.Context, parent *types.ManagedObjectReference, name string) types.BaseMethodFault {
	if parent == nil {
		return nil
	}
	folder, ok := ctx.Map.Get(*parent).(*simulator.Folder)
	if !ok {
		return nil
	}
	var children []types.ManagedObjectReference
	locked(ctx, folder, func() { children = append(children, folder.ChildEntity...) })
	if other := ctx.Map.FindByName(name, children); other != nil {
		return &types.DuplicateName{Name: name, Object: other.Reference()}
	}
	return nil
}

// checkRunning: what a running VM does not take.
func checkRunning(now wish, config *types.VirtualMachineConfigInfo, spec *types.VirtualMachineConfigSpec) types.BaseMethodFault {
	if !now.poweredOn {
		return nil
	}
	switch {
	case spec.NumCPUs != 0 && spec.NumCPUs != now.cpus && !isTrue(config.CpuHotAddEnabled):
		return &types.CpuHotPlugNotSupported{}
	case spec.MemoryMB != 0 && spec.MemoryMB != now.memoryMB && !isTrue(config.MemoryHotAddEnabled):
		return &types.MemoryHotPlugNotSupported{}
	case spec.Firmware != "" && spec.Firmware != now.firmware, spec.Version != "" && hardwareVersion(spec.Version) != now.version,
		spec.VirtualNuma != nil, spec.DeviceGroups != nil:
		return &types.InvalidPowerState{
			RequestedState: types.VirtualMachinePowerStatePoweredOff, ExistingState: types.VirtualMachinePowerStatePoweredOn,
		}
	}
	return nil
}

// apply lets the simulator do its part and stores what it drops; take the VM's lock.
func (l *Lab) apply(ctx *simulator.Context, machine *simulator.VirtualMachine, spec *types.VirtualMachineConfigSpec) types.BaseMethodFault {
	l.dress(object.VirtualDeviceList(machine.Config.Hardware.Device), spec)
	blend(machine.Config, spec)
	extra := spec.ExtraConfig
	rest := *spec
	rest.ExtraConfig, rest.ChangeVersion = nil, ""
	_, fault := delegate(ctx, machine, func() types.ManagedObjectReference {
		body := machine.ReconfigVMTask(ctx, &types.ReconfigVM_Task{This: machine.Self, Spec: rest})
		return body.(*methods.ReconfigVM_TaskBody).Res.Returnval
	})
	if fault != nil {
		return fault
	}
	l.keep(ctx, machine, spec, extra)
	l.storage.set(machine.Self, reconfiguredProfiles(spec))
	return nil
}
