package server

import (
	"fmt"
	"log"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// job is the work behind one task.
type job struct {
	Method string // as clients see it: CloneVM_Task
	Entity mo.Reference
	// Name is what fault rules match: the entity's name, or that of the VM to be made.
	Name string
	// Run does the work on a context of its own, without any lock held: take ctx.WithLock around every change.
	Run func(ctx *simulator.Context, task *simulator.Task) (types.AnyType, types.BaseMethodFault)
	// Hosts are those on which it needs a place among their full clones.
	Hosts []*esx
}

// start answers with the job's task, which then runs by itself.
//
// The simulator's own Task.Run is not used: it holds the entity's lock while a delay passes, so that nobody can
// read the VM meanwhile, and it writes Go's type name where vCenter writes a sentence.
func (l *Lab) start(ctx *simulator.Context, work job) types.ManagedObjectReference {
	task := simulator.CreateTask(work.Entity, work.Method, nil)
	task.Info.Name = work.Method
	task.Info.DescriptionId = work.Entity.Reference().Type + "." + descriptionID(work.Method)
	task.Info.EntityName = work.Name
	if ctx.Session != nil {
		task.Info.Reason = &types.TaskReasonUser{UserName: ctx.Session.UserName}
	}
	ctx.Map.Put(task)
	own := *ctx // a context of its own: locks are shared by context, and the request's may still hold the entity's
	queued := false
	if len(work.Hosts) > 0 {
		took, _ := l.clones.take(work.Hosts)
		queued = !took
	}
	changes := []types.PropertyChange{
		{Name: "info.key", Val: task.Self.Value},
		{Name: "info.task", Val: task.Self},
	}
	if !queued {
		changes = append(changes, begun()...)
	}
	ctx.Map.AtomicUpdate(&own, task, changes)
	reference := task.Self
	go l.run(&own, task, work, queued)
	return reference
}

func (l *Lab) run(ctx *simulator.Context, task *simulator.Task, work job, queued bool) {
	if queued && !l.queue(ctx, task, work) {
		return
	}
	if len(work.Hosts) > 0 {
		defer l.clones.giveBack(work.Hosts)
	}
	fault, message := l.faults.task(work)
	l.pause(ctx, task, work.Method)
	if finished(ctx, task) { // cancelled meanwhile
		return
	}
	var result types.AnyType
	if fault == nil {
		result, fault = l.guarded(ctx, task, work)
		message = sentence(fault)
	}
	finish(ctx, task, result, fault, message)
}

// guarded turns a panic of the work into a fault: a task must never end the process.
func (l *Lab) guarded(ctx *simulator.Context, task *simulator.Task, work job) (result types.AnyType, fault types.BaseMethodFault) {
	defer func() {
		if reason := recover(); reason != nil {
			log.Printf("%s on %s panicked: %v", work.Method, work.Entity.Reference(), reason)
			result, fault = nil, &types.SystemError{Reason: fmt.Sprint(reason)}
		}
	}()
	return work.Run(ctx, task)
}

// How often a task's progress moves at most, as seldom as a vCenter's does.
const progressEvery = 250 * time.Millisecond

// pause lets the method's duration pass while the task's progress moves. Another duration that is set meanwhile
// counts for tasks that run, too, so that a test can hold them and let them go.
func (l *Lab) pause(ctx *simulator.Context, task *simulator.Task, method string) {
	begin := time.Now()
	for told := time.Duration(0); ; {
		duration, changed := l.delays.of(method)
		left := duration - time.Since(begin)
		if left <= 0 || finished(ctx, task) {
			return
		}
		if share := 100 * time.Since(begin) / duration; share > told {
			told = share
			ctx.Map.AtomicUpdate(ctx, task, []types.PropertyChange{{Name: "info.progress", Val: int32(share)}})
		}
		select {
		case <-time.After(min(left, max(progressEvery, duration/10))):
		case <-changed:
		}
	}
}

func finished(ctx *simulator.Context, task *simulator.Task) (done bool) {
	ctx.WithLock(task, func() {
		done = task.Info.State == types.TaskInfoStateError || task.Info.State == types.TaskInfoStateSuccess
	})
	return done
}

func finish(ctx *simulator.Context, task *simulator.Task, result types.AnyType, fault types.BaseMethodFault, message string) {
	changes := []types.PropertyChange{
		{Name: "info.completeTime", Val: time.Now()},
		{Name: "info.result", Val: result},
		{Name: "info.state", Val: types.TaskInfoStateSuccess},
	}
	if fault != nil {
		changes[1] = types.PropertyChange{Name: "info.error", Val: types.LocalizedMethodFault{Fault: fault, LocalizedMessage: message}}
		changes[2].Val = types.TaskInfoStateError
	}
	ctx.WithLock(task, func() {
		task.Info.Progress = 0 // vCenter shows no progress once a task has ended
		ctx.Map.Update(ctx, task, changes)
	})
}

// descriptionID is the method as vCenter's catalogues of messages spell it: PowerOnVM_Task becomes powerOn.
func descriptionID(method string) string {
	names := map[string]string{
		"CreateVM_Task": "createVm", "CloneVM_Task": "clone", "ReconfigVM_Task": "reconfigure",
		"PowerOnVM_Task": "powerOn", "PowerOffVM_Task": "powerOff", "UpgradeVM_Task": "upgradeVirtualHardware",
		"ResetVM_Task": "reset", "SuspendVM_Task": "suspend", "RebootHost_Task": "reboot", "ReconfigureDvs_Task": "reconfigure",
	}
	if name, ok := names[method]; ok {
		return name
	}
	base := method
	if len(base) > 5 && base[len(base)-5:] == "_Task" {
		base = base[:len(base)-5]
	}
	return string(base[0]|0x20) + base[1:]
}
