package server

import (
	"strings"
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

const atsHost = "esx-01.lab.test"

// adapterVM is a VM with a virtual function of an adapter and the keys of ATS, or without them.
func (r *rig) adapterVM(name string, keys ...string) *object.VirtualMachine {
	r.Helper()
	spec := gpuSpec(name)
	spec.DeviceChange = append(spec.DeviceChange, added(sriovCard(-200)))
	for _, key := range keys {
		spec.ExtraConfig = append(spec.ExtraConfig, &types.OptionValue{Key: key, Value: "TRUE"})
	}
	return r.create(spec, atsHost)
}

func sriovCard(key int32) *types.VirtualSriovEthernetCard {
	card := &types.VirtualSriovEthernetCard{SriovBacking: &types.VirtualSriovEthernetCardSriovBackingInfo{
		PhysicalFunctionBacking: &types.VirtualPCIPassthroughDeviceBackingInfo{Id: "0000:3d:00.0"},
	}}
	card.Key = key
	card.Backing = &types.VirtualEthernetCardNetworkBackingInfo{VirtualDeviceDeviceBackingInfo: types.VirtualDeviceDeviceBackingInfo{DeviceName: "roce"}}
	return card
}

// ats is what the lab tells the VM's guest at its next power-on.
func (r *rig) ats(machine *object.VirtualMachine) string {
	r.Helper()
	if fault := r.powerOn(machine); fault != nil {
		r.Fatalf("%T", fault)
	}
	told := extraConfig(r.config(machine).ExtraConfig, atsKey)
	if fault := r.done(machine.PowerOff(r.ctx)); fault != nil {
		r.Fatalf("%T", fault)
	}
	return told
}

// enforce boots the host with these settings of its kernel and of its first adapter's firmware.
func (r *rig) enforce(kernel bool, firmware string) {
	r.Helper()
	if !r.lab.Rack.SetKernel(atsHost, "atsSupport", kernel) {
		r.Fatal("no atsSupport")
	}
	if err := r.lab.Rack.SetFirmware(atsHost, "0000:3d:00.0", "ATS_ENABLED", firmware); err != nil {
		r.Fatal(err)
	}
	r.lab.Rack.Reboot(atsHost)
}

func TestATSIsOnOnlyWhenEveryHalfIsInForce(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	full, half := r.adapterVM("full", vmKeys...), r.adapterVM("half", vmKeys[0])
	bare := r.adapterVM("bare")
	for _, setting := range []struct {
		kernel         bool
		firmware, want string
	}{{true, "0", "off"}, {false, "1", "off"}, {true, "1", "on"}} {
		r.enforce(setting.kernel, setting.firmware)
		if got := r.ats(full); got != setting.want {
			t.Errorf("kernel %v, firmware %s: ATS is %q", setting.kernel, setting.firmware, got)
		}
	}
	for _, machine := range []*object.VirtualMachine{half, bare} {
		if got := r.ats(machine); got != "off" {
			t.Errorf("without its keys %s has ATS %q", machine.Name(), got)
		}
	}
	if !r.lab.Rack.SetKernel(atsHost, "atsSupport", false) {
		t.Fatal("no atsSupport")
	}
	if got := r.ats(full); got != "on" {
		t.Errorf("a setting that waits for the boot counts already: %q", got)
	}
	plain := r.create(gpuSpec("plain"), atsHost)
	if got := r.ats(plain); got != "" {
		t.Errorf("a VM without adapters has ATS %q", got)
	}
}

func TestAGuestSetsTheFirmwareOfAFunctionHandedOverWhole(t *testing.T) {
	r, events := hookRig(t, `read -r line; echo "$line" >>$events
case $line in *'"event":"power-off"'*) echo '{"guestinfo": {"guestinfo.lab.firmware.0": "ATS_ENABLED=true NUM_OF_VFS=16"}}' ;; esac`)
	if err := r.lab.Rack.SetPassthrough(atsHost, "0000:3d:00.0", true, true, nil); err != nil {
		t.Fatal(err)
	}
	spec := gpuSpec("whole")
	spec.DeviceChange = append(spec.DeviceChange, added(fixedDevice(-300, "0000:3d:00.0")))
	spec.ExtraConfig = append(spec.ExtraConfig, &types.OptionValue{Key: "guestinfo.metadata", Value: "bG9jYWw="})
	machine := r.create(spec, atsHost)
	r.ats(machine)
	told := extraConfig(r.config(machine).ExtraConfig, adaptersKey)
	if !strings.HasPrefix(told, "15b3:101d ") || !strings.Contains(told, " ATS_ENABLED=False(0),False(0),False(0) ") {
		t.Errorf("the guest is told %q", told)
	}
	r.until("the power-off", func() bool { names, _ := eventsIn(t, events); return len(names) == 2 })
	host := r.host(atsHost)
	if fault := r.done(host.EnterMaintenanceMode(r.ctx, 0, false, nil)); fault != nil {
		t.Fatalf("%T", fault)
	}
	r.rebooted(host)
	if fault := r.done(host.ExitMaintenanceMode(r.ctx, 0)); fault != nil {
		t.Fatalf("%T", fault)
	}
	r.ats(machine)
	if told = extraConfig(r.config(machine).ExtraConfig, adaptersKey); !strings.Contains(told, " ATS_ENABLED=False(0),True(1),True(1) ") || !strings.Contains(told, "NUM_OF_VFS=8,16,16") {
		t.Errorf("after the boot the guest is told %q", told)
	}
}

func TestAFullyAutomatedClusterMovesWhatHoldsNoDevice(t *testing.T) {
	r := newRig(t, "quad-8.0u3", func(file *topology.File) { file.Clusters[0].DRS = "fullyAutomated" })
	host, plain := r.host("esx-02.lab.test"), r.create(gpuSpec("plain"), "esx-02.lab.test")
	if fault := r.powerOn(plain); fault != nil {
		t.Fatalf("%T", fault)
	}
	mustBe(t, r.done(host.EnterMaintenanceMode(r.ctx, 1, false, nil)), "Timedout") // etl-7 holds a vGPU
	on, err := plain.HostSystem(r.ctx)
	if err != nil || on.Reference() == host.Reference() {
		t.Errorf("the VM without devices is on %v, %v", on, err)
	}
	if fault := r.done(r.vm("etl-7").PowerOff(r.ctx)); fault != nil {
		t.Fatalf("%T", fault)
	}
	if fault := r.done(host.EnterMaintenanceMode(r.ctx, 0, false, nil)); fault != nil {
		t.Errorf("%T", fault)
	}
}

func TestDRSMovesVMsWithVGPUsOnlyWhenAnOptionOptsIn(t *testing.T) {
	for _, option := range []map[string]string{{"VgpuMMAutomationTimeoutSecs": "-1"}, {"PassthroughDrsAutomation": "1"}} {
		r := newRig(t, "quad-8.0u3", func(file *topology.File) {
			file.Clusters[0].DRS, file.Clusters[0].DRSOptions = "fullyAutomated", option
		})
		host := r.host("esx-02.lab.test") // etl-7 holds a vGPU there
		if fault := r.done(host.EnterMaintenanceMode(r.ctx, 5, false, nil)); fault != nil {
			t.Fatalf("%v: %T", option, fault)
		}
		on, err := r.vm("etl-7").HostSystem(r.ctx)
		if err != nil || on.Reference() == host.Reference() {
			t.Errorf("%v: etl-7 is on %v, %v", option, on, err)
		}
		if used(r.cards("esx-02.lab.test")) != 0 || used(r.cards("esx-01.lab.test")) != 1 {
			t.Errorf("%v: the vGPU was not booked anew", option)
		}
	}
}

func TestDRSLeavesAVMWithALowerAutomationLevelOfItsOwn(t *testing.T) {
	r := newRig(t, "quad-8.0u3", func(file *topology.File) { file.Clusters[0].DRS = "fullyAutomated" })
	plain := r.create(gpuSpec("plain"), "esx-01.lab.test")
	if fault := r.powerOn(plain); fault != nil {
		t.Fatalf("%T", fault)
	}
	own := types.ClusterDrsVmConfigInfo{Key: plain.Reference(), Enabled: types.NewBool(true), Behavior: types.DrsBehaviorManual}
	cluster, err := r.find.ClusterComputeResource(r.ctx, "gpu")
	if err != nil {
		t.Fatal(err)
	}
	if fault := r.done(cluster.Reconfigure(r.ctx, &types.ClusterConfigSpecEx{DrsVmConfigSpec: []types.ClusterDrsVmConfigSpec{
		{ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationAdd}, Info: &own},
	}}, true)); fault != nil {
		t.Fatalf("%T", fault)
	}
	mustBe(t, r.done(r.host("esx-01.lab.test").EnterMaintenanceMode(r.ctx, 1, false, nil)), "Timedout")
}

func TestNoVMStartsOnAHostThatEntersMaintenanceMode(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	host, late := r.host("esx-02.lab.test"), r.create(gpuSpec("late"), "esx-02.lab.test")
	task, err := host.EnterMaintenanceMode(r.ctx, 0, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.until("the task", func() bool { return r.lab.site.hosts["esx-02.lab.test"].entering.Load() == 1 })
	mustBe(t, r.powerOn(late), "InvalidState")
	if err := task.Cancel(r.ctx); err != nil {
		t.Fatal(err)
	}
	r.until("the end of the task", func() bool { return r.lab.site.hosts["esx-02.lab.test"].entering.Load() == 0 })
	if fault := r.powerOn(late); fault != nil {
		t.Errorf("%T", fault)
	}
}
