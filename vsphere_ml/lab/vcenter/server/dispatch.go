package server

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// The wrappers: each embeds the simulator's object and overrides the methods the lab answers itself.
// The registry keeps the plain objects, because the simulator's code type-asserts them.
type (
	vm struct {
		*simulator.VirtualMachine
		lab *Lab
	}
	folder struct {
		*simulator.Folder
		lab *Lab
	}
	host struct {
		*simulator.HostSystem
		lab *Lab
	}
	cluster struct {
		*simulator.ClusterComputeResource
		lab *Lab
	}
	datacenter struct {
		*simulator.Datacenter
		lab *Lab
	}
	datastore struct {
		*simulator.Datastore
		lab *Lab
	}
	pool struct {
		*simulator.ResourcePool
		lab *Lab
	}
	browser struct {
		*simulator.EnvironmentBrowser
		lab *Lab
	}
	distributedSwitch struct {
		*simulator.DistributedVirtualSwitch
		lab *Lab
	}
	options struct {
		*simulator.OptionManager
		lab *Lab
	}
	events struct {
		*simulator.EventManager
	}
	guestProcesses struct {
		*simulator.GuestProcessManager
	}
	guestFiles struct {
		*simulator.GuestFileManager
	}
	executer struct {
		*simulator.ManagedMethodExecuter
		lab *Lab
	}
)

// wrap is what answers for an object: nil leaves it to the simulator.
func (l *Lab) wrap(object mo.Reference) mo.Reference {
	switch o := object.(type) {
	case *simulator.VirtualMachine:
		return &vm{o, l}
	case *simulator.Folder:
		return &folder{o, l}
	case *simulator.HostSystem:
		return &host{o, l}
	case *simulator.ClusterComputeResource:
		return &cluster{o, l}
	case *simulator.Datacenter:
		return &datacenter{o, l}
	case *simulator.Datastore:
		return &datastore{o, l}
	case *simulator.ResourcePool:
		return &pool{o, l}
	case *simulator.EnvironmentBrowser:
		return &browser{o, l}
	case *simulator.ManagedMethodExecuter:
		return &executer{o, l}
	case *simulator.DistributedVirtualSwitch:
		return &distributedSwitch{o, l}
	case *simulator.OvfManager:
		return &ovfManager{o}
	case *simulator.OptionManager:
		return &options{o, l}
	case *simulator.EventManager:
		return &events{o}
	case *simulator.GuestProcessManager:
		return &guestProcesses{o}
	case *simulator.GuestFileManager:
		return &guestFiles{o}
	}
	return nil
}

// unchecked are log-in methods by which the simulator lets anybody in without a password.
var unchecked = map[string]bool{"LoginByToken": true, "LoginExtensionByCertificate": true, "ImpersonateUser": true}

// inSession are the methods that put what they make, a lease or a collector, into the session's registry, which prefer
// would hide.
var inSession = map[string]bool{"ExportVm": true, "ImportVApp": true, "CreateCollectorForEvents": true}

// dispatch is the simulator's hook, asked before every call.
func (l *Lab) dispatch(ctx *simulator.Context, call *simulator.Method) (mo.Reference, types.BaseMethodFault) {
	l.calls.add(call.Name)
	if reply := replyOf(ctx); reply != nil {
		reply.ctx = ctx
	}
	if unchecked[call.Name] {
		return nil, &types.InvalidLogin{}
	}
	if ctx.Session != nil {
		ownTypes(ctx, call)
	}
	object := ctx.Map.Get(call.This)
	if fault := l.faults.call(call, l.nameFor(ctx, object, call)); fault != nil && ctx.Session != nil {
		return nil, fault
	}
	if fault := checkArguments(ctx, call); fault != nil {
		return nil, fault
	}
	abandonImport(ctx, call)
	if inSession[call.Name] {
		return nil, nil
	}
	wrapper := l.wrap(object)
	if wrapper == nil {
		return nil, nil
	}
	if ctx.Session != nil {
		prefer(ctx, wrapper)
	}
	return wrapper, nil
}

// prefer makes this one request find the wrapper. For a logged-in session Service.call looks the object up again in
// the session's registry, which wins over the hook's answer (govmomi 0.56.0); the request's copy of the session gets
// a registry that knows nothing but the wrapper, so that nothing outlives the request.
func prefer(ctx *simulator.Context, wrapper mo.Reference) {
	registry := simulator.NewRegistry()
	// Put writes an entity's status fields, hence the lock.
	ctx.WithLock(wrapper, func() { registry.Put(wrapper) })
	ctx.Session.Registry = registry
}
