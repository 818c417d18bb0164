package server

import (
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// shutdowns is how long guests take to shut down, by the VM's name; at once when it is not there, never when negative.
type shutdowns struct {
	mu   sync.Mutex
	made map[string]time.Duration
}

func (s *shutdowns) of(vm string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made[vm]
}

func (s *shutdowns) set(vm string, milliseconds int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil {
		s.made = map[string]time.Duration{}
	}
	s.made[vm] = time.Duration(milliseconds) * time.Millisecond
}

// ShutdownGuest asks the guest to shut down and does not wait for it; only VMware Tools can ask (vSphere API,
// VirtualMachine.shutdownGuest).
func (v *vm) ShutdownGuest(ctx *simulator.Context, req *types.ShutdownGuest) soap.HasFault {
	name, running, tools := "", false, false
	locked(ctx, v.VirtualMachine, func() {
		name, running = v.Name, v.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn
		tools = v.Guest != nil && v.Guest.ToolsRunningStatus == string(types.VirtualMachineToolsRunningStatusGuestToolsRunning)
	})
	wait := v.lab.shutdowns.of(name)
	switch {
	case running && !tools:
		fault := &types.ToolsUnavailable{}
		return &methods.ShutdownGuestBody{Fault_: simulator.Fault(sentence(fault), fault)}
	case !running || wait == 0:
		return v.shutDown(ctx, req)
	case wait > 0:
		own, asked := *ctx, *req
		time.AfterFunc(wait, func() { v.shutDown(&own, &asked) })
	}
	return &methods.ShutdownGuestBody{Res: &types.ShutdownGuestResponse{}}
}

func (v *vm) shutDown(ctx *simulator.Context, req *types.ShutdownGuest) soap.HasFault {
	body := v.VirtualMachine.ShutdownGuest(ctx, req)
	if body.Fault() == nil {
		v.lab.release(ctx, v.VirtualMachine)
	}
	return body
}

// showTools shows VMware Tools of a standing VM whose guest has them. Other guests report by themselves.
func (l *Lab) showTools(ctx *simulator.Context, machine *simulator.VirtualMachine, run bool) {
	if !l.site.tools[machine.Self] || ctx.Map.Get(machine.Self) == nil {
		return
	}
	running, status := types.VirtualMachineToolsRunningStatusGuestToolsRunning, types.VirtualMachineToolsStatusToolsOk
	if !run {
		running, status = types.VirtualMachineToolsRunningStatusGuestToolsNotRunning, types.VirtualMachineToolsStatusToolsNotRunning
	}
	ctx.Map.AtomicUpdate(ctx, machine, []types.PropertyChange{
		{Name: "guest.toolsRunningStatus", Val: string(running)}, {Name: "guest.toolsStatus", Val: status},
		{Name: "summary.guest.toolsRunningStatus", Val: string(running)}, {Name: "summary.guest.toolsStatus", Val: status},
	})
}
