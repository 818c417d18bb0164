package server

import (
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
