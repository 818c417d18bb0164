package server

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
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
