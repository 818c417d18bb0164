package server

import (
	"strconv"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// What a distributed switch takes as its MTU where the topology says no other. Source: VMware, "Edit General and Advanced
// vSphere Distributed Switch Settings": 9000 bytes at most; that 1280 is the least is known from use.
const leastMTU, largestMTU = 1280, 9000

// mtuCapability is what the switch tells of the MTUs that it takes. Source: the vSphere API's VMwareDvsMtuCapability, of
// 7.0.2.0.
func mtuCapability(largest int) *types.VMwareDvsMtuCapability {
	if largest == 0 {
		largest = largestMTU
	}
	return &types.VMwareDvsMtuCapability{MinMtuSupported: leastMTU, MaxMtuSupported: int32(largest)}
}

// mtus are the switch's own limits, which it has on servers too that do not tell them.
func (d *distributedSwitch) mtus() *types.VMwareDvsMtuCapability {
	for _, described := range d.lab.File.Switches {
		if described.Name == d.Name {
			return mtuCapability(described.MaxMTU)
		}
	}
	return mtuCapability(0)
}

// ReconfigureDvsTask changes the switch: the MTU by the lab, everything else by the simulator. A spec that names
// another version than the switch has is refused. Source: the vSphere API's DVSConfigSpec.configVersion, which a
// reconfiguration must set to the switch's own, and the method's fault ConcurrentAccess.
func (d *distributedSwitch) ReconfigureDvsTask(ctx *simulator.Context, req *types.ReconfigureDvs_Task) soap.HasFault {
	request := *req
	task := d.lab.start(ctx, job{Method: "ReconfigureDvs_Task", Entity: d.DistributedVirtualSwitch, Name: d.Name,
		Run: func(ctx *simulator.Context, _ *simulator.Task) (types.AnyType, types.BaseMethodFault) {
			return d.reconfigure(ctx, &request)
		}})
	return &methods.ReconfigureDvs_TaskBody{Res: &types.ReconfigureDvs_TaskResponse{Returnval: task}}
}

func (d *distributedSwitch) reconfigure(ctx *simulator.Context, req *types.ReconfigureDvs_Task) (result types.AnyType, fault types.BaseMethodFault) {
	if fault := d.refuse(ctx, req.Spec); fault != nil {
		return nil, fault
	}
	result, fault = delegate(ctx, d.DistributedVirtualSwitch, func() types.ManagedObjectReference {
		body := d.DistributedVirtualSwitch.ReconfigureDvsTask(ctx, req)
		return body.(*methods.ReconfigureDvs_TaskBody).Res.Returnval
	})
	if fault == nil {
		d.apply(ctx, req.Spec)
	}
	return result, fault
}

func (d *distributedSwitch) refuse(ctx *simulator.Context, spec types.BaseDVSConfigSpec) (fault types.BaseMethodFault) {
	locked(ctx, d.DistributedVirtualSwitch, func() {
		if spec.GetDVSConfigSpec().ConfigVersion != d.Config.GetDVSConfigInfo().ConfigVersion {
			fault = &types.ConcurrentAccess{}
		}
	})
	if own, ok := spec.(*types.VMwareDVSConfigSpec); ok && fault == nil && own.MaxMtu != 0 {
		if mtus := d.mtus(); own.MaxMtu < mtus.MinMtuSupported || own.MaxMtu > mtus.MaxMtuSupported {
			return &types.InvalidArgument{InvalidProperty: "spec.maxMtu"}
		}
	}
	return fault
}

// apply puts the MTU in force and counts the version on. Readers may hold the old config, so it is replaced.
func (d *distributedSwitch) apply(ctx *simulator.Context, spec types.BaseDVSConfigSpec) {
	locked(ctx, d.DistributedVirtualSwitch, func() {
		old, ok := d.Config.(*types.VMwareDVSConfigInfo)
		if !ok {
			return
		}
		config := *old
		if own, ok := spec.(*types.VMwareDVSConfigSpec); ok && own.MaxMtu != 0 {
			config.MaxMtu = own.MaxMtu
		}
		version, _ := strconv.Atoi(config.ConfigVersion)
		config.ConfigVersion = strconv.Itoa(version + 1)
		var changed types.BaseDVSConfigInfo = &config
		ctx.Map.Update(ctx, d.DistributedVirtualSwitch, []types.PropertyChange{{Name: "config", Val: changed}})
	})
}
