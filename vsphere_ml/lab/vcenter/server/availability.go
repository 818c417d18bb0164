package server

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

// availability is how the cluster keeps resources for the failure of a host. Fields as in the vSphere API's
// ClusterDasConfigInfo; with autoComputePercentages (6.5 and later) vCenter finds the percentages from the hosts that
// may fail: 4 equal hosts and 1 failure make 25 %.
func availability(described topology.Cluster) types.ClusterDasConfigInfo {
	ha := described.HA
	if ha == nil {
		return types.ClusterDasConfigInfo{Enabled: types.NewBool(false)}
	}
	info := types.ClusterDasConfigInfo{Enabled: types.NewBool(true), AdmissionControlEnabled: types.NewBool(ha.Policy != "off")}
	switch ha.Policy {
	case "percentage":
		policy := &types.ClusterFailoverResourcesAdmissionControlPolicy{
			CpuFailoverResourcesPercent: int32(ha.CPUPercent), MemoryFailoverResourcesPercent: int32(ha.MemoryPercent),
			AutoComputePercentages: types.NewBool(ha.Failures > 0), FailoverLevel: int32(ha.Failures),
		}
		if ha.Failures > 0 {
			share := int32((100*ha.Failures + len(described.Hosts) - 1) / len(described.Hosts))
			policy.CpuFailoverResourcesPercent, policy.MemoryFailoverResourcesPercent = share, share
		}
		info.AdmissionControlPolicy = policy
	case "slots":
		info.FailoverLevel = int32(ha.Failures)
		policy := &types.ClusterFailoverLevelAdmissionControlPolicy{FailoverLevel: int32(ha.Failures)}
		if ha.SlotMemoryMiB > 0 {
			policy.SlotPolicy = &types.ClusterFixedSizeSlotPolicy{Cpu: 32, Memory: int32(ha.SlotMemoryMiB)}
		}
		info.AdmissionControlPolicy = policy
	case "dedicated":
		info.AdmissionControlPolicy = &types.ClusterFailoverHostAdmissionControlPolicy{FailoverLevel: int32(max(ha.Failures, 1))}
	}
	return info
}

// dedicate names the failover hosts once they are there.
func (l *Lab) dedicate(described topology.Cluster, owner *simulator.ClusterComputeResource) {
	policy, ok := owner.ConfigurationEx.(*types.ClusterConfigInfoEx).DasConfig.AdmissionControlPolicy.(*types.ClusterFailoverHostAdmissionControlPolicy)
	if !ok {
		return
	}
	for _, name := range described.HA.Hosts {
		if host := l.site.hosts[name]; host != nil {
			policy.FailoverHosts = append(policy.FailoverHosts, host.system.Self)
		}
	}
}

// keptForFailure refuses a power-on that leaves less than HA keeps for the failure of a host, or is on a host that it
// keeps ("vCenter Server will prevent users from powering on virtual machines on that host", vSphere API,
// ClusterFailoverHostAdmissionControlPolicy).
func (l *Lab) keptForFailure(ctx *simulator.Context, machine *simulator.VirtualMachine, host *esx) types.BaseMethodFault {
	var policy types.BaseClusterDasAdmissionControlPolicy
	locked(ctx, host.cluster, func() {
		if config, ok := host.cluster.ConfigurationEx.(*types.ClusterConfigInfoEx); ok && isTrue(config.DasConfig.Enabled) && isTrue(config.DasConfig.AdmissionControlEnabled) {
			policy = config.DasConfig.AdmissionControlPolicy
		}
	})
	enough := true
	switch policy := policy.(type) {
	case *types.ClusterFailoverResourcesAdmissionControlPolicy:
		enough = l.percentageLeft(ctx, policy, machine, host)
	case *types.ClusterFailoverLevelAdmissionControlPolicy:
		enough = l.slotsLeft(ctx, policy, machine, host)
	case *types.ClusterFailoverHostAdmissionControlPolicy:
		enough = !slices.Contains(policy.FailoverHosts, host.system.Self)
	}
	if !enough {
		return &types.InsufficientFailoverResourcesFault{}
	}
	return nil
}

// percentageLeft goes by the vSphere Availability guide, "Cluster Resource Percentage Admission Control":
// (total - reserved) / total is compared, over the hosts that are connected and not in maintenance mode. CPU counts by
// reservation, which is 0 here.
func (l *Lab) percentageLeft(ctx *simulator.Context, policy *types.ClusterFailoverResourcesAdmissionControlPolicy, machine *simulator.VirtualMachine, host *esx) bool {
	reserved := requestOf("", present(machine.Config, machine.Runtime.PowerState)).ReservedMiB
	total := int64(0)
	for _, other := range l.hostsOf(host.cluster) {
		if l.checkHost(ctx, other) == nil {
			view := l.view(other)
			total, reserved = total+view.MemoryMiB, reserved+view.ReservedMiB
		}
	}
	return (total-reserved)*100 >= int64(policy.MemoryFailoverResourcesPercent)*total
}

// slotsLeft goes by the vSphere Availability guide, "Slot Policy Admission Control": a slot is as large as the largest
// memory reservation of a VM that runs, or as was set; the hosts with most slots may fail, and the others must have one
// for each VM, or several for a VM that is larger than the size that was set. CPU and the VMs' overhead are not modelled.
func (l *Lab) slotsLeft(ctx *simulator.Context, policy *types.ClusterFailoverLevelAdmissionControlPolicy, machine *simulator.VirtualMachine, host *esx) bool {
	members := map[types.ManagedObjectReference]bool{}
	for _, other := range l.hostsOf(host.cluster) {
		members[other.system.Self] = true
	}
	needs := []int64{requestOf("", present(machine.Config, machine.Runtime.PowerState)).ReservedMiB}
	for _, each := range ctx.Map.All("VirtualMachine") {
		vm, ok := each.(*simulator.VirtualMachine)
		if ok && vm.Self != machine.Self && vm.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn && vm.Runtime.Host != nil && members[*vm.Runtime.Host] {
			needs = append(needs, requestOf("", present(vm.Config, vm.Runtime.PowerState)).ReservedMiB)
		}
	}
	size := max(slices.Max(needs), 1)
	if set, ok := policy.SlotPolicy.(*types.ClusterFixedSizeSlotPolicy); ok {
		size = int64(set.Memory)
	}
	var slots []int64
	for _, other := range l.hostsOf(host.cluster) {
		if l.checkHost(ctx, other) == nil {
			slots = append(slots, l.view(other).MemoryMiB/size)
		}
	}
	slices.Sort(slots)
	left := int64(0)
	for _, each := range slots[:max(0, len(slots)-int(policy.FailoverLevel))] {
		left += each
	}
	for _, need := range needs {
		left -= max(1, (need+size-1)/size)
	}
	return left >= 0
}
