package server

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// A host does PVRDMA by a VMkernel adapter that this advanced option names, through a firewall that lets this through.
// Source: VMware, "Configure an ESXi Host for PVRDMA".
const (
	pvrdmaOption  = "Net.PVRDMAVmknic"
	pvrdmaRuleset = "pvrdma"
	// pvrdmaVersion is the first virtual hardware with a PVRDMA adapter (the same source).
	pvrdmaVersion = 13
)

// setFirewall gives the host rules of its own, which the simulator's template shares among all hosts, and opens or
// closes it for PVRDMA.
func (l *Lab) setFirewall(host *simulator.HostSystem, open bool) {
	reference := host.ConfigManager.FirewallSystem
	if reference == nil {
		return
	}
	system, ok := l.Context.Map.Get(*reference).(*simulator.HostFirewallSystem)
	if !ok || system.FirewallInfo == nil {
		return
	}
	info := *system.FirewallInfo
	info.Ruleset = slices.Clone(info.Ruleset)
	for i := range info.Ruleset {
		if info.Ruleset[i].Key == pvrdmaRuleset {
			info.Ruleset[i].Enabled = open
		}
	}
	system.FirewallInfo, host.Config.Firewall = &info, &info
}

// checkPVRDMA: the adapter needs a distributed switch and the two RoCE versions are all it speaks.
func checkPVRDMA(device types.BaseVirtualDevice, index int32) types.BaseMethodFault {
	card, ok := device.(*types.VirtualVmxnet3Vrdma)
	if !ok {
		return nil
	}
	if _, ok := card.Backing.(*types.VirtualEthernetCardDistributedVirtualPortBackingInfo); !ok {
		fault := &types.InvalidDeviceBacking{}
		fault.DeviceIndex = index
		return fault
	}
	if !slices.Contains([]string{"", "rocev1", "rocev2"}, card.DeviceProtocol) {
		return &types.InvalidArgument{InvalidProperty: "deviceProtocol"}
	}
	return nil
}
