package server

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// UpgradeVMTask raises the VM's hardware version, to the newest its host knows if none is given.
func (v *vm) UpgradeVMTask(ctx *simulator.Context, req *types.UpgradeVM_Task) soap.HasFault {
	version := req.Version
	task := v.lab.start(ctx, job{Method: "UpgradeVM_Task", Entity: v, Name: v.Name,
		Run: func(ctx *simulator.Context, _ *simulator.Task) (result types.AnyType, fault types.BaseMethodFault) {
			locked(ctx, v.VirtualMachine, func() { fault = v.upgrade(ctx, version) })
			return nil, fault
		}})
	return &methods.UpgradeVM_TaskBody{Res: &types.UpgradeVM_TaskResponse{Returnval: task}}
}

func (v *vm) upgrade(ctx *simulator.Context, version string) types.BaseMethodFault {
	host := v.lab.esxOf(v.Runtime.Host)
	if v.Runtime.PowerState != types.VirtualMachinePowerStatePoweredOff {
		return &types.InvalidPowerState{
			RequestedState: types.VirtualMachinePowerStatePoweredOff, ExistingState: v.Runtime.PowerState,
		}
	}
	if v.Config.Template || host == nil {
		return &types.InvalidState{}
	}
	newest := host.model.MaxHardwareVersion
	target := newest
	if version != "" {
		target = hardwareVersion(version)
	}
	switch {
	case target == 0:
		return &types.InvalidArgument{InvalidProperty: "version"}
	case newest > 0 && target > newest:
		return &types.NotSupported{}
	case target <= hardwareVersion(v.Config.Version):
		return &types.AlreadyUpgraded{}
	}
	text := types.HardwareVersion(target).String()
	ctx.Map.Update(ctx, v.VirtualMachine, []types.PropertyChange{
		{Name: "config.version", Val: text}, {Name: "summary.config.hwVersion", Val: text},
	})
	return nil
}
