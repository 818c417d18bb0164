package server

import (
	"reflect"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// derived are the types of managed objects below each base class. Source: the vSphere API's reference.
var derived = map[string][]string{
	"ComputeResource":          {"ClusterComputeResource"},
	"DistributedVirtualSwitch": {"VmwareDistributedVirtualSwitch"},
	"Folder":                   {"StoragePod"},
	"Network":                  {"DistributedVirtualPortgroup", "OpaqueNetwork"},
	"ResourcePool":             {"VirtualApp"},
	"ManagedEntity": {
		"ClusterComputeResource", "ComputeResource", "Datacenter", "Datastore", "DistributedVirtualPortgroup",
		"DistributedVirtualSwitch", "Folder", "HostSystem", "Network", "OpaqueNetwork", "ResourcePool", "StoragePod",
		"VirtualApp", "VirtualMachine", "VmwareDistributedVirtualSwitch",
	},
}

// ownTypes gives every reference of a call the type of the object it names, where the client declared a base class.
// Terraform's provider reads a cluster as a ComputeResource, and ovftool anything as a ManagedEntity. A vCenter takes
// both, as their working shows (its documents do not say); the simulator looks up type and value together.
func ownTypes(ctx *simulator.Context, call *simulator.Method) {
	call.This = ownType(ctx, call.This)
	switch body := call.Body.(type) {
	case *types.RetrieveProperties:
		ownTypesOf(ctx, body.SpecSet)
	case *types.RetrievePropertiesEx:
		ownTypesOf(ctx, body.SpecSet)
	case *types.CreateFilter:
		ownTypesOf(ctx, []types.PropertyFilterSpec{body.Spec}) // the object sets are shared with the body's
	default:
		walk("", reflect.ValueOf(body).Elem(), func(_ string, value reflect.Value) {
			if value.Type() == referenceType && value.CanSet() {
				value.Set(reflect.ValueOf(ownType(ctx, value.Interface().(types.ManagedObjectReference))))
			}
		})
	}
}

// ownTypesOf does so for the objects of property filters, of which there may be thousands.
func ownTypesOf(ctx *simulator.Context, filters []types.PropertyFilterSpec) {
	for _, filter := range filters {
		for i := range filter.ObjectSet {
			filter.ObjectSet[i].Obj = ownType(ctx, filter.ObjectSet[i].Obj)
		}
	}
}

// ownType is the reference under its object's own type; as it was given when no such object is there.
func ownType(ctx *simulator.Context, reference types.ManagedObjectReference) types.ManagedObjectReference {
	below, isBase := derived[reference.Type]
	if !isBase || ctx.Map.Get(reference) != nil {
		return reference
	}
	for _, kind := range below {
		if own := (types.ManagedObjectReference{Type: kind, Value: reference.Value}); ctx.Map.Get(own) != nil {
			return own
		}
	}
	return reference
}
