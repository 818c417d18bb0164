package server

import (
	"testing"

	"github.com/vmware/govmomi/vim25/types"
)

// A VM that ships with the lab, and clones, have what a vCenter gives a new VM.
func TestVMsHaveTheUsualSettings(t *testing.T) {
	client := login(t, startLab(t, "quad-8.0u3"))
	for _, name := range []string{"etl-7", "ubuntu-22.04-gpu"} {
		config := machineProperties(t, machineNamed(t, client, name), "config").Config
		if config.BootOptions == nil || config.BootOptions.BootRetryDelay != 10000 {
			t.Errorf("%s: boot options %+v", name, config.BootOptions)
		}
		if config.Flags.VirtualExecUsage != "hvAuto" || config.Flags.VirtualMmuUsage != "automatic" || config.SwapPlacement != "inherit" {
			t.Errorf("%s: flags %+v, swap %q", name, config.Flags, config.SwapPlacement)
		}
		if tools := config.Tools; tools == nil || !isTrue(tools.AfterPowerOn) || !isTrue(tools.BeforeGuestShutdown) || isTrue(tools.BeforeGuestReboot) {
			t.Errorf("%s: tools %+v", name, tools)
		}
	}
}

func TestToolsSettingsAreChangedInPart(t *testing.T) {
	client := login(t, startLab(t, "quad-8.0u3"))
	machine := machineNamed(t, client, "etl-7")
	change := types.VirtualMachineConfigSpec{Tools: &types.ToolsConfigInfo{AfterResume: types.NewBool(false)}, SwapPlacement: "hostLocal"}
	task, err := machine.Reconfigure(within(t), change)
	if err != nil {
		t.Fatal(err)
	}
	if err := task.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	config := machineProperties(t, machine, "config").Config
	if isTrue(config.Tools.AfterResume) || !isTrue(config.Tools.AfterPowerOn) || config.SwapPlacement != "hostLocal" {
		t.Errorf("tools %+v, swap %q", config.Tools, config.SwapPlacement)
	}
}
