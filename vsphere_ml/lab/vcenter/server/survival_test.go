package server

import (
	"strings"
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// A folder is taken for a VM by the simulator's compatibility checker, in a task.
func TestATaskThatPanicsEndsWithAFault(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	checker, pool := *r.client.ServiceContent.VmCompatibilityChecker, r.folder().Reference()
	for range 2 {
		body, err := methods.CheckCompatibility_Task(r.ctx, r.client, &types.CheckCompatibility_Task{
			This: checker, Vm: r.vm("etl-7").Reference(), Pool: &pool,
		})
		if err != nil {
			t.Fatal(err)
		}
		mustBe(t, r.done(object.NewTask(r.client, body.Returnval), nil), "SystemError")
	}
}

// A session manager is no entity, which the simulator finds out by a panic, with the authorization manager locked.
func TestAPanicLeavesNothingLocked(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	content := r.client.ServiceContent
	for range 2 {
		_, err := methods.RetrieveEntityPermissions(r.ctx, r.client, &types.RetrieveEntityPermissions{
			This: *content.AuthorizationManager, Entity: *content.SessionManager,
		})
		if !soap.IsSoapFault(err) {
			t.Fatalf("no fault of the API: %v", err)
		}
	}
	roles, err := object.NewAuthorizationManager(r.client).RoleList(r.ctx)
	if err != nil || len(roles) == 0 {
		t.Errorf("%d roles, %v", len(roles), err)
	}
}

func TestReferencesThatLeadNowhere(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	gone := types.ManagedObjectReference{Type: "VirtualMachine", Value: "vm-999999"}
	folder := r.folder()
	mustBe(t, r.done(folder.MoveInto(r.ctx, []types.ManagedObjectReference{gone})), "ManagedObjectNotFound")
	within := types.VirtualMachineCloneSpec{Location: types.VirtualMachineRelocateSpec{Host: &gone}}
	mustBe(t, r.done(r.vm("etl-7").Clone(r.ctx, folder, "lost", within)), "ManagedObjectNotFound")
	nowhere := object.NewFolder(r.client, types.ManagedObjectReference{})
	mustBe(t, r.done(r.vm("etl-7").Clone(r.ctx, nowhere, "lost", types.VirtualMachineCloneSpec{})), "InvalidArgument")
}

// A folder within itself would be looked up the tree for ever.
func TestAFolderDoesNotMoveIntoItself(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	outer, err := r.folder().CreateFolder(r.ctx, "outer")
	if err != nil {
		t.Fatal(err)
	}
	inner, err := outer.CreateFolder(r.ctx, "inner")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []*object.Folder{outer, inner} {
		if fault := r.done(target.MoveInto(r.ctx, []types.ManagedObjectReference{outer.Reference()})); fault == nil {
			t.Errorf("a folder is its own ancestor")
		}
	}
	if found, err := r.find.Folder(r.ctx, "/lab-dc/vm/outer/inner"); err != nil || found.Reference() != inner.Reference() {
		t.Errorf("%v %v", found, err)
	}
}

func TestDestroyingAFolderTakesItsVMs(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	mustBe(t, r.done(r.folder().Destroy(r.ctx)), "NotSupported")
	doomed, err := r.folder().CreateFolder(r.ctx, "doomed")
	if err != nil {
		t.Fatal(err)
	}
	machine := r.vm("etl-7")
	if fault := r.done(doomed.MoveInto(r.ctx, []types.ManagedObjectReference{machine.Reference()})); fault != nil {
		t.Fatalf("%T", fault)
	}
	mustBe(t, r.done(doomed.Destroy(r.ctx)), "InvalidPowerState")
	if fault := r.done(machine.PowerOff(r.ctx)); fault != nil {
		t.Fatalf("%T", fault)
	}
	if fault := r.done(doomed.Destroy(r.ctx)); fault != nil {
		t.Fatalf("%T", fault)
	}
	if found, err := r.find.VirtualMachineList(r.ctx, "/lab-dc/vm/..."); err == nil && len(found) != 1 {
		t.Errorf("besides the template there are %d VMs", len(found)-1)
	}
}

// pyvmomi reads a task only if its entity is one.
func TestTasksAreOfEntities(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	store, err := r.find.Datastore(r.ctx, "vsan")
	if err != nil {
		t.Fatal(err)
	}
	browser, err := store.Browser(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	search, err := browser.SearchDatastore(r.ctx, "[vsan] etl-7", nil)
	if err != nil {
		t.Fatal(err)
	}
	center := object.NewDatacenter(r.client, r.lab.site.datacenter.Self)
	deletion, err := object.NewFileManager(r.client).DeleteDatastoreFile(r.ctx, "[vsan] nothing", center)
	if err != nil {
		t.Fatal(err)
	}
	for task, want := range map[*object.Task]types.ManagedObjectReference{search: store.Reference(), deletion: center.Reference()} {
		info, _ := task.WaitForResult(r.ctx)
		if info == nil || info.Entity == nil || *info.Entity != want {
			t.Errorf("%s: %+v", task.Reference(), info)
		}
	}
}

// The datastores are folders of this machine; no client may reach beyond them.
func TestPathsStayInTheirDatastore(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	outside := func(change func(*types.VirtualMachineConfigSpec)) types.BaseMethodFault {
		spec := gpuSpec("outside")
		change(&spec)
		return r.tryCreate(spec, "").fault
	}
	mustBe(t, outside(func(s *types.VirtualMachineConfigSpec) { s.Files.VmPathName = "[vsan] ../../x/y.vmx" }), "InvalidDatastorePath")
	mustBe(t, outside(func(s *types.VirtualMachineConfigSpec) { s.Name = "../../x" }), "InvalidName")
	center := object.NewDatacenter(r.client, r.lab.site.datacenter.Self)
	err := object.NewFileManager(r.client).MakeDirectory(r.ctx, "[vsan] a/../../x", center, true)
	mustBe(t, faultOf(t, err), "InvalidDatastorePath")
	if !strings.Contains(err.Error(), "[vsan] a/../../x") {
		t.Errorf("the sentence %q does not say which", err)
	}
	where := types.VirtualMachineCloneSpec{Location: types.VirtualMachineRelocateSpec{}}
	mustBe(t, r.done(r.vm("etl-7").Clone(r.ctx, r.folder(), "../x", where)), "InvalidName")
	mustBe(t, r.done(r.vm("etl-7").Rename(r.ctx, "a/../../x")), "InvalidName")
	mustBe(t, r.done(r.vm("etl-7").CreateSnapshot(r.ctx, "../x", "", false, false)), "InvalidName")
	if fault := outside(func(s *types.VirtualMachineConfigSpec) { s.Annotation = "see ../x" }); fault != nil {
		t.Errorf("a text that is no path was refused: %T", fault)
	}
}
