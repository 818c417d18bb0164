package server

import (
	pbm "github.com/vmware/govmomi/pbm/simulator"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// policies is the storage policy service (PBM) as the simulator has it: vCenter's default policies, with which every
// datastore is compatible. Its sessions are those of /sdk. Terraform's provider signs in there before anything else.
func (l *Lab) policies() *simulator.Registry {
	registry := pbm.New()
	registry.Handler = func(ctx *simulator.Context, call *simulator.Method) (mo.Reference, types.BaseMethodFault) {
		l.calls.add(call.Name)
		if reply := replyOf(ctx); reply != nil {
			reply.ctx = ctx // what a panic has locked is released through it
		}
		return nil, nil
	}
	return registry
}
