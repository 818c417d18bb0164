package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

func TestControlNeedsThePassword(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	request, _ := http.NewRequestWithContext(within(t), http.MethodGet, "https://"+lab.Address()+"/lab/status", nil)
	if status := send(t, lab, request, nil); status != http.StatusUnauthorized {
		t.Errorf("without a password: %d", status)
	}
	var status Status
	if code := ask(t, lab, http.MethodGet, "/lab/status", nil, &status); code != http.StatusOK || status.Hosts != 4 || status.VMs != 2 || status.Name != "quad-8.0u3" {
		t.Errorf("%d: %+v", code, status)
	}
}

func TestControlRefusesWhatItDoesNotKnow(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	for path, body := range map[string]any{
		"/lab/faults":                map[string]any{"method": "CloneVM_Task", "fault": "NoSuchFault", "kind": "sync"},
		"/lab/delays":                map[string]int{"PowerOn": 5},
		"/lab/hosts/esx-01.lab.test": map[string]any{"connection": "asleep"},
		"/lab/vms/etl-7":             map[string]any{"colour": "red"},
		"/lab/restart":               map[string]any{"down_ms": "long"},
	} {
		var reply map[string]string
		if code := ask(t, lab, http.MethodPost, path, body, &reply); code != http.StatusBadRequest || reply["error"] == "" {
			t.Errorf("%s: %d %v", path, code, reply)
		}
	}
	for _, path := range []string{"/lab/hosts/esx-77", "/lab/vms/nobody"} {
		if code := ask(t, lab, http.MethodPost, path, map[string]any{}, nil); code != http.StatusNotFound {
			t.Errorf("%s: %d", path, code)
		}
	}
}

func TestSyncFaultByNameAndCount(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	client := login(t, lab)
	machine := machineNamed(t, client, "etl-7")
	rule := FaultRule{Method: "PowerOffVM_Task", Fault: "NoPermission", Kind: "sync", Name: "etl-*", Skip: 0, Count: 1, Message: "a < b"}
	ask(t, lab, http.MethodPost, "/lab/faults", rule, nil)
	_, err := machine.PowerOff(within(t))
	if err == nil || !soap.IsSoapFault(err) {
		t.Fatalf("got %v", err)
	}
	fault := soap.ToSoapFault(err)
	if _, ok := fault.VimFault().(types.NoPermission); !ok || fault.String != "a < b" {
		t.Errorf("fault %T, sentence %q", fault.VimFault(), fault.String)
	}
	powerOff(t, machine) // the rule is spent
}

func TestRuleForAnotherNameLeavesTheCallAlone(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	machine := machineNamed(t, login(t, lab), "etl-7")
	ask(t, lab, http.MethodPost, "/lab/faults", []FaultRule{
		{Method: "PowerOffVM_Task", Fault: "NoPermission", Kind: "sync", Name: "node-*"},
		{Method: "PowerOffVM_Task", Fault: "NoPermission", Kind: "task", Name: "node-*"},
	}, nil)
	powerOff(t, machine)
}

func TestTaskFaultAfterSkip(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	machine := machineNamed(t, login(t, lab), "etl-7")
	rule := FaultRule{Method: "PowerO*_Task", Fault: "InsufficientGraphicsResourcesFault", Kind: "task", Skip: 1, Message: "the cards are gone"}
	ask(t, lab, http.MethodPost, "/lab/faults", rule, nil)
	powerOff(t, machine)
	task, err := machine.PowerOn(within(t))
	if err != nil {
		t.Fatal(err)
	}
	info, err := task.WaitForResult(within(t))
	if err == nil || info.Error == nil || info.Error.LocalizedMessage != "the cards are gone" {
		t.Fatalf("got %v, %+v", err, info)
	}
	if _, ok := info.Error.Fault.(*types.InsufficientGraphicsResourcesFault); !ok {
		t.Errorf("fault %T", info.Error.Fault)
	}
	var rules []FaultRule
	if ask(t, lab, http.MethodGet, "/lab/faults", nil, &rules); len(rules) != 1 || rules[0].Hits != 1 {
		t.Errorf("rules %+v", rules)
	}
	if ask(t, lab, http.MethodDelete, "/lab/faults", nil, &rules); len(rules) != 0 {
		t.Errorf("rules left: %+v", rules)
	}
}

func TestDelayedTaskMovesAndBlocksNoReader(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	client := login(t, lab)
	machine := machineNamed(t, client, "etl-7")
	ask(t, lab, http.MethodPost, "/lab/delays", map[string]int{"PowerOffVM_Task": 1500}, nil)
	task, err := machine.PowerOff(within(t))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if state := machineProperties(t, machine, "runtime.powerState").Runtime.PowerState; state != types.VirtualMachinePowerStatePoweredOn {
			t.Fatalf("the VM was %s while its task still had to run", state)
		}
		info := taskInfo(t, task)
		if info.State == types.TaskInfoStateRunning && info.Progress > 0 {
			break
		}
		if info.State != types.TaskInfoStateRunning || time.Now().After(deadline) {
			t.Fatalf("no progress was seen: %s, %d %%", info.State, info.Progress)
		}
	}
	info, err := task.WaitForResult(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if lasted := info.CompleteTime.Sub(*info.StartTime); lasted < 1500*time.Millisecond {
		t.Errorf("the task says it lasted %s", lasted)
	}
}

func TestATaskThatIsHeldIsLetGo(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	machine := machineNamed(t, login(t, lab), "etl-7")
	ask(t, lab, http.MethodPost, "/lab/delays", map[string]int{"PowerOffVM_Task": 3_600_000}, nil)
	task, err := machine.PowerOff(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if info := taskInfo(t, task); info.State != types.TaskInfoStateRunning {
		t.Fatalf("the task is held and %s", info.State)
	}
	ask(t, lab, http.MethodPost, "/lab/delays", map[string]int{"PowerOffVM_Task": 0}, nil)
	if err := task.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
}

func taskInfo(t *testing.T, task *object.Task) types.TaskInfo {
	t.Helper()
	reply, err := methods.RetrievePropertiesEx(within(t), task.Client(), &types.RetrievePropertiesEx{
		This: task.Client().ServiceContent.PropertyCollector,
		SpecSet: []types.PropertyFilterSpec{{
			PropSet:   []types.PropertySpec{{Type: "Task", PathSet: []string{"info"}}},
			ObjectSet: []types.ObjectSpec{{Obj: task.Reference()}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return reply.Returnval.Objects[0].PropSet[0].Val.(types.TaskInfo)
}

func powerOff(t *testing.T, machine *object.VirtualMachine) {
	t.Helper()
	task, err := machine.PowerOff(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := task.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
}

func TestRestartKeepsTheInventoryAndLosesSessions(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	client := login(t, lab)
	powerOff(t, machineNamed(t, client, "etl-7"))
	if code := ask(t, lab, http.MethodPost, "/lab/restart", map[string]int{"down_ms": 100}, nil); code != http.StatusOK {
		t.Fatalf("restart answered %d", code)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		_, err := methods.GetCurrentTime(within(t), client)
		if isNotAuthenticated(err) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the old session gave %v", err)
		}
	}
	again := machineProperties(t, machineNamed(t, login(t, lab), "etl-7"), "runtime.powerState")
	if again.Runtime.PowerState != types.VirtualMachinePowerStatePoweredOff {
		t.Errorf("etl-7 is %s after the restart", again.Runtime.PowerState)
	}
}

func TestGuestAddressReachesReaders(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	machine := machineNamed(t, login(t, lab), "etl-7")
	ask(t, lab, http.MethodPost, "/lab/vms/etl-*", map[string]string{"guest_ip": "192.0.2.7"}, nil)
	properties := machineProperties(t, machine, "guest", "summary.guest")
	if properties.Guest.IpAddress != "192.0.2.7" || properties.Summary.Guest.IpAddress != "192.0.2.7" || len(properties.Guest.Net) != 1 ||
		properties.Guest.ToolsRunningStatus != "guestToolsRunning" {
		t.Errorf("guest %+v", properties.Guest)
	}
	ask(t, lab, http.MethodPost, "/lab/vms/etl-7", map[string]string{"guest_ip": ""}, nil)
	if address := machineProperties(t, machine, "guest").Guest.IpAddress; address != "" {
		t.Errorf("the address stayed: %s", address)
	}
}

func TestHostCanBeMadeNotResponding(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	client := login(t, lab)
	ask(t, lab, http.MethodPost, "/lab/hosts/esx-04.lab.test", map[string]string{"connection": "notResponding"}, nil)
	host := hostProperties(t, client, "esx-04.lab.test", "runtime", "summary.runtime")
	if host.Runtime.ConnectionState != "notResponding" || host.Summary.Runtime.ConnectionState != "notResponding" {
		t.Errorf("state %s", host.Runtime.ConnectionState)
	}
}

func TestCallsAreCounted(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	login(t, lab)
	var counts map[string]int
	if ask(t, lab, http.MethodGet, "/lab/calls", nil, &counts); counts["Login"] != 1 {
		t.Errorf("counts %v", counts)
	}
}

func TestEveryFaultHasASentence(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	client := login(t, lab)
	_, err := object.NewVirtualMachine(client.Client, types.ManagedObjectReference{Type: "VirtualMachine", Value: "vm-0"}).PowerOn(within(t))
	if err == nil || strings.HasSuffix(strings.TrimSpace(err.Error()), ":") {
		t.Errorf("got %v", err)
	}
}

func TestRecentTasksAreThere(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	pool := r.pool()
	machine := r.clone(quadTemplate, "n", types.VirtualMachineCloneSpec{Location: types.VirtualMachineRelocateSpec{Pool: &pool}})
	if fault := r.powerOn(machine); fault != nil {
		t.Fatalf("%T", fault)
	}
	var manager mo.TaskManager
	if err := property.DefaultCollector(r.client).RetrieveOne(r.ctx, *r.client.ServiceContent.TaskManager, []string{"recentTask"}, &manager); err != nil {
		t.Fatal(err)
	}
	recent := append(machineProperties(t, machine, "recentTask").RecentTask, manager.RecentTask...)
	var tasks []mo.Task
	if err := property.DefaultCollector(r.client).Retrieve(r.ctx, recent, []string{"info.state"}, &tasks); err != nil || len(recent) == 0 {
		t.Errorf("of %d recent tasks: %v", len(recent), err)
	}
}

func TestARuleForTaskInProgressNamesATask(t *testing.T) {
	fault := newFault("TaskInProgress")
	fillReferences(fault, types.ManagedObjectReference{})
	if task := fault.(*types.TaskInProgress).Task; task.Type != "Task" || task.Value == "" {
		t.Errorf("it names %v", task)
	}
}
