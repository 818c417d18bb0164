package server

import (
	"fmt"
	"slices"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/catalogue"
	"vsml.dev/lab/vcenter/rack"
)

// directPath is vCenter's DirectPathProfileManager, which came with API 9.0. It tells how much of a device is left, and
// keeps the names that somebody gave to devices. Source: the vSphere API of 9.0.
type directPath struct {
	mo.DirectPathProfileManager
	lab      *Lab
	guard    sync.Mutex
	profiles []types.DirectPathProfileInfo
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

// DirectPathProfileManagerCreate names a device; a name is given once.
func (d *directPath) DirectPathProfileManagerCreate(_ *simulator.Context, req *types.DirectPathProfileManagerCreate) soap.HasFault {
	d.guard.Lock()
	defer d.guard.Unlock()
	body := &methods.DirectPathProfileManagerCreateBody{}
	if len(d.chosen(nil, []string{req.Spec.Name})) > 0 {
		body.Fault_ = simulator.Fault("", &types.AlreadyExists{Name: req.Spec.Name})
		return body
	}
	thing, _ := counted(req.Spec.DeviceConfig)
	made := types.DirectPathProfileInfo{
		Id: fmt.Sprintf("directpath-profile-%d", len(d.profiles)+1), Name: req.Spec.Name, Description: req.Spec.Description,
		VendorName: vendor(thing), DeviceConfig: req.Spec.DeviceConfig,
	}
	d.profiles = append(d.profiles, made)
	body.Res = &types.DirectPathProfileManagerCreateResponse{Returnval: made.Id}
	return body
}

// DirectPathProfileManagerList lists the profiles that somebody made, or those of some ids and names.
func (d *directPath) DirectPathProfileManagerList(_ *simulator.Context, req *types.DirectPathProfileManagerList) soap.HasFault {
	d.guard.Lock()
	defer d.guard.Unlock()
	return &methods.DirectPathProfileManagerListBody{Res: &types.DirectPathProfileManagerListResponse{
		Returnval: d.chosen(req.FilterSpec.Ids, req.FilterSpec.Names),
	}}
}

// chosen are the profiles of these ids and names, where any are given; take the guard.
func (d *directPath) chosen(ids, names []string) (found []types.DirectPathProfileInfo) {
	for _, one := range d.profiles {
		if (len(ids) == 0 || slices.Contains(ids, one.Id)) && (len(names) == 0 || slices.Contains(names, one.Name)) {
			found = append(found, one)
		}
	}
	return found
}

// meant is the device that a question is about, and the profile by which it named it.
func (d *directPath) meant(question types.BaseDirectPathProfileManagerCapacityQuerySpec) (profile types.DirectPathProfileInfo, known bool) {
	d.guard.Lock()
	defer d.guard.Unlock()
	var found []types.DirectPathProfileInfo
	switch one := question.(type) {
	case *types.DirectPathProfileManagerCapacityQueryByDeviceConfig: // of no profile, so without id and name: a guess
		return types.DirectPathProfileInfo{DeviceConfig: one.DeviceConfig}, true
	case *types.DirectPathProfileManagerCapacityQueryById:
		found = d.chosen([]string{one.Id}, nil)
	case *types.DirectPathProfileManagerCapacityQueryByName:
		found = d.chosen(nil, []string{one.Name})
	}
	if len(found) == 0 {
		return profile, false
	}
	return found[0], true
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
	profile, ok := d.meant(question)
	if !ok {
		return unknown(question, &types.NotFound{})
	}
	thing, ok := counted(profile.DeviceConfig)
	if !ok {
		return unknown(question, &types.NotSupported{})
	}
	profile.VendorName = vendor(thing)
	info := &types.DirectPathProfileManagerCapacityInfo{Profile: profile}
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
