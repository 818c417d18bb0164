package server

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// LogUserEvent adds a line of a client's own to vCenter's events.
func (e *events) LogUserEvent(ctx *simulator.Context, req *types.LogUserEvent) soap.HasFault {
	entity, ok := ctx.Map.Get(req.Entity).(mo.Entity)
	if !ok {
		return &methods.LogUserEventBody{Fault_: simulator.Fault("", &types.ManagedObjectNotFound{Obj: req.Entity})}
	}
	var name string
	ctx.WithLock(entity, func() { name = entity.Entity().Name })
	e.PostEvent(ctx, &types.PostEvent{This: e.Self, EventToPost: &types.GeneralUserEvent{
		GeneralEvent: types.GeneralEvent{Message: req.Msg},
		Entity: &types.ManagedEntityEventArgument{
			EntityEventArgument: types.EntityEventArgument{Name: name}, Entity: req.Entity,
		},
	}})
	return &methods.LogUserEventBody{Res: &types.LogUserEventResponse{}}
}
