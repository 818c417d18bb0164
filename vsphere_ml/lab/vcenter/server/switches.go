package server

import (
	"fmt"
	"maps"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

// putChild registers an entity in a folder.
func (l *Lab) putChild(parent *simulator.Folder, child mo.Entity) {
	l.Context.Map.PutEntity(parent, child)
	parent.ChildEntity = append(parent.ChildEntity, child.Reference())
}

// wait is what the simulator's task came to.
func (l *Lab) wait(reference types.ManagedObjectReference) (types.AnyType, error) {
	task := l.Context.Map.Get(reference).(*simulator.Task)
	task.Wait()
	if task.Info.Error != nil {
		return nil, fmt.Errorf("%s: %T", task.Info.DescriptionId, task.Info.Error.Fault)
	}
	return task.Info.Result, nil
}

func (l *Lab) addSwitches() error {
	for _, described := range l.File.Switches {
		made, err := l.addSwitch(described)
		if err != nil {
			return fmt.Errorf("dvs %q: %w", described.Name, err)
		}
		if err := l.addPortgroups(made, described.Name); err != nil {
			return fmt.Errorf("dvs %q: %w", described.Name, err)
		}
		l.join(made, described)
	}
	return nil
}

// addSwitch makes a switch and its port group of uplinks. The simulator makes the latter in a task of its own, which
// CreateDVS_Task does not wait for: one that ends later writes the switch's list of port groups anew, and those that
// were added meanwhile are lost.
func (l *Lab) addSwitch(described topology.Switch) (*simulator.DistributedVirtualSwitch, error) {
	spec := &types.VMwareDVSConfigSpec{MaxMtu: int32(described.MTU)}
	spec.Name = described.Name
	spec.ConfigVersion = "1"
	spec.UplinkPortPolicy = &types.DVSNameArrayUplinkPortPolicy{UplinkPortName: []string{"Uplink 1", "Uplink 2"}}
	networks := l.folder(l.site.datacenter.NetworkFolder)
	body := networks.CreateDVSTask(l.Context, &types.CreateDVS_Task{This: networks.Self, Spec: types.DVSCreateSpec{ConfigSpec: spec}})
	result, err := l.wait(body.(*methods.CreateDVS_TaskBody).Res.Returnval)
	if err != nil {
		return nil, err
	}
	made := l.Context.Map.Get(result.(types.ManagedObjectReference)).(*simulator.DistributedVirtualSwitch)
	if !older(apiVersion(l.File), "7.0.2.0") {
		made.Capability.FeaturesSupported = &types.VMwareDVSFeatureCapability{MtuCapability: mtuCapability(described.MaxMTU)}
	}
	for _, task := range made.RecentTask {
		if _, err := l.wait(task); err != nil {
			return nil, err
		}
	}
	return made, nil
}

func (l *Lab) addPortgroups(made *simulator.DistributedVirtualSwitch, name string) error {
	var specs []types.DVPortgroupConfigSpec
	for _, described := range l.File.Portgroups {
		if described.DVS != name {
			continue
		}
		specs = append(specs, types.DVPortgroupConfigSpec{
			Name: described.Name, NumPorts: portsOf(described), AutoExpand: types.NewBool(described.Ports == 0),
			Type: string(types.DistributedVirtualPortgroupPortgroupTypeEarlyBinding),
			DefaultPortConfig: &types.VMwareDVSPortSetting{
				Vlan: &types.VmwareDistributedVirtualSwitchVlanIdSpec{VlanId: int32(described.VLAN)},
			},
		})
	}
	body := made.AddDVPortgroupTask(l.Context, &types.AddDVPortgroup_Task{This: made.Self, Spec: specs})
	if _, err := l.wait(body.(*methods.AddDVPortgroup_TaskBody).Res.Returnval); err != nil {
		return err
	}
	for _, reference := range made.Portgroup {
		group := l.Context.Map.Get(reference).(*simulator.DistributedVirtualPortgroup)
		group.Config.Uplink = types.NewBool(len(group.Name) > len(name) && group.Name[:len(name)] == name)
		l.site.portgroups[group.Name] = group
	}
	return nil
}

// portsOf is the number of ports a group begins with; 128 is what a switch's own dialogue once proposed.
func portsOf(described topology.Portgroup) int32 {
	if described.Ports > 0 {
		return int32(described.Ports)
	}
	return 128
}

// join makes every host a member, directly for the same reason as addHosts, with its adapters as uplinks. The
// simulator's own join leaves config.host empty.
func (l *Lab) join(made *simulator.DistributedVirtualSwitch, like topology.Switch) {
	config := made.Config.GetDVSConfigInfo()
	for _, described := range l.File.Clusters {
		owner := l.site.clusters[described.Name]
		for _, name := range described.Hosts {
			machine := l.site.hosts[name]
			made.Summary.HostMember = append(made.Summary.HostMember, machine.system.Self)
			config.Host = append(config.Host, hostMember(machine, like))
			l.connectPortgroups(made, machine)
			l.addAdapters(made, machine)
			addProxy(made, machine, like)
		}
		for _, reference := range made.Portgroup {
			if !slices.Contains(owner.Network, reference) {
				owner.Network = append(owner.Network, reference)
			}
		}
	}
	made.Summary.NumHosts = int32(len(config.Host))
}

// addAdapters gives the host its VMkernel adapters on the switch's port groups.
func (l *Lab) addAdapters(made *simulator.DistributedVirtualSwitch, machine *esx) {
	network := machine.system.Config.Network
	for _, device := range slices.Sorted(maps.Keys(machine.model.VMKernel)) {
		group, ok := l.site.portgroups[machine.model.VMKernel[device]]
		if !ok || !slices.Contains(made.Portgroup, group.Self) {
			continue
		}
		port := &types.DistributedVirtualSwitchPortConnection{SwitchUuid: made.Uuid, PortgroupKey: group.Key}
		network.Vnic = append(network.Vnic, types.HostVirtualNic{
			Device: device, Key: "key-vim.host.VirtualNic-" + device,
			Spec: types.HostVirtualNicSpec{Ip: &types.HostIpConfig{Dhcp: true}, Mtu: 9000, DistributedVirtualPort: port},
		})
	}
}

func (l *Lab) connectPortgroups(made *simulator.DistributedVirtualSwitch, machine *esx) {
	for _, reference := range made.Portgroup {
		group := l.Context.Map.Get(reference).(*simulator.DistributedVirtualPortgroup)
		group.Host = append(group.Host, machine.system.Self)
		machine.system.Network = append(machine.system.Network, reference)
	}
}

// hostMember has the adapters that the topology names as the switch's uplinks; all of the host's when it names none.
func hostMember(machine *esx, like topology.Switch) types.DistributedVirtualSwitchHostMember {
	reference := machine.system.Self
	return types.DistributedVirtualSwitchHostMember{
		Status: "up",
		Config: types.DistributedVirtualSwitchHostMemberConfigInfo{
			Host: &reference, MaxProxySwitchPorts: proxyPorts, Backing: pnicBacking(uplinks(machine, like)),
		},
	}
}

func uplinks(machine *esx, like topology.Switch) []topology.NIC {
	return slices.DeleteFunc(slices.Clone(machine.model.NICs), func(nic topology.NIC) bool {
		return like.Uplinks != nil && !slices.Contains(like.Uplinks, nic.VMNic)
	})
}

func pnicBacking(nics []topology.NIC) *types.DistributedVirtualSwitchHostMemberPnicBacking {
	backing := &types.DistributedVirtualSwitchHostMemberPnicBacking{}
	for _, nic := range nics {
		backing.PnicSpec = append(backing.PnicSpec, types.DistributedVirtualSwitchHostMemberPnicSpec{PnicDevice: nic.VMNic})
	}
	return backing
}
