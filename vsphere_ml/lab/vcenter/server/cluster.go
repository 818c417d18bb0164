package server

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// PowerOnMultiVMTask starts VMs where DRS would: each on the first host of its cluster with room, its own before
// the others. Its result names a task for each VM attempted and a fault for each other.
func (d *datacenter) PowerOnMultiVMTask(ctx *simulator.Context, req *types.PowerOnMultiVM_Task) soap.HasFault {
	machines := req.Vm
	task := d.lab.start(ctx, job{Method: "PowerOnMultiVM_Task", Entity: d.Datacenter, Name: d.Name,
		Run: func(ctx *simulator.Context, _ *simulator.Task) (types.AnyType, types.BaseMethodFault) {
			return d.lab.powerOnAll(ctx, machines), nil
		}})
	return &methods.PowerOnMultiVM_TaskBody{Res: &types.PowerOnMultiVM_TaskResponse{Returnval: task}}
}

func (l *Lab) powerOnAll(ctx *simulator.Context, references []types.ManagedObjectReference) types.ClusterPowerOnVmResult {
	var result types.ClusterPowerOnVmResult
	for _, reference := range references {
		machine := machineOf(ctx, reference)
		if machine == nil {
			result.NotAttempted = append(result.NotAttempted, types.ClusterNotAttemptedVmInfo{
				Vm: reference, Fault: localized(&types.ManagedObjectNotFound{Obj: reference}),
			})
			continue
		}
		task := l.startPowerOn(ctx, machine, func(ctx *simulator.Context) types.BaseMethodFault {
			return l.powerOnAnywhere(ctx, machine)
		})
		result.Attempted = append(result.Attempted, types.ClusterAttemptedVmInfo{Vm: reference, Task: &task})
	}
	return result
}

// powerOnAnywhere tries host after host. Booking and start are one step on each, so two VMs never take one place.
func (l *Lab) powerOnAnywhere(ctx *simulator.Context, machine *simulator.VirtualMachine) types.BaseMethodFault {
	why := &reasons{}
	for _, host := range l.openHosts(ctx, l.candidates(machine), nil, why) {
		fault := l.ruledOut(ctx, machine, host)
		if fault == nil {
			fault = l.powerOn(ctx, machine, host)
		}
		switch fault.(type) {
		case nil:
			return nil
		case *types.InvalidPowerState, *types.ManagedObjectNotFound:
			return fault // no host's doing
		}
		why.add(host, fault)
	}
	if len(why.fault.Error) == 0 {
		return &types.InvalidState{}
	}
	return &why.fault
}

// ruledOut: an enabled anti-affinity rule keeps its VMs on different hosts.
func (l *Lab) ruledOut(ctx *simulator.Context, machine *simulator.VirtualMachine, host *esx) types.BaseMethodFault {
	for _, rule := range l.rulesOf(ctx, host.cluster) {
		apart, ok := rule.(*types.ClusterAntiAffinityRuleSpec)
		if !ok || !isTrue(apart.Enabled) || !slices.Contains(apart.Vm, machine.Self) {
			continue
		}
		for _, other := range apart.Vm {
			if other != machine.Self && runsOn(ctx, other, host) {
				return &types.RuleViolation{Host: &host.system.Self, Rule: apart}
			}
		}
	}
	return nil
}

func (l *Lab) rulesOf(ctx *simulator.Context, cluster *simulator.ClusterComputeResource) (rules []types.BaseClusterRuleInfo) {
	locked(ctx, cluster, func() {
		if config, ok := cluster.ConfigurationEx.(*types.ClusterConfigInfoEx); ok {
			rules = slices.Clone(config.Rule)
		}
	})
	return rules
}

func runsOn(ctx *simulator.Context, reference types.ManagedObjectReference, host *esx) (runs bool) {
	machine := machineOf(ctx, reference)
	if machine == nil {
		return false
	}
	locked(ctx, machine, func() {
		runs = machine.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn &&
			machine.Runtime.Host != nil && *machine.Runtime.Host == host.system.Self
	})
	return runs
}

// moveTo changes a powered-off VM's host; take the VM's lock.
func (l *Lab) moveTo(ctx *simulator.Context, machine *simulator.VirtualMachine, host *esx) {
	from := l.esxOf(machine.Runtime.Host)
	if from == host {
		return
	}
	if from != nil {
		locked(ctx, from.system, func() { ctx.Map.RemoveReference(ctx, from.system, &from.system.Vm, machine.Self) })
	}
	locked(ctx, host.system, func() { ctx.Map.AppendReference(ctx, host.system, &host.system.Vm, machine.Self) })
	reference := host.system.Self
	ctx.Map.Update(ctx, machine, []types.PropertyChange{
		{Name: "runtime.host", Val: &reference}, {Name: "summary.runtime.host", Val: &reference},
	})
}

// ReconfigureComputeResourceTask changes rules, groups and DRS of the cluster.
func (c *cluster) ReconfigureComputeResourceTask(ctx *simulator.Context, req *types.ReconfigureComputeResource_Task) soap.HasFault {
	request := *req
	task := c.lab.start(ctx, job{Method: "ReconfigureComputeResource_Task", Entity: c.ClusterComputeResource, Name: c.Name,
		Run: func(ctx *simulator.Context, _ *simulator.Task) (types.AnyType, types.BaseMethodFault) {
			return c.reconfigure(ctx, &request)
		}})
	return &methods.ReconfigureComputeResource_TaskBody{Res: &types.ReconfigureComputeResource_TaskResponse{Returnval: task}}
}

func (c *cluster) reconfigure(ctx *simulator.Context, req *types.ReconfigureComputeResource_Task) (types.AnyType, types.BaseMethodFault) {
	if spec, ok := req.Spec.(*types.ClusterConfigSpecEx); ok {
		if fault := checkRules(ctx, spec.RulesSpec); fault != nil {
			return nil, fault
		}
	}
	return delegate(ctx, c.ClusterComputeResource, func() types.ManagedObjectReference {
		body := c.ClusterComputeResource.ReconfigureComputeResourceTask(ctx, req)
		return body.(*methods.ReconfigureComputeResource_TaskBody).Res.Returnval
	})
}

// checkRules: a rule needs a name, and one that sets VMs apart or together needs two of them that exist. A name that is
// taken the simulator refuses.
func checkRules(ctx *simulator.Context, specs []types.ClusterRuleSpec) types.BaseMethodFault {
	for _, spec := range specs {
		if spec.Operation == types.ArrayUpdateOperationRemove {
			if _, ok := spec.RemoveKey.(int32); !ok { // the simulator ends the process over any other type
				return &types.InvalidArgument{InvalidProperty: "spec.rulesSpec.removeKey"}
			}
			continue
		}
		if spec.Info == nil || spec.Info.GetClusterRuleInfo().Name == "" {
			return &types.InvalidArgument{InvalidProperty: "spec.rulesSpec.info"}
		}
		var machines []types.ManagedObjectReference
		switch rule := spec.Info.(type) {
		case *types.ClusterAntiAffinityRuleSpec:
			machines = rule.Vm
		case *types.ClusterAffinityRuleSpec:
			machines = rule.Vm
		default:
			continue
		}
		if fault := checkRuleVMs(ctx, machines); fault != nil {
			return fault
		}
	}
	return nil
}

func checkRuleVMs(ctx *simulator.Context, machines []types.ManagedObjectReference) types.BaseMethodFault {
	if len(machines) < 2 {
		return &types.InvalidArgument{InvalidProperty: "spec.rulesSpec.info.vm"}
	}
	for _, reference := range machines {
		if machineOf(ctx, reference) == nil {
			return &types.ManagedObjectNotFound{Obj: reference}
		}
	}
	return nil
}
