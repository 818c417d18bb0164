package server

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

// accessManager is a host's HostAccessManager: its lockdown mode, and the users whom that spares.
type accessManager struct {
	mo.HostAccessManager
	esx        *esx
	exceptions []string
}

func newAccessManager(machine *esx, own topology.Host) *accessManager {
	manager := &accessManager{esx: machine, exceptions: slices.Clone(own.LockdownExceptions)}
	manager.LockdownMode = types.HostLockdownModeLockdownDisabled
	switch own.Lockdown {
	case "normal":
		manager.LockdownMode = types.HostLockdownModeLockdownNormal
	case "strict":
		manager.LockdownMode = types.HostLockdownModeLockdownStrict
	}
	machine.system.Config.LockdownMode = manager.LockdownMode
	return manager
}

// admits tells whether a user may sign in over SSH. In either lockdown mode nobody may but exception users, not even
// root (Broadcom KB 425190). The Security guide's table names the users of DCUI.Access beside them, which by default is
// root; its text does not.
func (m *accessManager) admits(ctx *simulator.Context, user string) (admitted bool) {
	locked(ctx, m, func() {
		admitted = m.LockdownMode == types.HostLockdownModeLockdownDisabled || slices.Contains(m.exceptions, user)
	})
	return admitted
}

// QueryLockdownExceptions are the users whom lockdown mode spares.
func (m *accessManager) QueryLockdownExceptions(*simulator.Context, *types.QueryLockdownExceptions) soap.HasFault {
	return &methods.QueryLockdownExceptionsBody{Res: &types.QueryLockdownExceptionsResponse{Returnval: slices.Clone(m.exceptions)}}
}

// UpdateLockdownExceptions replaces them.
func (m *accessManager) UpdateLockdownExceptions(_ *simulator.Context, req *types.UpdateLockdownExceptions) soap.HasFault {
	m.exceptions = slices.Clone(req.Users)
	return &methods.UpdateLockdownExceptionsBody{Res: &types.UpdateLockdownExceptionsResponse{}}
}

// ChangeLockdownMode begins or ends lockdown; another word than the API's three is refused.
func (m *accessManager) ChangeLockdownMode(ctx *simulator.Context, req *types.ChangeLockdownMode) soap.HasFault {
	if !slices.Contains(types.HostLockdownMode("").Strings(), string(req.Mode)) {
		fault := &types.InvalidArgument{InvalidProperty: "mode"}
		return &methods.ChangeLockdownModeBody{Fault_: simulator.Fault(sentence(fault), fault)}
	}
	ctx.Map.Update(ctx, m, []types.PropertyChange{{Name: "lockdownMode", Val: req.Mode}})
	ctx.Map.AtomicUpdate(ctx, m.esx.system, []types.PropertyChange{{Name: "config.lockdownMode", Val: req.Mode}})
	return &methods.ChangeLockdownModeBody{Res: &types.ChangeLockdownModeResponse{}}
}
