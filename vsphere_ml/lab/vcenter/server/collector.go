package server

import (
	"reflect"
	"strings"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// collector repairs Fetch, by which pyvmomi and Ansible read a property (govmomi 0.56.0).
// It embeds the value, because the simulator makes one a session with reflect.New.
type collector struct {
	simulator.PropertyCollector

	starting sync.Mutex
	updates  *updates
}

func repairCollector(ctx *simulator.Context) {
	reference := ctx.Map.Get(serviceInstance).(*simulator.ServiceInstance).Content.PropertyCollector
	repaired := &collector{}
	repaired.Self = reference
	ctx.Map.Put(repaired)
}

// fetchBody is an answer of Fetch; the simulator's own type is internal to govmomi.
type fetchBody struct {
	Res    *FetchResponse `xml:"FetchResponse,omitempty"`
	Fault_ *soap.Fault    `xml:"http://schemas.xmlsoap.org/soap/envelope/ Fault,omitempty"`
}

// FetchResponse holds the property's value, or nothing when it is unset.
type FetchResponse struct {
	Returnval types.AnyType `xml:"returnval,omitempty,typeattr"`
}

// Fault is the fault, if that is the answer.
func (b *fetchBody) Fault() *soap.Fault { return b.Fault_ }

// Fetch answers an unset property with nothing. The simulator answers it with the body of another method, which
// clients cannot read, and panics for an object that has gone.
func (c *collector) Fetch(ctx *simulator.Context, request any) soap.HasFault {
	this, _ := reflect.ValueOf(request).Elem().FieldByName("This").Interface().(types.ManagedObjectReference)
	if fault := known(ctx, this); fault != nil {
		return &fetchBody{Fault_: simulator.Fault("The object has already been deleted or has not been completely created", fault)}
	}
	fetch := reflect.ValueOf(&c.PropertyCollector).MethodByName("Fetch")
	answer := fetch.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(request)})[0].Interface().(soap.HasFault)
	if answer.Fault() == nil && reflect.TypeOf(answer).Elem().Name() != "FetchBody" {
		return &fetchBody{Res: &FetchResponse{}}
	}
	return answer
}

// known is nil when the session can see the object, under its own type.
func known(ctx *simulator.Context, this types.ManagedObjectReference) types.BaseMethodFault {
	var object mo.Reference
	if ctx.Session != nil {
		object = ctx.Session.Get(this)
	} else {
		object = ctx.Map.Get(this)
	}
	if object != nil || this.Type == "ComputeResource" {
		return nil
	}
	// The simulator would look for a ManagedEntity of that id by walking the inventory's map unlocked.
	return &types.ManagedObjectNotFound{Obj: this}
}

// newcomers gives every new VM what clients need to read it, whichever way it came: create, clone, import, register;
// and it puts a guard on every task before it starts.
type newcomers struct{ lab *Lab }

// Reference names the watcher among the registry's.
func (newcomers) Reference() types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: "VsmlLab", Value: "newcomers"}
}

// PutObject fills what the simulator leaves empty: two enumerations, which pyvmomi cannot read empty, and the usual
// settings.
func (n newcomers) PutObject(ctx *simulator.Context, object mo.Reference) {
	if task, ok := object.(*simulator.Task); ok {
		n.lab.concern(ctx, task)
		guard(task)
	}
	machine, ok := object.(*simulator.VirtualMachine)
	if !ok {
		return
	}
	for _, runtime := range []*types.VirtualMachineRuntimeInfo{&machine.Runtime, &machine.Summary.Runtime} {
		runtime.FaultToleranceState = types.VirtualMachineFaultToleranceStateNotConfigured
		runtime.RecordReplayState = types.VirtualMachineRecordReplayStateInactive
	}
	if machine.Config != nil {
		asUsual(machine.Config)
	}
}

// concern makes a task one of an entity. The simulator names the manager or browser that was called, and pyvmomi cannot
// read a task of anything but an entity.
func (l *Lab) concern(ctx *simulator.Context, task *simulator.Task) {
	if task.Info.Entity == nil {
		return
	}
	if _, ok := ctx.Map.Get(*task.Info.Entity).(mo.Entity); ok {
		return
	}
	caller := *task.Info.Entity
	task.Info.Entity = &l.site.datacenter.Self
	for _, store := range l.site.datastores {
		if store.Browser == caller {
			task.Info.Entity = &store.Self
		}
	}
}

// UpdateObject writes vCenter's sentence where a task of the simulator's that failed has the name of a Go type.
func (newcomers) UpdateObject(_ *simulator.Context, object mo.Reference, _ []types.PropertyChange) {
	task, ok := object.(*mo.Task)
	if !ok || task.Info.Error == nil || !strings.HasPrefix(task.Info.Error.LocalizedMessage, "*types.") {
		return
	}
	task.Info.Error.LocalizedMessage = sentence(task.Info.Error.Fault)
}

// RemoveObject has nothing to do.
func (newcomers) RemoveObject(*simulator.Context, types.ManagedObjectReference) {}
