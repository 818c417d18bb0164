package server

import (
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

// cards are who uses each GPU of a host, by address.
func (r *rig) cards(host string) map[string][]types.ManagedObjectReference {
	r.Helper()
	var properties mo.HostSystem
	h := r.host(host)
	if err := h.Properties(r.ctx, h.Reference(), []string{"config.graphicsInfo"}, &properties); err != nil {
		r.Fatal(err)
	}
	users := map[string][]types.ManagedObjectReference{}
	for _, card := range properties.Config.GraphicsInfo {
		users[card.PciId] = card.Vm
	}
	return users
}

func used(cards map[string][]types.ManagedObjectReference) (count int) {
	for _, vms := range cards {
		count += len(vms)
	}
	return count
}

func TestBookingsShowAndEndWithTheVM(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	const host = "esx-01.lab.test"
	machine := r.create(gpuSpec("n", "grid_a100-40c", "grid_a100-40c"), host)
	ends := map[string]func() (*object.Task, error){
		"power-off": func() (*object.Task, error) { return machine.PowerOff(r.ctx) },
		"suspend":   func() (*object.Task, error) { return machine.Suspend(r.ctx) },
	}
	for how, end := range ends {
		if fault := r.powerOn(machine); fault != nil {
			t.Fatalf("%T", fault)
		}
		if got := used(r.cards(host)); got != 2 {
			t.Errorf("%d cards show their VM, want 2", got)
		}
		if fault := r.done(machine.Reset(r.ctx)); fault != nil || used(r.cards(host)) != 2 {
			t.Errorf("a reset lost the cards: %T", fault)
		}
		mustBe(t, r.done(machine.Destroy(r.ctx)), "InvalidPowerState")
		if fault := r.done(end()); fault != nil {
			t.Fatalf("%s: %T", how, fault)
		}
		if got := used(r.cards(host)); got != 0 {
			t.Errorf("%d cards show a VM after %s", got, how)
		}
	}
}

func TestDeviceGroupTakesOneSwitch(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	spec := wholeSpec()
	spec.Name, spec.Files = "grouped", &types.VirtualMachineFileInfo{VmPathName: "[vsan]"}
	machine := r.create(*spec, "esx-01.lab.test")
	if fault := r.powerOn(machine); fault != nil {
		t.Fatalf("%T", fault)
	}
	view, _ := r.lab.Rack.Host("esx-01.lab.test")
	booked := view.Booked(machine.Reference().Value)
	if len(booked) != 2 || booked[0].Address != "0000:3b:00.0" || booked[1].Address != "0000:3d:00.1" {
		t.Errorf("booked %+v", booked)
	}
}

func TestVirtualFunctionsRunOut(t *testing.T) {
	r := newRig(t, "quad-8.0u3", func(f *topology.File) {
		for i := range f.Models[0].NICs {
			f.Models[0].NICs[i].SRIOVActive = 1
		}
	})
	for i, name := range []string{"a", "b", "c"} {
		spec := gpuSpec(name)
		card := &types.VirtualSriovEthernetCard{}
		card.Key = -1
		spec.DeviceChange = append(spec.DeviceChange, added(card))
		fault := r.powerOn(r.create(spec, "esx-01.lab.test"))
		if i < 2 && fault != nil {
			t.Fatalf("%s: %T", name, fault)
		}
		if i == 2 {
			mustBe(t, fault, "GenericVmConfigFault")
		}
	}
}

// powerOnMulti starts VMs through the datacenter, as DRS does it.
func (r *rig) powerOnMulti(vms ...*object.VirtualMachine) []types.BaseMethodFault {
	r.Helper()
	datacenter, err := r.find.DefaultDatacenter(r.ctx)
	if err != nil {
		r.Fatal(err)
	}
	var references []types.ManagedObjectReference
	for _, machine := range vms {
		references = append(references, machine.Reference())
	}
	started := r.result(datacenter.PowerOnVM(r.ctx, references))
	var faults []types.BaseMethodFault
	for _, attempted := range started.value.(types.ClusterPowerOnVmResult).Attempted {
		faults = append(faults, r.done(object.NewTask(r.client, *attempted.Task), nil))
	}
	return faults
}

func TestDRSFindsTheHostThatHasRoom(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	profiles := []string{"grid_a100-40c", "grid_a100-40c", "grid_a100-40c", "grid_a100-40c"}
	var vms []*object.VirtualMachine
	for _, name := range []string{"a", "b", "c", "d"} { // esx-02 has but three GPUs free
		vms = append(vms, r.create(gpuSpec(name, profiles...), "esx-01.lab.test"))
	}
	for i, machine := range vms[:3] {
		if faults := r.powerOnMulti(machine); faults[0] != nil {
			t.Fatalf("VM %d: %T", i, faults[0])
		}
	}
	third, _ := vms[2].HostSystem(r.ctx)
	if third.Reference() != r.host("esx-04.lab.test").Reference() {
		t.Errorf("the third VM runs on %s", third.Reference())
	}
	fault := r.powerOnMulti(vms[3])[0]
	mustBe(t, fault, "NoCompatibleHost")
	none, _ := fault.(*types.NoCompatibleHost)
	if none == nil || len(none.Host) != 4 || len(none.Error) != 4 {
		t.Fatalf("reasons: %+v", fault)
	}
	mustBe(t, none.Error[0].Fault, "InsufficientGraphicsResourcesFault")
}

func TestAntiAffinityRule(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	a, b := r.create(gpuSpec("a"), "esx-01.lab.test"), r.create(gpuSpec("b"), "esx-01.lab.test")
	cluster, err := r.find.ClusterComputeResource(r.ctx, "gpu")
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string, vms ...types.ManagedObjectReference) types.BaseMethodFault {
		rule := &types.ClusterAntiAffinityRuleSpec{Vm: vms}
		rule.Name, rule.Enabled = name, types.NewBool(true)
		spec := types.ClusterRuleSpec{Info: rule}
		spec.Operation = types.ArrayUpdateOperationAdd
		return r.done(cluster.Reconfigure(r.ctx, &types.ClusterConfigSpecEx{RulesSpec: []types.ClusterRuleSpec{spec}}, true))
	}
	mustBe(t, add("alone", a.Reference()), "InvalidArgument")
	mustBe(t, add("", a.Reference(), b.Reference()), "InvalidArgument")
	if fault := add("apart", a.Reference(), b.Reference()); fault != nil {
		t.Fatalf("%T", fault)
	}
	mustBe(t, add("apart", a.Reference(), b.Reference()), "InvalidArgument")
	for _, fault := range r.powerOnMulti(a, b) {
		if fault != nil {
			t.Fatalf("%T", fault)
		}
	}
	first, _ := a.HostSystem(r.ctx)
	second, _ := b.HostSystem(r.ctx)
	if first.Reference() == second.Reference() {
		t.Error("the rule's VMs run on one host")
	}
}

// While a task takes its time, its VM can be read.
func TestReadsGoOnDuringADelayedTask(t *testing.T) {
	r := newRig(t, "quad-8.0u3", func(f *topology.File) { f.Delays = map[string]int{"PowerOnVM_Task": 60_000} })
	machine := r.create(gpuSpec("slow"), "")
	task, err := machine.PowerOn(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if r.config(machine).Name != "slow" {
		t.Error("the VM was read wrongly")
	}
	var properties mo.Task
	if err := task.Properties(r.ctx, task.Reference(), []string{"info"}, &properties); err != nil {
		t.Fatal(err)
	}
	if info := properties.Info; info.Name != "PowerOnVM_Task" || info.State != types.TaskInfoStateRunning || info.CompleteTime != nil {
		t.Errorf("the task shows %s, %s", info.Name, info.State)
	}
}

func TestGuestOperationsAreUnavailableAndBlockNothing(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	machine := r.create(gpuSpec("n"), "")
	for range 2 {
		_, err := methods.StartProgramInGuest(r.ctx, r.client, &types.StartProgramInGuest{
			This: types.ManagedObjectReference{Type: "GuestProcessManager", Value: "guestOperationsProcessManager"},
			Vm:   machine.Reference(), Auth: &types.NamePasswordAuthentication{Username: "u", Password: "p"},
			Spec: &types.GuestProgramSpec{ProgramPath: "/bin/true"},
		})
		mustBe(t, faultOf(t, err), "GuestOperationsUnavailable")
	}
	if fault := r.powerOn(machine); fault != nil {
		t.Errorf("%T", fault)
	}
}

func TestAGuestShutsDownInItsOwnTimeAndOnlyWhenToolsCanAsk(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	machine := r.create(gpuSpec("n"), "esx-01.lab.test")
	if fault := r.powerOn(machine); fault != nil {
		t.Fatalf("%T", fault)
	}
	mustBe(t, faultOf(t, machine.ShutdownGuest(r.ctx)), "ToolsUnavailable")
	r.lab.reportAddress(r.lab.vmsNamed("n")[0], "192.0.2.7")
	on := func() bool {
		state, err := machine.PowerState(r.ctx)
		return err == nil && state == types.VirtualMachinePowerStatePoweredOn
	}
	r.lab.shutdowns.set("n", -1)
	if err := machine.ShutdownGuest(r.ctx); err != nil || !on() {
		t.Errorf("a guest that does not heed gives %v, and runs %v", err, on())
	}
	r.lab.shutdowns.set("n", 50)
	if err := machine.ShutdownGuest(r.ctx); err != nil || !on() {
		t.Errorf("a slow guest gives %v, and runs %v", err, on())
	}
	r.until("the end of the guest", func() bool { return !on() })
}

func TestAStandingVMsToolsComeAndGoWithItsPower(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	machine := r.vm("etl-7")
	tools := func() string { return r.machine(machine).Guest.ToolsRunningStatus }
	if got := tools(); got != "guestToolsRunning" {
		t.Errorf("at first %s", got)
	}
	if err := machine.ShutdownGuest(r.ctx); err != nil {
		t.Fatal(err)
	}
	r.until("the end of the guest", func() bool { return tools() == "guestToolsNotRunning" })
	if fault := r.powerOn(machine); fault != nil || tools() != "guestToolsRunning" {
		t.Errorf("again: %T, %s", fault, tools())
	}
}
