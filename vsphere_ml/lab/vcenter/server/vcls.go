package server

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
)

// makeAgent marks a VM as one of vSphere Cluster Services. Those of ESX Agent Manager were so until 8.0 U2; from 8.0 U3
// on vCenter embeds them. Source: Broadcom KB 370219.
func makeAgent(config *types.VirtualMachineConfigInfo, kind string) {
	keys := []types.BaseOptionValue{&types.OptionValue{Key: "HDCS.agent", Value: "true"}}
	switch kind {
	case "vcls":
		config.ManagedBy = &types.ManagedByInfo{ExtensionKey: "VirtualCenter", Type: "vcls-entity"}
		config.GuestId = "crxSys1Guest"
		keys = append(keys, &types.OptionValue{Key: "vCLSCRX.agent", Value: "true"})
	case "vcls-external":
		config.ManagedBy = &types.ManagedByInfo{ExtensionKey: "com.vmware.vim.eam", Type: "cluster-agent"}
	default:
		return
	}
	config.ExtraConfig = mergeExtraConfig(config.ExtraConfig, keys)
}

// dismissAgents ends the cluster services' VMs of a host that enters maintenance mode: nobody else has to.
func (h *host) dismissAgents(ctx *simulator.Context) {
	for _, victim := range h.running(ctx) {
		if !isAgent(ctx, victim) {
			continue
		}
		_, _ = delegate(ctx, victim, func() types.ManagedObjectReference {
			body := victim.PowerOffVMTask(ctx, &types.PowerOffVM_Task{This: victim.Self})
			return body.(*methods.PowerOffVM_TaskBody).Res.Returnval
		})
		h.lab.release(ctx, victim)
	}
}

func isAgent(ctx *simulator.Context, machine *simulator.VirtualMachine) (is bool) {
	locked(ctx, machine, func() {
		for _, option := range machine.Config.ExtraConfig {
			is = is || option.GetOptionValue().Key == "HDCS.agent"
		}
	})
	return is
}
