package server

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/rack"
)

// placeOf is the cluster of the VM's host.
func (l *Lab) placeOf(machine *simulator.VirtualMachine) place {
	at := place{datacenter: l.site.datacenter}
	if host := l.esxOf(machine.Runtime.Host); host != nil {
		at.hosts = l.hostsOf(host.cluster)
	}
	return at
}

// hostsOf are the cluster's hosts in the topology's order.
func (l *Lab) hostsOf(cluster *simulator.ClusterComputeResource) []*esx {
	var hosts []*esx
	for _, name := range l.Rack.Hosts() {
		if host := l.site.hosts[name]; host != nil && host.cluster == cluster {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// clusterOf is the cluster that a resource pool or vApp belongs to, or nil.
func (l *Lab) clusterOf(ctx *simulator.Context, pool types.ManagedObjectReference) *simulator.ClusterComputeResource {
	var owner types.ManagedObjectReference
	switch p := ctx.Map.Get(pool).(type) {
	case *simulator.ResourcePool:
		owner = p.Owner
	case *simulator.VirtualApp:
		owner = p.Owner
	}
	cluster, _ := ctx.Map.Get(owner).(*simulator.ClusterComputeResource)
	return cluster
}

// checkHost says why a host takes no VM now, whatever the VM.
func (l *Lab) checkHost(ctx *simulator.Context, host *esx) (fault types.BaseMethodFault) {
	locked(ctx, host.system, func() {
		switch {
		case host.system.Runtime.ConnectionState == types.HostSystemConnectionStateNotResponding:
			fault = &types.HostNotReachable{}
		case host.system.Runtime.ConnectionState != types.HostSystemConnectionStateConnected:
			fault = &types.HostNotConnected{}
		case host.system.Runtime.InMaintenanceMode || host.entering.Load() > 0:
			fault = &types.InvalidState{}
		}
	})
	return fault
}

// reasons collects why hosts were passed over.
type reasons struct {
	fault types.NoCompatibleHost
}

func (r *reasons) add(host *esx, fault types.BaseMethodFault) {
	r.fault.Host = append(r.fault.Host, host.system.Self)
	r.fault.Error = append(r.fault.Error, localized(fault))
}

// openHosts are the hosts that take VMs and reach the datastore, if one is named; it notes why the others do not.
func (l *Lab) openHosts(ctx *simulator.Context, hosts []*esx, store *simulator.Datastore, why *reasons) []*esx {
	var open []*esx
	for _, host := range hosts {
		fault := l.checkHost(ctx, host)
		if fault == nil && store != nil && !reaches(ctx, host, store) {
			fault = &types.InvalidDatastorePath{DatastorePath: "[" + store.Name + "]"}
		}
		if fault != nil {
			why.add(host, fault)
			continue
		}
		open = append(open, host)
	}
	return open
}

func reaches(ctx *simulator.Context, host *esx, store *simulator.Datastore) (mounted bool) {
	locked(ctx, host.system, func() { mounted = slices.Contains(host.system.Datastore, store.Self) })
	return mounted
}

// home is where a new VM goes when the client names no host: the first host on which it could run now, or else the
// first that could run it once others have ended. vCenter looks at free capacity only at power-on.
func (l *Lab) home(ctx *simulator.Context, hosts []*esx, store *simulator.Datastore, request rack.Request) (*esx, types.BaseMethodFault) {
	why := &reasons{}
	var later *esx
	for _, host := range l.openHosts(ctx, hosts, store, why) {
		_, refusals := l.Rack.Fit([]string{host.name}, request)
		if refusals == nil {
			return host, nil
		}
		if later == nil && passes(refusals[0].Reason) {
			later = host
		}
		why.add(host, l.refusalFault(ctx, refusals[0]))
	}
	if later != nil {
		return later, nil
	}
	return nil, &why.fault
}

// passes tells a shortage, which ends when others power off, from hardware that is not there.
func passes(reason rack.Reason) bool {
	switch reason {
	case rack.NoGraphics, rack.NoGroup, rack.NoMemory, rack.FunctionInUse, rack.NoVirtualFunction:
		return true
	}
	return false
}

// candidates are the hosts that a powered-off VM may start on: its own first, then the rest of its cluster.
func (l *Lab) candidates(machine *simulator.VirtualMachine) []*esx {
	own := l.esxOf(machine.Runtime.Host)
	if own == nil {
		return nil
	}
	ordered := []*esx{own}
	for _, host := range l.hostsOf(own.cluster) {
		if host != own {
			ordered = append(ordered, host)
		}
	}
	return ordered
}
