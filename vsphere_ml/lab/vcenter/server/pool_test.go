package server

import (
	"slices"
	"testing"

	properties "github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

func (r *rig) moveToPool(pool types.ManagedObjectReference, list ...types.ManagedObjectReference) error {
	_, err := methods.MoveIntoResourcePool(r.ctx, r.client, &types.MoveIntoResourcePool{This: pool, List: list})
	return err
}

func (r *rig) newPool(name string) types.ManagedObjectReference {
	r.Helper()
	unlimited := types.ResourceAllocationInfo{
		Reservation: types.NewInt64(0), Limit: types.NewInt64(-1), ExpandableReservation: types.NewBool(true),
		Shares: &types.SharesInfo{Level: types.SharesLevelNormal},
	}
	made, err := methods.CreateResourcePool(r.ctx, r.client, &types.CreateResourcePool{
		This: r.pool(), Name: name, Spec: types.ResourceConfigSpec{CpuAllocation: unlimited, MemoryAllocation: unlimited},
	})
	if err != nil {
		r.Fatal(err)
	}
	return made.Returnval
}

func (r *rig) read(object types.ManagedObjectReference, property string, into any) {
	r.Helper()
	if err := properties.DefaultCollector(r.client).RetrieveOne(r.ctx, object, []string{property}, into); err != nil {
		r.Fatal(err)
	}
}

func TestAVMMovesIntoAPoolOfItsCluster(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	machine, target := r.vm("etl-7").Reference(), r.newPool("ml")
	if err := r.moveToPool(target, machine); err != nil {
		t.Fatal(err)
	}
	var now mo.VirtualMachine
	var before, after mo.ResourcePool
	r.read(machine, "resourcePool", &now)
	r.read(r.pool(), "vm", &before)
	r.read(target, "vm", &after)
	if *now.ResourcePool != target || slices.Contains(before.Vm, machine) || !slices.Contains(after.Vm, machine) {
		t.Errorf("in %v; %v, %v", now.ResourcePool, before.Vm, after.Vm)
	}
	if err := r.moveToPool(target, machine); err != nil {
		t.Errorf("moved where it is: %v", err)
	}
	if err := r.moveToPool(target, r.pool()); err == nil {
		t.Error("the root pool was moved")
	}
}
