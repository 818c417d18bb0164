package server

import (
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// task starts a job on the host.
func (h *host) task(ctx *simulator.Context, method string, work func(*simulator.Context, *simulator.Task) types.BaseMethodFault) types.ManagedObjectReference {
	return h.lab.start(ctx, job{Method: method, Entity: h.HostSystem, Name: h.Name,
		Run: func(ctx *simulator.Context, task *simulator.Task) (types.AnyType, types.BaseMethodFault) {
			return nil, work(ctx, task)
		}})
}

// EnterMaintenanceModeTask waits until no VM runs on the host: VMs with vGPUs or passthrough devices are not moved by
// DRS, so somebody must power them off. A timeout of 0 waits for ever.
func (h *host) EnterMaintenanceModeTask(ctx *simulator.Context, req *types.EnterMaintenanceMode_Task) soap.HasFault {
	timeout := time.Duration(req.Timeout) * time.Second
	task := h.task(ctx, "EnterMaintenanceMode_Task", func(ctx *simulator.Context, task *simulator.Task) types.BaseMethodFault {
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
func (h *host) idle(ctx *simulator.Context) bool {
	machine := h.lab.esxOf(&h.Self)
	for _, object := range ctx.Map.AllReference("VirtualMachine") {
		if runsOn(ctx, object.Reference(), machine) {
			return false
		}
	}
	return true
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

// changeRuntime changes a property of the host's runtime, and the copy in its summary.
func (h *host) changeRuntime(ctx *simulator.Context, name string, value any, change func(*types.HostRuntimeInfo)) {
	locked(ctx, h.HostSystem, func() {
		runtime := h.Runtime
		change(&runtime)
		ctx.Map.Update(ctx, h.HostSystem, []types.PropertyChange{{Name: name, Val: value}, {Name: "summary.runtime", Val: &runtime}})
	})
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

// DisconnectHostTask takes the host out of vCenter's hands; its VMs run on.
func (h *host) DisconnectHostTask(ctx *simulator.Context, _ *types.DisconnectHost_Task) soap.HasFault {
	task := h.task(ctx, "DisconnectHost_Task", func(ctx *simulator.Context, _ *simulator.Task) types.BaseMethodFault {
		h.connection(ctx, types.HostSystemConnectionStateDisconnected)
		return nil
	})
	return &methods.DisconnectHost_TaskBody{Res: &types.DisconnectHost_TaskResponse{Returnval: task}}
}

// ReconnectHostTask takes it back; a host that does not respond cannot be reached.
func (h *host) ReconnectHostTask(ctx *simulator.Context, _ *types.ReconnectHost_Task) soap.HasFault {
	task := h.task(ctx, "ReconnectHost_Task", func(ctx *simulator.Context, _ *simulator.Task) types.BaseMethodFault {
		switch h.connected(ctx).(type) {
		case nil:
			return &types.InvalidState{}
		case *types.HostNotReachable:
			return &types.NoHost{Name: h.Name}
		}
		h.connection(ctx, types.HostSystemConnectionStateConnected)
		return nil
	})
	return &methods.ReconnectHost_TaskBody{Res: &types.ReconnectHost_TaskResponse{Returnval: task}}
}
