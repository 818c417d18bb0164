package server

import (
	"testing"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

func (r *rig) modules(host string) types.ManagedObjectReference {
	r.Helper()
	return *r.lab.site.hosts[host].system.ConfigManager.KernelModuleSystem
}

func (r *rig) options(host, module string) string {
	r.Helper()
	answer, err := methods.QueryConfiguredModuleOptionString(r.ctx, r.client, &types.QueryConfiguredModuleOptionString{
		This: r.modules(host), Name: module,
	})
	if err != nil {
		r.Fatal(err)
	}
	return answer.Returnval
}

func (r *rig) setOptions(host, module, options string) error {
	r.Helper()
	_, err := methods.UpdateModuleOptionString(r.ctx, r.client, &types.UpdateModuleOptionString{
		This: r.modules(host), Name: module, Options: options,
	})
	return err
}

func TestAModulesOptionsAreReplacedAsOneStringAndRunAfterTheBoot(t *testing.T) {
	const name = "esx-01.lab.test"
	r := newRig(t, "quad-8.0u3", func(file *topology.File) {
		file.Models[0].Modules = map[string]string{"nmlx5_core": "ecn=1"}
	})
	if was := r.options(name, "nmlx5_core"); was != "ecn=1 max_vfs=8,8" {
		t.Fatalf("the options are %q at the start", was)
	}
	if err := r.setOptions(name, "nmlx5_core", "pfctx=0x08 pfcrx=0x08 max_vfs=8,0"); err != nil {
		t.Fatal(err)
	}
	if now := r.options(name, "nmlx5_core"); now != "pfctx=0x08 pfcrx=0x08 max_vfs=8,0" {
		t.Errorf("the options are %q", now)
	}
	before, _ := r.lab.Rack.Host(name)
	if running := before.Modules["nmlx5_core"].Running; running != "ecn=1 max_vfs=8,8" {
		t.Errorf("the driver runs with %q before the boot", running)
	}
	r.lab.Rack.Reboot(name)
	after, _ := r.lab.Rack.Host(name)
	if running := after.Modules["nmlx5_core"].Running; running != "pfctx=0x08 pfcrx=0x08 max_vfs=8,0" {
		t.Errorf("the driver runs with %q after it", running)
	}
}

func TestAStringWithoutVirtualFunctionsTakesThemAway(t *testing.T) {
	const name = "esx-01.lab.test"
	r := newRig(t, "quad-8.0u3", nil)
	if err := r.setOptions(name, "nmlx5_core", "ecn=1"); err != nil {
		t.Fatal(err)
	}
	r.lab.Rack.Reboot(name)
	view, _ := r.lab.Rack.Host(name)
	for _, nic := range view.NICs {
		if nic.SRIOV.Active != 0 {
			t.Errorf("%s still has %d virtual functions", nic.Address, nic.SRIOV.Active)
		}
	}
}

func TestAModuleThatIsNotThereIsNotFound(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	if err := r.setOptions("esx-01.lab.test", "nmlx4_core", "ecn=1"); err == nil {
		t.Error("options of a module that is not there were taken")
	}
	if err := r.setOptions("esx-01.lab.test", "nmlx5_core", "max_vfs=999"); err == nil {
		t.Error("more virtual functions than the firmware allows were taken")
	}
}
