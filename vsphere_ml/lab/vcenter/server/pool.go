package server

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// MoveIntoResourcePool moves VMs, on or off, to a pool of the cluster they are in. The simulator has no such call.
func (p *pool) MoveIntoResourcePool(ctx *simulator.Context, req *types.MoveIntoResourcePool) soap.HasFault {
	machines := make([]*simulator.VirtualMachine, 0, len(req.List))
	for _, reference := range req.List {
		machine, fault := p.movable(ctx, reference)
		if fault != nil {
			return &methods.MoveIntoResourcePoolBody{Fault_: simulator.Fault("", fault)}
		}
		machines = append(machines, machine)
	}
	for _, machine := range machines {
		p.adopt(ctx, machine)
	}
	return &methods.MoveIntoResourcePoolBody{Res: &types.MoveIntoResourcePoolResponse{}}
}

// movable is the VM of that reference, when it may be in this pool.
func (p *pool) movable(ctx *simulator.Context, reference types.ManagedObjectReference) (*simulator.VirtualMachine, types.BaseMethodFault) {
	switch machine := ctx.Map.Get(reference).(type) {
	case nil:
		return nil, &types.ManagedObjectNotFound{Obj: reference}
	case *simulator.VirtualMachine:
		if machine.ResourcePool != nil && p.lab.clusterOf(ctx, *machine.ResourcePool) == p.lab.clusterOf(ctx, p.Self) {
			return machine, nil
		}
	}
	return nil, &types.InvalidArgument{InvalidProperty: "list"}
}

func (p *pool) adopt(ctx *simulator.Context, machine *simulator.VirtualMachine) {
	if former, ok := ctx.Map.Get(*machine.ResourcePool).(*simulator.ResourcePool); ok {
		ctx.Map.RemoveReference(ctx, former, &former.Vm, machine.Self)
	}
	ctx.Map.AddReference(ctx, p.ResourcePool, &p.Vm, machine.Self)
	locked(ctx, machine, func() {
		ctx.Map.Update(ctx, machine, []types.PropertyChange{{Name: "resourcePool", Val: &p.Self}})
	})
}
