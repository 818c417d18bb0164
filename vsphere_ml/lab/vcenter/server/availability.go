package server

import (
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
		info.AdmissionControlPolicy = &types.ClusterFailoverLevelAdmissionControlPolicy{FailoverLevel: int32(ha.Failures)}
	case "dedicated":
		info.AdmissionControlPolicy = &types.ClusterFailoverHostAdmissionControlPolicy{FailoverLevel: int32(max(ha.Failures, 1))}
	}
	return info
}

// keptForFailure refuses a power-on that leaves less of the cluster's memory unreserved than HA keeps. Rule: vSphere
// Availability guide, "Cluster Resource Percentage Admission Control": (total - reserved) / total is compared, over the
// hosts that are connected and not in maintenance mode. Slots are not modelled; CPU counts by reservation, which is 0 here.
func (l *Lab) keptForFailure(ctx *simulator.Context, machine *simulator.VirtualMachine, host *esx) types.BaseMethodFault {
	var policy *types.ClusterFailoverResourcesAdmissionControlPolicy
	locked(ctx, host.cluster, func() {
		if config, ok := host.cluster.ConfigurationEx.(*types.ClusterConfigInfoEx); ok && isTrue(config.DasConfig.Enabled) && isTrue(config.DasConfig.AdmissionControlEnabled) {
			policy, _ = config.DasConfig.AdmissionControlPolicy.(*types.ClusterFailoverResourcesAdmissionControlPolicy)
		}
	})
	if policy == nil {
		return nil
	}
	reserved := requestOf("", present(machine.Config, machine.Runtime.PowerState)).ReservedMiB
	total := int64(0)
	for _, other := range l.hostsOf(host.cluster) {
		if l.checkHost(ctx, other) == nil {
			view := l.view(other)
			total, reserved = total+view.MemoryMiB, reserved+view.ReservedMiB
		}
	}
	if (total-reserved)*100 < int64(policy.MemoryFailoverResourcesPercent)*total {
		return &types.InsufficientFailoverResourcesFault{}
	}
	return nil
}
