package server

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// RegisterVMTask checks the path first: the simulator ends the process over an unknown datastore.
func (f *folder) RegisterVMTask(ctx *simulator.Context, req *types.RegisterVM_Task) soap.HasFault {
	if datastoreIn(ctx, f.lab.site.datacenter, req.Path) == nil {
		return &methods.RegisterVM_TaskBody{Fault_: simulator.Fault("", &types.InvalidDatastorePath{DatastorePath: req.Path})}
	}
	return f.Folder.RegisterVMTask(ctx, req)
}

// MoveIntoFolderTask refuses what would tear the inventory: the simulator moves a folder into itself, where nobody
// finds it again, and next to another of its name.
func (f *folder) MoveIntoFolderTask(ctx *simulator.Context, req *types.MoveIntoFolder_Task) soap.HasFault {
	for _, reference := range req.List {
		if fault := f.checkMove(ctx, reference); fault != nil {
			return &methods.MoveIntoFolder_TaskBody{Fault_: simulator.Fault("", fault)}
		}
	}
	return f.Folder.MoveIntoFolderTask(ctx, req)
}

func (f *folder) checkMove(ctx *simulator.Context, reference types.ManagedObjectReference) types.BaseMethodFault {
	entity, ok := ctx.Map.Get(reference).(mo.Entity)
	if !ok || slices.Contains(ancestors(ctx, f.Folder), reference) {
		return &types.InvalidArgument{InvalidProperty: "list"}
	}
	if other := ctx.Map.FindByName(entity.Entity().Name, f.ChildEntity); other != nil && other.Reference() != reference {
		return &types.DuplicateName{Name: entity.Entity().Name, Object: other.Reference()}
	}
	return nil
}

// ancestors are the entity itself, its parent, and so on.
func ancestors(ctx *simulator.Context, entity mo.Entity) []types.ManagedObjectReference {
	path := []types.ManagedObjectReference{entity.Reference()}
	for parent := entity.Entity().Parent; parent != nil; {
		above, ok := ctx.Map.Get(*parent).(mo.Entity)
		if !ok {
			break
		}
		path = append(path, *parent)
		parent = above.Entity().Parent
	}
	return path
}

// DestroyTask removes the folder and all VMs in it, as vCenter does. The simulator leaves the VMs behind, in no folder.
func (f *folder) DestroyTask(ctx *simulator.Context, _ *types.Destroy_Task) soap.HasFault {
	task := f.lab.start(ctx, job{Method: "Destroy_Task", Entity: f, Name: f.Name,
		Run: func(ctx *simulator.Context, _ *simulator.Task) (types.AnyType, types.BaseMethodFault) {
			return nil, f.destroy(ctx)
		}})
	return &methods.Destroy_TaskBody{Res: &types.Destroy_TaskResponse{Returnval: task}}
}

func (f *folder) destroy(ctx *simulator.Context) types.BaseMethodFault {
	if f.Parent == nil {
		return &types.NotSupported{}
	}
	if _, ok := ctx.Map.Get(*f.Parent).(*simulator.Folder); !ok {
		return &types.NotSupported{} // a data centre's own folder
	}
	var children []types.ManagedObjectReference
	locked(ctx, f.Folder, func() { children = slices.Clone(f.ChildEntity) })
	for _, child := range children {
		if fault := f.lab.destroyChild(ctx, child); fault != nil {
			return fault
		}
	}
	_, fault := delegate(ctx, f.Folder, func() types.ManagedObjectReference {
		return f.Folder.DestroyTask(ctx, &types.Destroy_Task{This: f.Self}).(*methods.Destroy_TaskBody).Res.Returnval
	})
	return fault
}

func (l *Lab) destroyChild(ctx *simulator.Context, reference types.ManagedObjectReference) types.BaseMethodFault {
	switch child := ctx.Map.Get(reference).(type) {
	case *simulator.VirtualMachine:
		machine := &vm{child, l}
		return machine.end(ctx, machine.destroy)
	case *simulator.Folder:
		return (&folder{child, l}).destroy(ctx)
	case nil:
		return nil
	}
	return &types.NotSupported{}
}
