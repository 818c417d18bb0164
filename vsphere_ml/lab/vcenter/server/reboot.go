package server

import (
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// reboots is how long each host takes, and which are down.
type reboots struct {
	mu    sync.Mutex
	made  map[string]rebootStyle
	going map[string]bool
}

// rebootStyle is how a reboot passes, in milliseconds. vCenter notices after NoticeMS that the host is gone; until then
// it shows it as connected, though its services and VMs have ended.
type rebootStyle struct {
	RebootMS int `json:"reboot_ms"`
	NoticeMS int `json:"notice_ms"`
}

var usualReboot = rebootStyle{RebootMS: 1000, NoticeMS: 100}

func (r *reboots) of(host string) rebootStyle {
	r.mu.Lock()
	defer r.mu.Unlock()
	if style, ok := r.made[host]; ok {
		return style
	}
	return usualReboot
}

func (r *reboots) change(host string, change hostChange) rebootStyle {
	style := r.of(host)
	if change.RebootMS != nil {
		style.RebootMS = *change.RebootMS
	}
	if change.NoticeMS != nil {
		style.NoticeMS = *change.NoticeMS
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.made == nil {
		r.made = map[string]rebootStyle{}
	}
	r.made[host] = style
	return style
}

// begin and end say that a host goes down and is back; each tells whether that is news.
func (r *reboots) begin(host string) bool { return r.mark(host, true) }

func (r *reboots) end(host string) bool { return r.mark(host, false) }

func (r *reboots) mark(host string, down bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.going[host] == down {
		return false
	}
	if r.going == nil {
		r.going = map[string]bool{}
	}
	r.going[host] = down
	return true
}

// RebootHostTask reboots a host in maintenance mode, or any with force. The task ends when the host goes down; vCenter
// notices a little later, and the host then does not respond until it has booted.
func (h *host) RebootHostTask(ctx *simulator.Context, req *types.RebootHost_Task) soap.HasFault {
	force := req.Force
	task := h.task(ctx, "RebootHost_Task", func(ctx *simulator.Context, _ *simulator.Task) types.BaseMethodFault {
		return h.leave(ctx, force, true)
	})
	return &methods.RebootHost_TaskBody{Res: &types.RebootHost_TaskResponse{Returnval: task}}
}

// ShutdownHostTask is a reboot without a return: somebody must switch the host on again.
func (h *host) ShutdownHostTask(ctx *simulator.Context, req *types.ShutdownHost_Task) soap.HasFault {
	force := req.Force
	task := h.task(ctx, "ShutdownHost_Task", func(ctx *simulator.Context, _ *simulator.Task) types.BaseMethodFault {
		return h.leave(ctx, force, false)
	})
	return &methods.ShutdownHost_TaskBody{Res: &types.ShutdownHost_TaskResponse{Returnval: task}}
}

func (h *host) leave(ctx *simulator.Context, force, back bool) types.BaseMethodFault {
	if fault := h.connected(ctx); fault != nil {
		return fault
	}
	if !force && !h.inMaintenance(ctx) || !h.goDown(ctx, back) {
		return &types.InvalidState{}
	}
	return nil
}

// goDown begins a reboot, or a shutdown without a way back; false when the host is down already.
func (h *host) goDown(ctx *simulator.Context, back bool) bool {
	if !h.lab.site.reboots.begin(h.Name) {
		return false
	}
	machine := h.lab.esxOf(&h.Self)
	if machine.ssh != nil {
		machine.ssh.Stop(true)
	}
	h.endVMs(ctx)
	style, own := h.lab.site.reboots.of(h.Name), *ctx
	time.AfterFunc(time.Duration(style.NoticeMS)*time.Millisecond, func() { h.vanish(&own, style, back) })
	return true
}

// vanish is when vCenter misses the host.
func (h *host) vanish(ctx *simulator.Context, style rebootStyle, back bool) {
	h.connection(ctx, types.HostSystemConnectionStateNotResponding)
	if !back || h.lab.view(h.lab.esxOf(&h.Self)).Fails("no-return") {
		return
	}
	own := *ctx
	time.AfterFunc(time.Duration(style.RebootMS)*time.Millisecond, func() { h.comeBack(&own) })
}

// comeBack puts in force what was configured before the reboot.
func (h *host) comeBack(ctx *simulator.Context) {
	if !h.lab.site.reboots.end(h.Name) {
		return
	}
	h.lab.hook.settle(h.Name) // an adapter's firmware may still be told what its guest has set
	h.lab.Rack.Reboot(h.Name)
	h.lab.refresh(ctx, h.Name)
	h.lab.esxOf(&h.Self).services.boot(ctx)
	booted := types.NewTime(time.Now())
	h.changeRuntime(ctx, "runtime.bootTime", booted, func(r *types.HostRuntimeInfo) { r.BootTime = booted })
	h.connection(ctx, types.HostSystemConnectionStateConnected)
}

// connection changes what vCenter sees of the host; the power state of one that does not answer is not known.
func (h *host) connection(ctx *simulator.Context, state types.HostSystemConnectionState) {
	power := types.HostSystemPowerStatePoweredOn
	if state != types.HostSystemConnectionStateConnected {
		power = types.HostSystemPowerStateUnknown
	}
	h.changeRuntime(ctx, "runtime.powerState", power, func(r *types.HostRuntimeInfo) { r.PowerState = power })
	h.changeRuntime(ctx, "runtime.connectionState", state, func(r *types.HostRuntimeInfo) { r.ConnectionState = state })
	h.showVMs(ctx, state == types.HostSystemConnectionStateConnected)
}

// showVMs: vCenter knows nothing of VMs whose host does not answer.
func (h *host) showVMs(ctx *simulator.Context, reached bool) {
	state := types.VirtualMachineConnectionStateDisconnected
	if reached {
		state = types.VirtualMachineConnectionStateConnected
	}
	for _, object := range ctx.Map.AllReference("VirtualMachine") {
		machine := machineOf(ctx, object.Reference())
		locked(ctx, machine, func() {
			if on := machine.Runtime.Host; on != nil && *on == h.Self {
				ctx.Map.Update(ctx, machine, []types.PropertyChange{
					{Name: "runtime.connectionState", Val: state}, {Name: "summary.runtime.connectionState", Val: state},
				})
			}
		})
	}
}

// endVMs: whatever runs on the host ends with it.
func (h *host) endVMs(ctx *simulator.Context) {
	for _, victim := range h.running(ctx) {
		_, _ = delegate(ctx, victim, func() types.ManagedObjectReference {
			body := victim.PowerOffVMTask(ctx, &types.PowerOffVM_Task{This: victim.Self})
			return body.(*methods.PowerOffVM_TaskBody).Res.Returnval
		})
		h.lab.release(ctx, victim)
	}
}
