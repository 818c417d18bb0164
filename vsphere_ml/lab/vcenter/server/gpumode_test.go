package server

import (
	"strings"
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

const modes = "nvidia-smi --query-gpu=pci.bus_id,mig.mode.current,mig.mode.pending --format=csv,noheader"

func (r *rig) hostConfig(host *object.HostSystem) *types.HostConfigInfo {
	r.Helper()
	var properties mo.HostSystem
	if err := host.Properties(r.ctx, host.Reference(), []string{"config", "configManager"}, &properties); err != nil {
		r.Fatal(err)
	}
	return properties.Config
}

func (r *rig) emptied(host *object.HostSystem) {
	r.Helper()
	if fault := r.done(host.EnterMaintenanceMode(r.ctx, 0, false, nil)); fault != nil {
		r.Fatalf("%T", fault)
	}
}

func TestAGraphicsTypeCountsOnceXorgOrTheHostWasRestarted(t *testing.T) {
	for _, how := range []string{"service", "script", "reboot"} {
		r := newRig(t, "quad-8.0u3", func(f *topology.File) { f.Models[0].GraphicsType, f.VMs = "shared", nil })
		host := r.host("esx-01.lab.test")
		r.startSSH(host)
		if _, status := r.types("esx-01.lab.test", "esxcli graphics host set --default-type SharedPassthru"); status != 0 {
			t.Fatal("the type was refused")
		}
		config := r.hostConfig(host)
		if config.GraphicsConfig.HostDefaultGraphicsType != "sharedDirect" || config.GraphicsInfo[0].GraphicsType != "shared" {
			t.Errorf("%s: configured %s, in force %s", how, config.GraphicsConfig.HostDefaultGraphicsType, config.GraphicsInfo[0].GraphicsType)
		}
		switch how {
		case "service":
			if _, err := methods.RestartService(r.ctx, r.client, &types.RestartService{This: r.services(host), Id: serviceXorg}); err != nil {
				t.Fatal(err)
			}
		case "script":
			r.types("esx-01.lab.test", "/etc/init.d/xorg restart")
		case "reboot":
			r.emptied(host)
			r.rebooted(host)
		}
		if info := r.hostConfig(host).GraphicsInfo[0]; info.GraphicsType != "sharedDirect" {
			t.Errorf("%s: %s is in force", how, info.GraphicsType)
		}
	}
}

func TestMIGModeOfAmpereWaitsForTheBootAndHoppersDoesNot(t *testing.T) {
	r := newRig(t, "quad-8.0u3", func(f *topology.File) {
		f.VMs = nil
		f.Models[0].GPUs[1].Board = "H100-PCIE-80GB"
	})
	host := r.host("esx-01.lab.test")
	r.startSSH(host)
	out, status := r.types("esx-01.lab.test", "nvidia-smi -i 0000:3b:00.0 -mig 1")
	if status != 0 || !strings.Contains(out, "pending enable state for GPU 00000000:3B:00.0") {
		t.Errorf("%d: %s", status, out)
	}
	if out, _ := r.types("esx-01.lab.test", "nvidia-smi -i 1 -mig 1"); !strings.HasPrefix(out, "Enabled MIG Mode for GPU 00000000:3C:00.0") {
		t.Error(out)
	}
	want := "00000000:3B:00.0, Disabled, Enabled\n00000000:3C:00.0, Enabled, Enabled\n"
	if out, _ := r.types("esx-01.lab.test", modes); !strings.HasPrefix(out, want) {
		t.Error(out)
	}
	if r.hostConfig(host).GraphicsInfo[0].VgpuMode != "sameSize" || r.hostConfig(host).GraphicsInfo[1].VgpuMode != "multiInstanceGpu" {
		t.Errorf("%+v", r.hostConfig(host).GraphicsInfo[:2])
	}
	r.emptied(host)
	r.rebooted(host)
	config := r.hostConfig(host)
	if config.GraphicsInfo[0].VgpuMode != "multiInstanceGpu" || !strings.Contains(strings.Join(config.SharedPassthruGpuTypes, " "), "grid_a100-3-20c") {
		t.Errorf("after the boot: %+v, %v", config.GraphicsInfo[0], config.SharedPassthruGpuTypes)
	}
}

func TestNvidiaSMIRefusesGPUsInUseAndComesWithTheVGPUManager(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil) // a vGPU runs on the second host
	r.startSSH(r.host("esx-02.lab.test"))
	out, status := r.types("esx-02.lab.test", "nvidia-smi -mig 1")
	if status == 0 || !strings.Contains(out, "In use by another client") {
		t.Errorf("%d: %s", status, out)
	}
	bare := newRig(t, "quad-8.0u3", func(f *topology.File) { f.Models[0].VGPUManager, f.VMs = "", nil })
	bare.startSSH(bare.host("esx-01.lab.test"))
	if _, status := bare.types("esx-01.lab.test", modes); status != 127 {
		t.Errorf("nvidia-smi without its VIB: %d", status)
	}
}
