package server

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// serviceSSH is the key of a host's SSH service. It is stopped, and not started with the host, unless somebody says so.
const serviceSSH = "TSM-SSH"

// serviceXorg is the X.Org server, by which a host's GPUs take another graphics type.
const serviceXorg = "xorg"

// serviceSystem is a host's HostServiceSystem. SSH is the only service behind which something stands.
type serviceSystem struct {
	mo.HostServiceSystem
	lab *Lab
	esx *esx
}

func newServiceSystem(lab *Lab, owner *esx) *serviceSystem {
	system := &serviceSystem{lab: lab, esx: owner}
	if given := owner.system.Config.Service; given != nil { // the simulator's, which all hosts share
		system.ServiceInfo.Service = slices.Clone(given.Service)
	}
	return system
}

// service is the named service as it is now.
func (s *serviceSystem) service(ctx *simulator.Context, key string) (found types.HostService, known bool) {
	locked(ctx, s, func() {
		index := slices.IndexFunc(s.ServiceInfo.Service, func(one types.HostService) bool { return one.Key == key })
		if known = index >= 0; known {
			found = s.ServiceInfo.Service[index]
		}
	})
	return found, known
}

// change shows services otherwise to everybody who watches them.
func (s *serviceSystem) change(ctx *simulator.Context, edit func(*types.HostService)) {
	var info types.HostServiceInfo
	locked(ctx, s, func() {
		info.Service = slices.Clone(s.ServiceInfo.Service)
		for i := range info.Service {
			edit(&info.Service[i])
		}
		ctx.Map.Update(ctx, s, []types.PropertyChange{{Name: "serviceInfo", Val: info}})
	})
	ctx.Map.AtomicUpdate(ctx, s.esx.system, []types.PropertyChange{{Name: "config.service", Val: &info}})
}

// run starts or stops the named service; the API's own faults for a service that is unknown or in that state already.
func (s *serviceSystem) run(ctx *simulator.Context, key string, running bool) types.BaseMethodFault {
	service, known := s.service(ctx, key)
	switch {
	case !known:
		return &types.NotFound{}
	case service.Running == running:
		return &types.InvalidState{}
	}
	if key == serviceSSH {
		if err := s.lab.runSSH(s.esx, running); err != nil {
			return &types.HostConfigFailed{Failure: []types.LocalizedMethodFault{{Fault: &types.SystemError{Reason: err.Error()}}}}
		}
	}
	s.change(ctx, func(one *types.HostService) {
		if one.Key == key {
			one.Running = running
		}
	})
	return nil
}

// boot runs the services that start with the host, and no others.
func (s *serviceSystem) boot(ctx *simulator.Context) {
	s.change(ctx, func(one *types.HostService) { one.Running = one.Policy != string(types.HostServicePolicyOff) })
	if service, _ := s.service(ctx, serviceSSH); service.Running {
		_ = s.lab.runSSH(s.esx, true)
	}
}

// StartService starts a service.
func (s *serviceSystem) StartService(ctx *simulator.Context, req *types.StartService) soap.HasFault {
	if fault := s.reach(ctx, req.Id, true); fault != nil {
		return &methods.StartServiceBody{Fault_: simulator.Fault(sentence(fault), fault)}
	}
	return &methods.StartServiceBody{Res: &types.StartServiceResponse{}}
}

// RestartService restarts a service that runs, or starts one that does not.
func (s *serviceSystem) RestartService(ctx *simulator.Context, req *types.RestartService) soap.HasFault {
	fault := s.reach(ctx, req.Id, true)
	if _, running := fault.(*types.InvalidState); running {
		fault = nil
	}
	if fault != nil {
		return &methods.RestartServiceBody{Fault_: simulator.Fault(sentence(fault), fault)}
	}
	if req.Id == serviceXorg {
		s.lab.restartXorg(ctx, s.esx)
	}
	return &methods.RestartServiceBody{Res: &types.RestartServiceResponse{}}
}

func (l *Lab) restartXorg(ctx *simulator.Context, machine *esx) {
	_ = l.Rack.RestartXorg(machine.name) // the host is known
	l.refresh(ctx, machine.name)
}

// StopService stops a service.
func (s *serviceSystem) StopService(ctx *simulator.Context, req *types.StopService) soap.HasFault {
	if fault := s.reach(ctx, req.Id, false); fault != nil {
		return &methods.StopServiceBody{Fault_: simulator.Fault(sentence(fault), fault)}
	}
	return &methods.StopServiceBody{Res: &types.StopServiceResponse{}}
}

func (s *serviceSystem) reach(ctx *simulator.Context, key string, running bool) types.BaseMethodFault {
	if fault := (&host{s.esx.system, s.lab}).connected(ctx); fault != nil {
		return fault
	}
	return s.run(ctx, key, running)
}

// UpdateServicePolicy says whether a service starts with the host.
func (s *serviceSystem) UpdateServicePolicy(ctx *simulator.Context, req *types.UpdateServicePolicy) soap.HasFault {
	if fault := s.policy(ctx, req.Id, req.Policy); fault != nil {
		return &methods.UpdateServicePolicyBody{Fault_: simulator.Fault(sentence(fault), fault)}
	}
	return &methods.UpdateServicePolicyBody{Res: &types.UpdateServicePolicyResponse{}}
}

func (s *serviceSystem) policy(ctx *simulator.Context, key, policy string) types.BaseMethodFault {
	if fault := (&host{s.esx.system, s.lab}).connected(ctx); fault != nil {
		return fault
	}
	if _, known := s.service(ctx, key); !known {
		return &types.NotFound{}
	}
	if !slices.Contains(types.HostServicePolicy("").Strings(), policy) {
		return &types.InvalidArgument{InvalidProperty: "policy"}
	}
	s.change(ctx, func(one *types.HostService) {
		if one.Key == key {
			one.Policy = policy
		}
	})
	return nil
}

// RefreshServices has nothing to find.
func (s *serviceSystem) RefreshServices(*simulator.Context, *types.RefreshServices) soap.HasFault {
	return &methods.RefreshServicesBody{Res: &types.RefreshServicesResponse{}}
}
