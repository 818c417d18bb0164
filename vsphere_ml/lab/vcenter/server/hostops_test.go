package server

import (
	"strings"
	"testing"
	"time"

	command "github.com/vmware/govmomi/cli/esx"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

func (r *rig) esxcli(host *object.HostSystem, words ...string) (*command.Response, error) {
	r.Helper()
	executor, err := command.NewExecutor(r.ctx, r.client, host)
	if err != nil {
		r.Fatal(err)
	}
	return executor.Run(r.ctx, words)
}

// kernel is a boot option's configured and runtime value.
func (r *rig) kernel(host *object.HostSystem, option string) (configured, runtime string) {
	r.Helper()
	response, err := r.esxcli(host, "system", "settings", "kernel", "list", "-o", option)
	if err != nil || len(response.Values) != 1 {
		r.Fatalf("kernel list: %v, %v", response, err)
	}
	return response.Values[0].Value("Configured"), response.Values[0].Value("Runtime")
}

func (r *rig) waitConnection(host *object.HostSystem, want types.HostSystemConnectionState) {
	r.Helper()
	err := property.Wait(r.ctx, property.DefaultCollector(r.client), host.Reference(), []string{"runtime.connectionState"},
		func(changes []types.PropertyChange) bool {
			return len(changes) > 0 && changes[0].Val == want
		})
	if err != nil {
		r.Fatal(err)
	}
}

// bootTime is when the host booted, as vCenter shows it.
func (r *rig) bootTime(host *object.HostSystem) time.Time {
	r.Helper()
	var properties mo.HostSystem
	if err := host.Properties(r.ctx, host.Reference(), []string{"runtime"}, &properties); err != nil {
		r.Fatal(err)
	}
	return *properties.Runtime.BootTime
}

// rebooted reboots the host in maintenance mode and waits until it is back.
func (r *rig) rebooted(host *object.HostSystem) {
	r.Helper()
	before := r.bootTime(host)
	if fault := r.reboot(host, false); fault != nil {
		r.Fatalf("%T", fault)
	}
	for !r.bootTime(host).After(before) {
		time.Sleep(10 * time.Millisecond)
		if r.ctx.Err() != nil {
			r.Fatal("the host does not come back")
		}
	}
	r.waitConnection(host, types.HostSystemConnectionStateConnected)
}

func (r *rig) reboot(host *object.HostSystem, force bool) types.BaseMethodFault {
	r.Helper()
	response, err := methods.RebootHost_Task(r.ctx, r.client, &types.RebootHost_Task{This: host.Reference(), Force: force})
	if err != nil {
		return faultOf(r.T, err)
	}
	return r.done(object.NewTask(r.client, response.Returnval), nil)
}

// The story of vSphere 7.0 U2: atsSupport is off, is set by esxcli, and counts after a reboot in maintenance mode.
func TestKernelOptionCountsAfterTheReboot(t *testing.T) {
	r := newRig(t, "seed-7.0u2", nil)
	host := r.host("esx-01.lab.test")
	if configured, runtime := r.kernel(host, "atsSupport"); configured != "FALSE" || runtime != "FALSE" {
		t.Fatalf("7.0 U2 begins with %s/%s", configured, runtime)
	}
	if _, err := r.esxcli(host, "system", "settings", "kernel", "set", "-s", "atsSupport", "-v", "TRUE"); err != nil {
		t.Fatal(err)
	}
	if configured, runtime := r.kernel(host, "atsSupport"); configured != "TRUE" || runtime != "FALSE" {
		t.Errorf("before the reboot: %s/%s", configured, runtime)
	}
	mustBe(t, r.reboot(host, false), "InvalidState")
	if fault := r.done(host.EnterMaintenanceMode(r.ctx, 0, false, nil)); fault != nil {
		t.Fatalf("%T", fault)
	}
	r.lab.site.reboots.change("esx-01.lab.test", hostChange{RebootMS: new(int)})
	r.rebooted(host)
	if configured, runtime := r.kernel(host, "atsSupport"); configured != "TRUE" || runtime != "TRUE" {
		t.Errorf("after the reboot: %s/%s", configured, runtime)
	}
	if fault := r.done(host.ExitMaintenanceMode(r.ctx, 0)); fault != nil {
		t.Errorf("the host does not leave maintenance mode: %T", fault)
	}
}

func TestHostThatDoesNotComeBack(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	host := r.host("esx-02.lab.test")
	if err := r.lab.Rack.Fail("esx-02.lab.test", []string{"no-return"}); err != nil {
		t.Fatal(err)
	}
	if fault := r.reboot(host, true); fault != nil {
		t.Fatalf("%T", fault)
	}
	r.waitConnection(host, types.HostSystemConnectionStateNotResponding)
	mustBe(t, r.powerOn(r.vm("etl-7")), "HostNotReachable")
	mustBe(t, r.done(host.EnterMaintenanceMode(r.ctx, 0, false, nil)), "HostNotReachable")
	mustBe(t, r.done(host.Reconnect(r.ctx, nil, nil)), "NoHost")
	if used(r.cards("esx-02.lab.test")) != 0 {
		t.Error("a VM that ended with its host still holds a GPU")
	}
}

func TestMaintenanceModeWaitsForRunningVMs(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	host := r.host("esx-02.lab.test") // etl-7 runs there
	mustBe(t, r.done(host.EnterMaintenanceMode(r.ctx, 1, false, nil)), "Timedout")
	task, err := host.EnterMaintenanceMode(r.ctx, 0, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if fault := r.done(r.vm("etl-7").PowerOff(r.ctx)); fault != nil {
		t.Fatalf("%T", fault)
	}
	if fault := r.done(task, nil); fault != nil {
		t.Errorf("%T", fault)
	}
	mustBe(t, r.done(host.EnterMaintenanceMode(r.ctx, 0, false, nil)), "InvalidState")
}

func TestEsxcli(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	host := r.host("esx-01.lab.test")
	shows := map[string][2]string{
		"graphics host get":  {"DefaultGraphicsType", "SharedPassthru"},
		"hardware pci list":  {"DeviceName", "GA100 [A100 PCIe 40GB]"},
		"software vib list":  {"Version", "535.183.04-1OEM.800.1.0.20613240"},
		"vm process list":    {"", ""}, // the simulator's own
		"hardware clock get": {"", ""},
	}
	for words, want := range shows {
		response, err := r.esxcli(host, strings.Fields(words)...)
		if err != nil {
			t.Errorf("%s: %v", words, err)
			continue
		}
		found := want[0] == ""
		for _, row := range response.Values {
			found = found || row.Value(want[0]) == want[1]
		}
		if !found {
			t.Errorf("%s shows no %s %q", words, want[0], want[1])
		}
	}
	for _, words := range []string{"system settings kernel set -s noSuch -v TRUE", "system settings kernel list -o noSuch", "no such command"} {
		if _, err := r.esxcli(host, strings.Fields(words)...); err == nil {
			t.Errorf("%q was taken", words)
		}
	}
}

func TestAdvancedOptionsOfTheVersion(t *testing.T) {
	for site, known := range map[string]bool{"seed-7.0u2": false, "quad-8.0u3": true} {
		r := newRig(t, site, nil)
		host := r.host("esx-01.lab.test")
		options, err := host.ConfigManager().OptionManager(r.ctx)
		if err != nil {
			t.Fatal(err)
		}
		err = options.Update(r.ctx, []types.BaseOptionValue{&types.OptionValue{Key: "VMkernel.Boot.atsSupport", Value: false}})
		if known != (err == nil) {
			t.Errorf("%s: setting VMkernel.Boot.atsSupport gives %v", site, err)
		}
		if !known {
			mustBe(t, faultOf(t, err), "InvalidName")
			continue
		}
		if configured, runtime := r.kernel(host, "atsSupport"); configured != "FALSE" || runtime != "TRUE" {
			t.Errorf("%s: %s/%s", site, configured, runtime)
		}
		if read, _ := options.Query(r.ctx, "VMkernel.Boot.atsSupport"); len(read) != 1 || read[0].GetOptionValue().Value != false {
			t.Errorf("reads back %v", read)
		}
	}
}

func TestGraphicsAndPassthroughReadBack(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	host := r.host("esx-01.lab.test")
	read := func() *types.HostConfigInfo {
		var properties mo.HostSystem
		if err := host.Properties(r.ctx, host.Reference(), []string{"configManager", "config.graphicsConfig", "config.pciPassthruInfo", "config.sharedPassthruGpuTypes"}, &properties); err != nil {
			t.Fatal(err)
		}
		if properties.Config == nil {
			t.Fatal("no config")
		}
		return properties.Config
	}
	var managers mo.HostSystem
	if err := host.Properties(r.ctx, host.Reference(), []string{"configManager"}, &managers); err != nil {
		t.Fatal(err)
	}
	graphics := types.HostGraphicsConfig{HostDefaultGraphicsType: "sharedDirect", SharedPassthruAssignmentPolicy: "consolidation",
		DeviceType: []types.HostGraphicsConfigDeviceType{{DeviceId: "0000:3b:00.0", GraphicsType: "sharedDirect", VgpuMode: "mixedSize"}}}
	if _, err := methods.UpdateGraphicsConfig(r.ctx, r.client, &types.UpdateGraphicsConfig{This: *managers.ConfigManager.GraphicsManager, Config: graphics}); err != nil {
		t.Fatal(err)
	}
	if got := read().GraphicsConfig; got.SharedPassthruAssignmentPolicy != "consolidation" || got.DeviceType[0].VgpuMode != "mixedSize" {
		t.Errorf("graphics read back as %+v", got)
	}
	graphics.HostDefaultGraphicsType = "magic"
	_, err := methods.UpdateGraphicsConfig(r.ctx, r.client, &types.UpdateGraphicsConfig{This: *managers.ConfigManager.GraphicsManager, Config: graphics})
	mustBe(t, faultOf(t, err), "InvalidArgument")

	passthru := func(change types.BaseHostPciPassthruConfig) error {
		_, err := methods.UpdatePassthruConfig(r.ctx, r.client, &types.UpdatePassthruConfig{
			This: *managers.ConfigManager.PciPassthruSystem, Config: []types.BaseHostPciPassthruConfig{change}})
		return err
	}
	if err := passthru(&types.HostPciPassthruConfig{Id: "0000:b3:00.0", PassthruEnabled: true, HardwareLabel: "blue", ApplyNow: types.NewBool(false)}); err != nil {
		t.Fatal(err)
	}
	for _, info := range read().PciPassthruInfo {
		if one := info.GetHostPciPassthruInfo(); one.Id == "0000:b3:00.0" && (!one.PassthruEnabled || one.PassthruActive || one.HardwareLabel != "blue") {
			t.Errorf("passthrough reads back as %+v", one)
		}
	}
	if err := passthru(&types.HostPciPassthruConfig{Id: "0000:b4:00.0", PassthruEnabled: true}); err != nil {
		t.Fatal(err)
	}
	for _, info := range read().PciPassthruInfo {
		if one := info.GetHostPciPassthruInfo(); one.Id == "0000:b4:00.0" && !one.PassthruActive {
			t.Errorf("a host that rebinds without a reboot left %+v for the boot", one)
		}
	}
	mustBe(t, faultOf(t, passthru(&types.HostPciPassthruConfig{Id: "0000:ff:00.0", PassthruEnabled: true})), "InvalidArgument")
	many := &types.HostSriovConfig{SriovEnabled: true, NumVirtualFunction: 99}
	many.Id = "0000:3d:00.0"
	mustBe(t, faultOf(t, passthru(many)), "InvalidArgument")
}
