package server

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// PowerOnVMTask starts the VM on its own host, with all its devices or not at all.
func (v *vm) PowerOnVMTask(ctx *simulator.Context, req *types.PowerOnVM_Task) soap.HasFault {
	host := v.lab.esxOf(req.Host)
	task := v.lab.startPowerOn(ctx, v.VirtualMachine, func(ctx *simulator.Context) types.BaseMethodFault {
		return v.lab.powerOn(ctx, v.VirtualMachine, host)
	})
	return &methods.PowerOnVM_TaskBody{Res: &types.PowerOnVM_TaskResponse{Returnval: task}}
}

func (l *Lab) startPowerOn(ctx *simulator.Context, machine *simulator.VirtualMachine, work func(*simulator.Context) types.BaseMethodFault) types.ManagedObjectReference {
	return l.start(ctx, job{Method: "PowerOnVM_Task", Entity: machine, Name: machine.Name,
		Run: func(ctx *simulator.Context, _ *simulator.Task) (types.AnyType, types.BaseMethodFault) {
			return nil, work(ctx)
		}})
}

// powerOn starts the VM on the host, or on its own if none is given.
func (l *Lab) powerOn(ctx *simulator.Context, machine *simulator.VirtualMachine, host *esx) types.BaseMethodFault {
	host, fault := l.admitAndStart(ctx, machine, host)
	if host != nil {
		l.refresh(ctx, host.name)
	}
	if fault == nil {
		l.showTools(ctx, machine, true)
		l.guestBegins(ctx, machine, "power-on")
	}
	return fault
}

// admitAndStart takes one VM at a time: what HA keeps for a failure is counted over the cluster, so two VMs that are
// powered on at once must not both have the last slot.
func (l *Lab) admitAndStart(ctx *simulator.Context, machine *simulator.VirtualMachine, host *esx) (on *esx, fault types.BaseMethodFault) {
	l.admission.Lock()
	defer l.admission.Unlock()
	locked(ctx, machine, func() {
		if on = host; on == nil {
			on = l.esxOf(machine.Runtime.Host)
		}
		if fault = l.checkPowerOn(ctx, machine, on); fault == nil {
			fault = l.bookAndStart(ctx, machine, on)
		}
	})
	return on, fault
}

func (l *Lab) checkPowerOn(ctx *simulator.Context, machine *simulator.VirtualMachine, host *esx) types.BaseMethodFault {
	switch {
	case machine.Config == nil || ctx.Map.Get(machine.Self) == nil:
		return &types.ManagedObjectNotFound{Obj: machine.Self}
	case machine.Config.Template:
		return &types.InvalidState{}
	case machine.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn:
		return &types.InvalidPowerState{
			RequestedState: types.VirtualMachinePowerStatePoweredOn, ExistingState: types.VirtualMachinePowerStatePoweredOn,
		}
	case host == nil:
		return &types.InvalidArgument{InvalidProperty: "host"}
	}
	if fault := l.checkHost(ctx, host); fault != nil {
		return fault
	}
	if fault := l.keptForFailure(ctx, machine, host); fault != nil {
		return fault
	}
	return l.checkStart(present(machine.Config, machine.Runtime.PowerState), host)
}

func (l *Lab) bookAndStart(ctx *simulator.Context, machine *simulator.VirtualMachine, host *esx) types.BaseMethodFault {
	request := requestOf(machine.Self.Value, present(machine.Config, machine.Runtime.PowerState))
	if _, refusal := l.Rack.Book(host.name, request); refusal != nil {
		return l.refusalFault(ctx, refusal)
	}
	l.moveTo(ctx, machine, host)
	_, fault := delegate(ctx, machine, func() types.ManagedObjectReference {
		body := machine.PowerOnVMTask(ctx, &types.PowerOnVM_Task{This: machine.Self})
		return body.(*methods.PowerOnVM_TaskBody).Res.Returnval
	})
	if fault != nil {
		l.Rack.Free(machine.Self.Value)
		return fault
	}
	l.showAdapters(ctx, machine, host)
	return nil
}

// PowerOffVMTask ends the VM and gives back what it had booked.
func (v *vm) PowerOffVMTask(ctx *simulator.Context, _ *types.PowerOffVM_Task) soap.HasFault {
	task := v.ending(ctx, "PowerOffVM_Task", func(ctx *simulator.Context) types.ManagedObjectReference {
		body := v.VirtualMachine.PowerOffVMTask(ctx, &types.PowerOffVM_Task{This: v.Self})
		return body.(*methods.PowerOffVM_TaskBody).Res.Returnval
	})
	return &methods.PowerOffVM_TaskBody{Res: &types.PowerOffVM_TaskResponse{Returnval: task}}
}

// SuspendVMTask suspends the VM and gives back what it had booked.
func (v *vm) SuspendVMTask(ctx *simulator.Context, _ *types.SuspendVM_Task) soap.HasFault {
	task := v.lab.start(ctx, job{Method: "SuspendVM_Task", Entity: v, Name: v.Name,
		Run: func(ctx *simulator.Context, _ *simulator.Task) (types.AnyType, types.BaseMethodFault) {
			if now := v.now(ctx); now.poweredOn && tiedDevice(now) != "" {
				return nil, &types.NotSupported{}
			}
			return nil, v.end(ctx, v.suspend)
		}})
	return &methods.SuspendVM_TaskBody{Res: &types.SuspendVM_TaskResponse{Returnval: task}}
}

func (v *vm) suspend(ctx *simulator.Context) types.ManagedObjectReference {
	body := v.VirtualMachine.SuspendVMTask(ctx, &types.SuspendVM_Task{This: v.Self})
	return body.(*methods.SuspendVM_TaskBody).Res.Returnval
}

// DestroyTask removes the VM, which must be powered off.
func (v *vm) DestroyTask(ctx *simulator.Context, _ *types.Destroy_Task) soap.HasFault {
	task := v.ending(ctx, "Destroy_Task", v.destroy)
	return &methods.Destroy_TaskBody{Res: &types.Destroy_TaskResponse{Returnval: task}}
}

func (v *vm) destroy(ctx *simulator.Context) types.ManagedObjectReference {
	body := v.VirtualMachine.DestroyTask(ctx, &types.Destroy_Task{This: v.Self})
	return body.(*methods.Destroy_TaskBody).Res.Returnval
}

// ending is a task after which the VM holds nothing.
func (v *vm) ending(ctx *simulator.Context, method string, begin func(*simulator.Context) types.ManagedObjectReference) types.ManagedObjectReference {
	return v.lab.start(ctx, job{Method: method, Entity: v, Name: v.Name,
		Run: func(ctx *simulator.Context, _ *simulator.Task) (types.AnyType, types.BaseMethodFault) {
			return nil, v.end(ctx, begin)
		}})
}

func (v *vm) end(ctx *simulator.Context, begin func(*simulator.Context) types.ManagedObjectReference) types.BaseMethodFault {
	if ctx.Map.Get(v.Self) == nil {
		return &types.ManagedObjectNotFound{Obj: v.Self}
	}
	if fault := v.lab.reachable(ctx, v.VirtualMachine); fault != nil {
		return fault
	}
	_, fault := delegate(ctx, v.VirtualMachine, func() types.ManagedObjectReference { return begin(ctx) })
	if fault == nil {
		v.lab.release(ctx, v.VirtualMachine)
	}
	return fault
}

// reachable: vCenter can ask nothing of a VM whose host does not answer.
func (l *Lab) reachable(ctx *simulator.Context, machine *simulator.VirtualMachine) types.BaseMethodFault {
	var on *types.ManagedObjectReference
	locked(ctx, machine, func() { on = machine.Runtime.Host })
	host := l.esxOf(on)
	if host == nil {
		return nil
	}
	switch fault := l.checkHost(ctx, host).(type) {
	case *types.HostNotReachable, *types.HostNotConnected:
		return fault
	}
	return nil
}

// release gives back what the VM had booked.
func (l *Lab) release(ctx *simulator.Context, machine *simulator.VirtualMachine) {
	l.Rack.Free(machine.Self.Value)
	if host := l.esxOf(machine.Runtime.Host); host != nil {
		l.refresh(ctx, host.name)
	}
	l.showTools(ctx, machine, false)
	l.guestEnds(ctx, machine)
	if ctx.Map.Get(machine.Self) == nil {
		l.origins.forget(machine.Self)
		_, _ = l.customizations.take(machine.Self)
	}
}

// ResetVMTask restarts the guest. The VM keeps its process on the host, and so its devices.
func (v *vm) ResetVMTask(ctx *simulator.Context, _ *types.ResetVM_Task) soap.HasFault {
	task := v.lab.start(ctx, job{Method: "ResetVM_Task", Entity: v, Name: v.Name,
		Run: func(ctx *simulator.Context, _ *simulator.Task) (types.AnyType, types.BaseMethodFault) {
			return nil, v.reset(ctx)
		}})
	return &methods.ResetVM_TaskBody{Res: &types.ResetVM_TaskResponse{Returnval: task}}
}

func (v *vm) reset(ctx *simulator.Context) (fault types.BaseMethodFault) {
	locked(ctx, v.VirtualMachine, func() {
		if v.Runtime.PowerState != types.VirtualMachinePowerStatePoweredOn {
			fault = &types.InvalidPowerState{RequestedState: types.VirtualMachinePowerStatePoweredOn, ExistingState: v.Runtime.PowerState}
		}
	})
	if fault == nil {
		v.lab.guestBegins(ctx, v.VirtualMachine, "reset")
	}
	return fault
}

// UnregisterVM takes the VM from the inventory.
func (v *vm) UnregisterVM(ctx *simulator.Context, req *types.UnregisterVM) soap.HasFault {
	body := v.VirtualMachine.UnregisterVM(ctx, req)
	if body.Fault() == nil {
		v.lab.release(ctx, v.VirtualMachine)
	}
	return body
}
