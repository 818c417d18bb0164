package server

import (
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
