package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// hookRig is a lab whose power hook is that shell text; $events is a file for what it wants to keep.
func hookRig(t *testing.T, text string) (*rig, string) {
	t.Helper()
	folder := t.TempDir()
	program, events := filepath.Join(folder, "hook"), filepath.Join(folder, "events")
	script := "#!/bin/sh\nevents=" + events + "\n" + text
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, "quad-8.0u3", nil)
	hook, err := newPowerHook(program)
	if err != nil {
		t.Fatal(err)
	}
	r.lab.hook = hook
	return r, events
}

func (r *rig) createWithGuest(name string) *object.VirtualMachine {
	r.Helper()
	spec := gpuSpec(name)
	spec.ExtraConfig = append(spec.ExtraConfig, &types.OptionValue{Key: "guestinfo.metadata", Value: "bG9jYWw="})
	return r.create(spec, "esx-01.lab.test")
}

// until waits for what a program does in the background.
func (r *rig) until(what string, seen func() bool) {
	r.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !seen(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.Fatalf("never came: %s", what)
		}
	}
}

func (r *rig) machine(vm *object.VirtualMachine) (properties mo.VirtualMachine) {
	r.Helper()
	if err := vm.Properties(r.ctx, vm.Reference(), []string{"guest", "config.extraConfig"}, &properties); err != nil {
		r.Fatal(err)
	}
	return properties
}

func eventsIn(t *testing.T, file string) (names []string, last powerEvent) {
	t.Helper()
	text, _ := os.ReadFile(file)
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		var told powerEvent
		if json.Unmarshal([]byte(line), &told) == nil {
			names, last = append(names, told.Event), told
		}
	}
	return names, last
}

func TestHookIsToldOfPowerInOrderAndItsReportIsShown(t *testing.T) {
	r, events := hookRig(t, `read -r line; echo "$line" >>$events
echo '{"guest_ip": "192.0.2.7", "hostname": "n", "guestinfo": {"guestinfo.vsml.hostkeys": "ssh-ed25519 AAAA"}}'`)
	machine := r.createWithGuest("n")
	if fault := r.powerOn(machine); fault != nil {
		t.Fatalf("%T", fault)
	}
	r.until("the address", func() bool { return r.machine(machine).Guest.IpAddress == "192.0.2.7" })
	shown := r.machine(machine)
	if shown.Guest.ToolsRunningStatus != "guestToolsRunning" || shown.Guest.HostName != "n" ||
		extraConfig(shown.Config.ExtraConfig, "guestinfo.vsml.hostkeys") != "ssh-ed25519 AAAA" ||
		extraConfig(shown.Config.ExtraConfig, "guestinfo.metadata") != "bG9jYWw=" {
		t.Errorf("the report is not shown: %+v", shown.Guest)
	}
	for _, step := range []func() (*object.Task, error){
		func() (*object.Task, error) { return machine.Reset(r.ctx) },
		func() (*object.Task, error) { return machine.PowerOff(r.ctx) },
	} {
		if fault := r.done(step()); fault != nil {
			t.Fatalf("%T", fault)
		}
	}
	r.until("no address", func() bool { return r.machine(machine).Guest.IpAddress == "" })
	if fault := r.done(machine.Destroy(r.ctx)); fault != nil {
		t.Fatalf("%T", fault)
	}
	r.until("four events", func() bool { names, _ := eventsIn(t, events); return len(names) == 4 })
	names, last := eventsIn(t, events)
	if got := strings.Join(names, " "); got != "power-on reset power-off destroy" || last.VM != "n" {
		t.Errorf("the hook was told: %s of %s", got, last.VM)
	}
}

func TestAGuestThatIsAskedToShutDownEnds(t *testing.T) {
	r, events := hookRig(t, `read -r line; echo "$line" >>$events; echo '{"guest_ip": "192.0.2.7"}'`)
	machine := r.createWithGuest("n")
	if fault := r.powerOn(machine); fault != nil {
		t.Fatalf("%T", fault)
	}
	r.until("the address", func() bool { return r.machine(machine).Guest.IpAddress != "" })
	if err := machine.ShutdownGuest(r.ctx); err != nil {
		t.Fatal(err)
	}
	r.until("the end", func() bool { names, _ := eventsIn(t, events); return len(names) == 2 })
	if names, last := eventsIn(t, events); names[1] != "power-off" || last.VM != "n" {
		t.Errorf("the hook was told: %v of %s", names, last.VM)
	}
}

func TestAVMWithoutGuestDataHasNoHook(t *testing.T) {
	r, events := hookRig(t, "cat >>$events")
	machine := r.create(gpuSpec("plain"), "esx-01.lab.test")
	if fault := r.powerOn(machine); fault != nil {
		t.Fatalf("%T", fault)
	}
	if fault := r.done(machine.PowerOff(r.ctx)); fault != nil {
		t.Fatalf("%T", fault)
	}
	r.lab.hook.running.Wait()
	if _, err := os.Stat(events); err == nil {
		t.Error("the hook was told of a VM without guest data")
	}
}

func TestAHookThatFailsOrHangsDisturbsNobody(t *testing.T) {
	r, _ := hookRig(t, "echo no report; echo '[1]'; echo trouble >&2; exec sleep 600")
	machine := r.createWithGuest("n")
	begin := time.Now()
	if fault := r.powerOn(machine); fault != nil {
		t.Fatalf("%T", fault)
	}
	if fault := r.done(machine.PowerOff(r.ctx)); fault != nil {
		t.Fatalf("%T", fault)
	}
	r.lab.hook.close()
	if took := time.Since(begin); took > 5*time.Minute {
		t.Errorf("waited %s for the hook", took)
	}
}

func TestTheLifelineEndsWithTheLab(t *testing.T) {
	r, events := hookRig(t, `(read -r _ <&3; echo over >$events) >/dev/null 2>&1 &`)
	if fault := r.powerOn(r.createWithGuest("n")); fault != nil {
		t.Fatalf("%T", fault)
	}
	r.lab.hook.running.Wait()
	if _, err := os.Stat(events); err == nil {
		t.Error("the lifeline ended before the lab")
	}
	if err := r.lab.Close(); err != nil {
		t.Fatal(err)
	}
	r.until("the lifeline's end", func() bool { _, err := os.Stat(events); return err == nil })
}

func TestAHookThatIsNotThereIsToldAtOnce(t *testing.T) {
	if _, err := newPowerHook("/nowhere/hook"); err == nil {
		t.Error("a hook that is not there was taken")
	}
}
