package server

import (
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

// changeRuntime changes a property of the host's runtime, and the copy in its summary.
func (h *host) changeRuntime(ctx *simulator.Context, name string, value any, change func(*types.HostRuntimeInfo)) {
	locked(ctx, h.HostSystem, func() {
		runtime := h.Runtime
		change(&runtime)
		ctx.Map.Update(ctx, h.HostSystem, []types.PropertyChange{{Name: name, Val: value}, {Name: "summary.runtime", Val: &runtime}})
	})
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
