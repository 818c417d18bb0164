package server

import (
	"fmt"
	"slices"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/rack"
)

// EnterMaintenanceModeTask waits until no VM runs on the host. A fully automated cluster moves those that hold no
// devices; VMs with passthrough devices are not moved, and those with vGPUs only where DRS is told to (vgpusMove), so
// somebody must power them off. A timeout of 0 waits for ever. Meanwhile no VM starts on the host (vSphere API, HostSystem.enterMaintenanceMode).
func (h *host) EnterMaintenanceModeTask(ctx *simulator.Context, req *types.EnterMaintenanceMode_Task) soap.HasFault {
	timeout := time.Duration(req.Timeout) * time.Second
	task := h.task(ctx, "EnterMaintenanceMode_Task", func(ctx *simulator.Context, task *simulator.Task) types.BaseMethodFault {
		entering := &h.lab.esxOf(&h.Self).entering
		entering.Add(1)
		defer entering.Add(-1)
		return h.enterMaintenance(ctx, task, timeout)
	})
	return &methods.EnterMaintenanceMode_TaskBody{Res: &types.EnterMaintenanceMode_TaskResponse{Returnval: task}}
}

func (h *host) enterMaintenance(ctx *simulator.Context, task *simulator.Task, timeout time.Duration) types.BaseMethodFault {
	const look = 50 * time.Millisecond
	begin := time.Now()
	for {
		if fault := h.connected(ctx); fault != nil {
			return fault
		}
		if h.inMaintenance(ctx) {
			return &types.InvalidState{}
		}
		h.dismissAgents(ctx)
		h.evacuate(ctx)
		if h.idle(ctx) {
			h.setMaintenance(ctx, true)
			return nil
		}
		if timeout > 0 && time.Since(begin) >= timeout {
			return &types.Timedout{}
		}
		if finished(ctx, task) { // cancelled
			return &types.RequestCanceled{}
		}
		time.Sleep(look)
	}
}

// idle: no VM runs on the host.
func (h *host) idle(ctx *simulator.Context) bool { return len(h.running(ctx)) == 0 }

func (h *host) running(ctx *simulator.Context) (found []*simulator.VirtualMachine) {
	machine := h.lab.esxOf(&h.Self)
	for _, object := range ctx.Map.AllReference("VirtualMachine") {
		if runsOn(ctx, object.Reference(), machine) {
			found = append(found, machineOf(ctx, object.Reference()))
		}
	}
	return found
}

// evacuate moves what DRS moves by itself: VMs that it manages fully automatically, and that hold no device of the host.
func (h *host) evacuate(ctx *simulator.Context) {
	machine := h.lab.esxOf(&h.Self)
	drs := drsOf(ctx, machine.cluster)
	for _, victim := range h.running(ctx) {
		if !drs.automates(victim.Self) {
			continue
		}
		for _, other := range h.lab.hostsOf(machine.cluster) {
			if other != machine && h.lab.checkHost(ctx, other) == nil && h.lab.migrate(ctx, victim, other, drs.vgpusMove()) {
				h.lab.refresh(ctx, machine.name)
				h.lab.refresh(ctx, other.name)
				break
			}
		}
	}
}

// drsSettings are a cluster's at one moment: its own, its advanced options, and what single VMs have instead.
type drsSettings struct {
	config  types.ClusterDrsConfigInfo
	special []types.ClusterDrsVmConfigInfo
}

func drsOf(ctx *simulator.Context, cluster *simulator.ClusterComputeResource) (found drsSettings) {
	locked(ctx, cluster, func() {
		if config, ok := cluster.ConfigurationEx.(*types.ClusterConfigInfoEx); ok {
			found = drsSettings{config.DrsConfig, slices.Clone(config.DrsVmConfig)}
		}
	})
	return found
}

// automates: a VM's own automation level counts instead of the cluster's, and DRS leaves alone a VM for which it is
// disabled (vSphere API, ClusterDrsVmConfigInfo).
func (d drsSettings) automates(machine types.ManagedObjectReference) bool {
	if !isTrue(d.config.Enabled) {
		return false
	}
	behavior := d.config.DefaultVmBehavior
	for _, own := range d.special {
		if own.Key != machine {
			continue
		}
		if own.Enabled != nil && !*own.Enabled {
			return false
		}
		if own.Behavior != "" {
			behavior = own.Behavior
		}
	}
	return behavior == types.DrsBehaviorFullyAutomated
}

// vgpusMove: DRS evacuates VMs with vGPUs only when an option opts in to it. VgpuMMAutomationTimeoutSecs = -1 does from
// vCenter 7.0 U3f on (Broadcom KB 88271), PassthroughDrsAutomation = 1 from 8.0 U2 on (KB 313479).
func (d drsSettings) vgpusMove() bool {
	for _, option := range d.config.Option {
		each := option.GetOptionValue()
		value := fmt.Sprint(each.Value)
		if each.Key == "VgpuMMAutomationTimeoutSecs" && value == "-1" || each.Key == "PassthroughDrsAutomation" && value == "1" {
			return true
		}
	}
	return false
}

// migrate moves a running VM to the host, if it fits there and holds no device that ties it to its host.
func (l *Lab) migrate(ctx *simulator.Context, machine *simulator.VirtualMachine, to *esx, vgpus bool) (moved bool) {
	locked(ctx, machine, func() {
		request := requestOf(machine.Self.Value, present(machine.Config, machine.Runtime.PowerState))
		tied := func(device rack.Device) bool { return device.Kind != rack.VGPU || !vgpus }
		if slices.ContainsFunc(request.Devices, tied) || len(request.Groups) > 0 || l.Rack.Try(to.name, request) != nil {
			return
		}
		if _, refusal := l.Rack.Book(to.name, request); refusal == nil {
			l.moveTo(ctx, machine, to)
			moved = true
		}
	})
	return moved
}

func (h *host) connected(ctx *simulator.Context) (fault types.BaseMethodFault) {
	locked(ctx, h.HostSystem, func() {
		switch h.Runtime.ConnectionState {
		case types.HostSystemConnectionStateNotResponding:
			fault = &types.HostNotReachable{}
		case types.HostSystemConnectionStateDisconnected:
			fault = &types.HostNotConnected{}
		}
	})
	return fault
}

func (h *host) inMaintenance(ctx *simulator.Context) (in bool) {
	locked(ctx, h.HostSystem, func() { in = h.Runtime.InMaintenanceMode })
	return in
}

func (h *host) setMaintenance(ctx *simulator.Context, in bool) {
	h.changeRuntime(ctx, "runtime.inMaintenanceMode", in, func(r *types.HostRuntimeInfo) { r.InMaintenanceMode = in })
}

// ExitMaintenanceModeTask lets VMs start on the host again.
func (h *host) ExitMaintenanceModeTask(ctx *simulator.Context, _ *types.ExitMaintenanceMode_Task) soap.HasFault {
	task := h.task(ctx, "ExitMaintenanceMode_Task", func(ctx *simulator.Context, _ *simulator.Task) types.BaseMethodFault {
		if fault := h.connected(ctx); fault != nil {
			return fault
		}
		if !h.inMaintenance(ctx) {
			return &types.InvalidState{}
		}
		h.setMaintenance(ctx, false)
		return nil
	})
	return &methods.ExitMaintenanceMode_TaskBody{Res: &types.ExitMaintenanceMode_TaskResponse{Returnval: task}}
}
