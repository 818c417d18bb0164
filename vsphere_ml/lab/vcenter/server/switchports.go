package server

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// FetchDVPorts lists the switch's ports with who is connected to each. Source: the vSphere API's
// DistributedVirtualPort.connectee and DistributedVirtualSwitchPortCriteria; an early-binding port group assigns a port
// when a VM is reconfigured to connect to it, so that a VM that is off holds one, too.
func (d *distributedSwitch) FetchDVPorts(ctx *simulator.Context, request *types.FetchDVPorts) soap.HasFault {
	all := *request
	var connected *bool
	if request.Criteria != nil {
		criteria := *request.Criteria
		connected, criteria.Connected = criteria.Connected, nil
		all.Criteria = &criteria
	}
	body := d.DistributedVirtualSwitch.FetchDVPorts(ctx, &all).(*methods.FetchDVPortsBody)
	holders := connectedVMs(ctx)
	var found []types.DistributedVirtualPort
	for _, port := range body.Res.Returnval {
		if waiting := holders[port.PortgroupKey]; len(waiting) > 0 {
			port.Connectee = &types.DistributedVirtualSwitchPortConnectee{ConnectedEntity: &waiting[0], Type: "vmVnic"}
			holders[port.PortgroupKey] = waiting[1:]
		}
		if connected == nil || *connected == (port.Connectee != nil) {
			found = append(found, port)
		}
	}
	return &methods.FetchDVPortsBody{Res: &types.FetchDVPortsResponse{Returnval: found}}
}

// connectedVMs are the VMs with an adapter on each port group, once for each adapter.
func connectedVMs(ctx *simulator.Context) map[string][]types.ManagedObjectReference {
	found := map[string][]types.ManagedObjectReference{}
	for _, object := range ctx.Map.AllReference("VirtualMachine") {
		machine := machineOf(ctx, object.Reference())
		if machine == nil {
			continue
		}
		locked(ctx, machine, func() {
			for _, device := range machine.Config.Hardware.Device {
				backing, ok := device.GetVirtualDevice().Backing.(*types.VirtualEthernetCardDistributedVirtualPortBackingInfo)
				if ok {
					found[backing.Port.PortgroupKey] = append(found[backing.Port.PortgroupKey], machine.Self)
				}
			}
		})
	}
	return found
}
