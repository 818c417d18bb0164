package server

import "github.com/vmware/govmomi/vim25/types"

// The settings that every new VM of a vCenter has; the simulator leaves them empty. Terraform's provider has the same
// as its defaults, so that a plan for a VM as it was made is empty. Sources: the vSphere API's ToolsConfigInfo,
// VirtualMachineFlagInfo, VirtualMachineBootOptions (10 s) and VirtualMachineConfigInfo.swapPlacement; for the scripts
// of VMware Tools, the defaults that the provider's documents name (known, not read from a vCenter).
var (
	usualFlags = types.VirtualMachineFlagInfo{
		VirtualExecUsage: string(types.VirtualMachineFlagInfoVirtualExecUsageHvAuto),
		VirtualMmuUsage:  string(types.VirtualMachineFlagInfoVirtualMmuUsageAutomatic),
	}
	usualBoot  = types.VirtualMachineBootOptions{BootRetryDelay: 10000}
	usualTools = types.ToolsConfigInfo{
		AfterPowerOn: types.NewBool(true), AfterResume: types.NewBool(true),
		BeforeGuestStandby: types.NewBool(true), BeforeGuestShutdown: types.NewBool(true),
		ToolsUpgradePolicy: string(types.UpgradePolicyManual),
	}
	usualSwap = string(types.VirtualMachineConfigInfoSwapPlacementTypeInherit)
)

// asUsual completes a new VM's configuration.
func asUsual(config *types.VirtualMachineConfigInfo) {
	config.Flags = *blended(&usualFlags, &config.Flags)
	config.BootOptions = blended(&usualBoot, orEmpty(config.BootOptions))
	config.Tools = blended(&usualTools, orEmpty(config.Tools))
	if config.SwapPlacement == "" {
		config.SwapPlacement = usualSwap
	}
}

// asUsualIn completes what a spec for a new VM fills in part; the simulator takes the part for the whole.
func asUsualIn(spec *types.VirtualMachineConfigSpec) {
	spec.Flags = blended(&usualFlags, orEmpty(spec.Flags))
	spec.BootOptions = blended(&usualBoot, orEmpty(spec.BootOptions))
}

func orEmpty[T any](value *T) *T {
	if value == nil {
		return new(T)
	}
	return value
}
