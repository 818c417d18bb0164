package server

import (
	"errors"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/rack"
)

// UpdatePassthruConfig configures functions for DirectPath I/O and SR-IOV. With applyNow it counts at once, with false
// from the next boot. Unset, the host decides by deviceRebindWithoutRebootSupported (vSphere API reference); virtual
// functions then wait for the boot, since NVIDIA's driver takes their number when it is loaded.
func (p *passthruSystem) UpdatePassthruConfig(ctx *simulator.Context, req *types.UpdatePassthruConfig) soap.HasFault {
	for _, change := range req.Config {
		if fault := p.update(change); fault != nil {
			return &methods.UpdatePassthruConfigBody{Fault_: simulator.Fault(sentence(fault), fault)}
		}
	}
	p.lab.refresh(ctx, p.esx.name)
	return &methods.UpdatePassthruConfigBody{Res: &types.UpdatePassthruConfigResponse{}}
}

func (p *passthruSystem) update(change types.BaseHostPciPassthruConfig) types.BaseMethodFault {
	base := change.GetHostPciPassthruConfig()
	id, now := address(base.Id), isTrue(base.ApplyNow)
	rebinds := isTrue(p.esx.system.Capability.DeviceRebindWithoutRebootSupported)
	if sriov, ok := change.(*types.HostSriovConfig); ok {
		err := p.lab.Rack.SetSRIOV(p.esx.name, id, sriov.SriovEnabled, int(sriov.NumVirtualFunction), now)
		return settingFault(err, "config.numVirtualFunction")
	}
	var label *string
	if base.HardwareLabel != "" {
		label = &base.HardwareLabel
	}
	now = now || base.ApplyNow == nil && rebinds
	return settingFault(p.lab.Rack.SetPassthrough(p.esx.name, id, base.PassthruEnabled, now, label), "config.id")
}

// settingFault is the vSphere fault for a setting the rack refused.
func settingFault(err error, property string) types.BaseMethodFault {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rack.ErrNoFunction):
		return &types.InvalidArgument{InvalidProperty: "config.id"}
	case errors.Is(err, rack.ErrInUse):
		return &types.ResourceInUse{}
	}
	return &types.InvalidArgument{InvalidProperty: property}
}
