package server

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/catalogue"
	"vsml.dev/lab/vcenter/rack"
)

// directPath is vCenter's DirectPathProfileManager, which came with API 9.0. It tells how much of a device is left; the
// profiles that an administrator can name for devices are none here.
type directPath struct {
	mo.DirectPathProfileManager
	lab *Lab
}

// addDirectPath serves the manager where the API has it.
func (l *Lab) addDirectPath() error {
	if older(apiVersion(l.File), "9.0.0.0") {
		return nil
	}
	manager := &directPath{lab: l}
	manager.Self = types.ManagedObjectReference{Type: "DirectPathProfileManager", Value: "DirectPathProfileManager"}
	l.Context.Map.Put(manager)
	l.Context.Map.Get(serviceInstance).(*simulator.ServiceInstance).Content.DirectPathProfileManager = &manager.Self
	return nil
}

// DirectPathProfileManagerList lists the profiles that somebody made.
func (*directPath) DirectPathProfileManagerList(*simulator.Context, *types.DirectPathProfileManagerList) soap.HasFault {
	return &methods.DirectPathProfileManagerListBody{Res: &types.DirectPathProfileManagerListResponse{}}
}

// DirectPathProfileManagerQueryCapacity answers one question after another, in their order.
func (d *directPath) DirectPathProfileManagerQueryCapacity(_ *simulator.Context, req *types.DirectPathProfileManagerQueryCapacity) soap.HasFault {
	body := &methods.DirectPathProfileManagerQueryCapacityBody{}
	hosts := d.hosts(req.Target)
	if len(hosts) == 0 {
		fault := &types.InvalidArgument{InvalidProperty: "target"}
		body.Fault_ = simulator.Fault(sentence(fault), fault)
		return body
	}
	body.Res = &types.DirectPathProfileManagerQueryCapacityResponse{}
	for _, question := range req.QuerySpec {
		body.Res.Returnval = append(body.Res.Returnval, d.answer(hosts, question))
	}
	return body
}

// hosts are those of the target: one host, or those of a cluster.
func (d *directPath) hosts(target types.BaseDirectPathProfileManagerTargetEntity) []string {
	var names []string
	switch one := target.(type) {
	case *types.DirectPathProfileManagerTargetHost:
		if machine, ok := d.lab.site.byReference[one.Host]; ok {
			names = append(names, machine.name)
		}
	case *types.DirectPathProfileManagerTargetCluster:
		for _, machine := range d.lab.site.hosts {
			if machine.cluster.Self == one.Cluster {
				names = append(names, machine.name)
			}
		}
	}
	return names
}

func (d *directPath) answer(hosts []string, question types.BaseDirectPathProfileManagerCapacityQuerySpec) types.BaseDirectPathProfileManagerCapacityResult {
	byConfig, ok := question.(*types.DirectPathProfileManagerCapacityQueryByDeviceConfig)
	if !ok { // by the id or name of a profile, of which there are none
		return unknown(question, &types.NotFound{})
	}
	thing, ok := counted(byConfig.DeviceConfig)
	if !ok {
		return unknown(question, &types.NotSupported{})
	}
	info := &types.DirectPathProfileManagerCapacityInfo{Profile: types.DirectPathProfileInfo{
		VendorName: vendor(thing), DeviceConfig: byConfig.DeviceConfig, // of no profile, so without id and name: a guess
	}}
	for _, host := range hosts {
		one := d.lab.Rack.Capacity(host, thing)
		info.Consumed += int32(one.Consumed)
		info.Remaining += int32(one.Remaining)
		info.Max += int32(one.Max)
	}
	return info
}

// counted is what the rack is asked for. Devices whose vendor runs code in ESXi (DVX) are not among the lab's.
func counted(config types.BaseDirectPathProfileManagerDirectPathConfig) (rack.Thing, bool) {
	switch one := config.(type) {
	case *types.DirectPathProfileManagerVmiopDirectPathConfig:
		return rack.Thing{Device: rack.Device{Kind: rack.VGPU, Profile: one.VgpuProfile}}, true
	case *types.DirectPathProfileManagerVirtualDeviceGroupDirectPathConfig:
		return rack.Thing{Group: one.DeviceGroupName}, true
	case *types.DirectPathProfileManagerDynamicDirectPathConfig:
		backing := one.DynamicDirectPathBacking
		return rack.Thing{Device: rack.Device{
			Kind: rack.Dynamic, Label: backing.CustomLabel, Allowed: allowed(backing.AllowedDevice),
		}}, true
	}
	return rack.Thing{}, false
}

func vendor(thing rack.Thing) string {
	board := catalogue.Board{VendorID: catalogue.NVIDIA}
	if ids := thing.Device.Allowed; len(ids) > 0 {
		board.VendorID = ids[0].Vendor
	}
	return board.VendorName()
}

func unknown(question types.BaseDirectPathProfileManagerCapacityQuerySpec, why types.BaseMethodFault) *types.DirectPathProfileManagerCapacityUnknown {
	return &types.DirectPathProfileManagerCapacityUnknown{
		QuerySpec: question,
		FaultList: []types.LocalizedMethodFault{{Fault: why, LocalizedMessage: sentence(why)}},
	}
}
