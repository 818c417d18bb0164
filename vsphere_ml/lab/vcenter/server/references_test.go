package server

import (
	"testing"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// declared is an object of the lab, under its own type and under one that a client may declare.
type declared struct {
	path, own, base string
}

var declarations = []declared{
	{"/lab-dc/host/gpu", "ClusterComputeResource", "ComputeResource"},
	{"/lab-dc/host/gpu", "ClusterComputeResource", "ManagedEntity"},
	{"/lab-dc/host/gpu/esx-01.lab.test", "HostSystem", "ManagedEntity"},
	{"/lab-dc/vm/etl-7", "VirtualMachine", "ManagedEntity"},
	{"/lab-dc/vm", "Folder", "ManagedEntity"},
	{"/lab-dc/network/roce", "DistributedVirtualPortgroup", "Network"},
	{"/lab-dc/host/gpu/Resources", "ResourcePool", "ManagedEntity"},
}

func reference(t *testing.T, client *govmomi.Client, path string) types.ManagedObjectReference {
	t.Helper()
	found, err := find.NewFinder(client.Client).ManagedObjectList(within(t), path)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v", path, found, err)
	}
	return found[0].Object.Reference()
}

// retrieve reads the names of objects as declared.
func retrieve(t *testing.T, client *govmomi.Client, kind string, objects ...types.ManagedObjectReference) ([]types.ObjectContent, error) {
	t.Helper()
	filter := types.PropertyFilterSpec{PropSet: []types.PropertySpec{{Type: kind, PathSet: []string{"name"}}}}
	for _, each := range objects {
		filter.ObjectSet = append(filter.ObjectSet, types.ObjectSpec{Obj: each})
	}
	answer, err := methods.RetrieveProperties(within(t), client, &types.RetrieveProperties{
		This: client.ServiceContent.PropertyCollector, SpecSet: []types.PropertyFilterSpec{filter},
	})
	if err != nil {
		return nil, err
	}
	return answer.Returnval, nil
}

func TestPropertiesAreReadUnderABaseClass(t *testing.T) {
	client := login(t, startLab(t, "quad-8.0u3"))
	for _, each := range declarations {
		own := reference(t, client, each.path)
		if own.Type != each.own {
			t.Fatalf("%s is a %s", each.path, own.Type)
		}
		as := types.ManagedObjectReference{Type: each.base, Value: own.Value}
		told, err := retrieve(t, client, each.base, as)
		if err != nil || len(told) != 1 || told[0].Obj != own || len(told[0].PropSet) != 1 {
			t.Errorf("%s as %s: %v, %v", each.path, each.base, told, err)
		}
	}
}

func TestAnotherClassOrIdIsStillNotFound(t *testing.T) {
	client := login(t, startLab(t, "quad-8.0u3"))
	cluster := reference(t, client, "/lab-dc/host/gpu").Value
	for _, wrong := range []types.ManagedObjectReference{
		{Type: "ManagedEntity", Value: "domain-c99999"},
		{Type: "ResourcePool", Value: cluster},
		{Type: "Network", Value: cluster},
	} {
		if told, err := retrieve(t, client, "ManagedEntity", wrong); !isNotFound(err) {
			t.Errorf("%s: %v, %v", wrong, told, err)
		}
	}
}

func TestAMethodIsCalledUnderABaseClass(t *testing.T) {
	client := login(t, startLab(t, "quad-8.0u3"))
	as := types.ManagedObjectReference{Type: "ManagedEntity", Value: machineNamed(t, client, "etl-7").Reference().Value}
	task, err := object.NewCommon(client.Client, as).Rename(within(t), "etl-8")
	if err != nil {
		t.Fatal(err)
	}
	if err := task.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	machineNamed(t, client, "etl-8")
}

func TestChangesAreWaitedForUnderABaseClass(t *testing.T) {
	client := login(t, startLab(t, "quad-8.0u3"))
	cluster := reference(t, client, "/lab-dc/host/gpu")
	as := types.ManagedObjectReference{Type: "ComputeResource", Value: cluster.Value}
	names := 0
	err := property.Wait(within(t), property.DefaultCollector(client.Client), as, []string{"name"}, func(changes []types.PropertyChange) bool {
		names += len(changes)
		return true
	})
	if err != nil || names != 1 {
		t.Errorf("%d names, %v", names, err)
	}
}

func isNotFound(err error) bool {
	if !soap.IsSoapFault(err) {
		return false
	}
	_, ok := soap.ToSoapFault(err).VimFault().(types.ManagedObjectNotFound)
	return ok
}
