package server

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/rack"
)

// UpdateGraphicsConfig sets the host's graphics type, policy and modes. A changed type counts once X.Org or the host was
// restarted (vSphere Resource Management, "Configuring Host Graphics": "you must restart Xorg on the host").
func (g *graphicsManager) UpdateGraphicsConfig(ctx *simulator.Context, req *types.UpdateGraphicsConfig) soap.HasFault {
	if fault := g.update(&req.Config); fault != nil {
		return &methods.UpdateGraphicsConfigBody{Fault_: simulator.Fault(sentence(fault), fault)}
	}
	g.lab.refresh(ctx, g.esx.name)
	return &methods.UpdateGraphicsConfigBody{Res: &types.UpdateGraphicsConfigResponse{}}
}

func (g *graphicsManager) update(config *types.HostGraphicsConfig) types.BaseMethodFault {
	if fault := g.check(config); fault != nil {
		return fault
	}
	name := g.esx.name
	if err := g.lab.Rack.SetGraphics(name, config.HostDefaultGraphicsType, config.SharedPassthruAssignmentPolicy); err != nil {
		return &types.HostConfigFault{}
	}
	for _, device := range config.DeviceType {
		mode := device.VgpuMode
		if older(apiVersion(g.lab.File), "8.0.3.0") {
			mode = ""
		}
		if err := g.lab.Rack.SetGPU(name, address(device.DeviceId), device.GraphicsType, mode); err != nil {
			return settingFault(err, "config.deviceType")
		}
	}
	return nil
}

func (g *graphicsManager) check(config *types.HostGraphicsConfig) types.BaseMethodFault {
	graphics := []string{"shared", rack.SharedDirect}
	switch {
	case !slices.Contains(graphics, config.HostDefaultGraphicsType):
		return &types.InvalidArgument{InvalidProperty: "config.hostDefaultGraphicsType"}
	case !slices.Contains([]string{rack.Performance, rack.Consolidation}, config.SharedPassthruAssignmentPolicy):
		return &types.InvalidArgument{InvalidProperty: "config.sharedPassthruAssignmentPolicy"}
	}
	for _, device := range config.DeviceType {
		if device.GraphicsType != "" && !slices.Contains(graphics, device.GraphicsType) ||
			!slices.Contains([]string{"", rack.SameSize, rack.MixedSize}, device.VgpuMode) {
			return &types.InvalidArgument{InvalidProperty: "config.deviceType"}
		}
	}
	return nil
}
