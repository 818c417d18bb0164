package server

import (
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/pbm"
	"github.com/vmware/govmomi/pbm/methods"
	policies "github.com/vmware/govmomi/pbm/types"
	"github.com/vmware/govmomi/vim25/types"
)

var storagePolicies = policies.PbmProfileResourceType{
	ResourceType: string(policies.PbmProfileResourceTypeEnumSTORAGE),
}

func TestStoragePoliciesAreServedOnTheSession(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	client, err := pbm.NewClient(within(t), login(t, lab).Client)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := client.QueryProfile(within(t), storagePolicies, string(policies.PbmProfileCategoryEnumREQUIREMENT))
	if err != nil || len(ids) == 0 {
		t.Fatalf("policies %v, %v", ids, err)
	}
	if name, err := client.ProfileIDByName(within(t), "vSAN Default Storage Policy"); err != nil || name == "" {
		t.Errorf("the default policy has id %q, %v", name, err)
	}
	placed, err := client.CheckRequirements(within(t), nil, nil, nil)
	if err != nil || len(placed) == 0 {
		t.Errorf("datastores %v, %v", placed, err)
	}
}

func TestStoragePoliciesNeedTheSession(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	stranger, err := loginAs(t, lab, "wrong")
	if err == nil {
		t.Fatal("a wrong password was taken")
	}
	client, err := pbm.NewClient(within(t), stranger.Client)
	if err != nil {
		t.Fatalf("the service does not say what it is: %v", err) // it does so before the log-in, as /sdk does
	}
	if ids, err := client.QueryProfile(within(t), storagePolicies, ""); !isNotAuthenticated(err) {
		t.Errorf("policies %v, %v", ids, err)
	}
}

func TestAVMHasThePoliciesThatItsHomeAndItsDisksWereGiven(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	client, err := pbm.NewClient(r.ctx, r.client)
	if err != nil {
		t.Fatal(err)
	}
	gold, err := client.ProfileIDByName(r.ctx, "gold")
	if err != nil {
		t.Fatal(err)
	}
	made := r.cloneWith("given", "vsan", []types.BaseVirtualMachineProfileSpec{&types.VirtualMachineDefinedProfileSpec{ProfileId: gold}})
	home := policies.PbmServerObjectRef{ObjectType: string(policies.PbmObjectTypeVirtualMachine), Key: made.Reference().Value}
	disk := policies.PbmServerObjectRef{ObjectType: string(policies.PbmObjectTypeVirtualDiskId), Key: made.Reference().Value + ":2000"}
	told, err := client.QueryAssociatedProfiles(r.ctx, []policies.PbmServerObjectRef{home, disk})
	if err != nil {
		t.Fatal(err)
	}
	if len(told) != 2 || len(told[0].ProfileId) != 1 || told[0].ProfileId[0].UniqueId != gold || len(told[1].ProfileId) != 0 {
		t.Errorf("home and disk have %+v: RelocateSpec.profile is for the home alone", told)
	}
	compliance := func() string {
		answer, err := methods.PbmFetchComplianceResult(r.ctx, client, &policies.PbmFetchComplianceResult{
			This: client.ServiceContent.ComplianceManager, Entities: []policies.PbmServerObjectRef{home},
		})
		if err != nil || len(answer.Returnval) != 1 {
			t.Fatalf("%+v, %v", answer, err)
		}
		return answer.Returnval[0].ComplianceStatus
	}
	if status := compliance(); status != "compliant" {
		t.Errorf("gold on vsan is %s", status)
	}
	silver, _ := client.ProfileIDByName(r.ctx, "silver")
	spec := types.VirtualMachineConfigSpec{VmProfile: []types.BaseVirtualMachineProfileSpec{&types.VirtualMachineDefinedProfileSpec{ProfileId: silver}}}
	if fault := r.done(made.Reconfigure(r.ctx, spec)); fault != nil {
		t.Fatalf("%T", fault)
	}
	if status := compliance(); status != "nonCompliant" {
		t.Errorf("silver on vsan is %s", status)
	}
}

func TestAPolicyThatThereIsNoneOfIsRefused(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	machine := r.create(gpuSpec("no-such"), "esx-01.lab.test")
	spec := types.VirtualMachineConfigSpec{VmProfile: []types.BaseVirtualMachineProfileSpec{&types.VirtualMachineDefinedProfileSpec{ProfileId: "no-such"}}}
	if fault, ok := r.done(machine.Reconfigure(r.ctx, spec)).(*types.InvalidArgument); !ok {
		t.Errorf("it ends with %T", fault)
	}
}

func TestDatastoresTellWhichPolicyTheySatisfy(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	client, err := pbm.NewClient(r.ctx, r.client)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := client.ProfileIDByName(r.ctx, "silver")
	wanted := &policies.PbmPlacementCapabilityProfileRequirement{ProfileId: policies.PbmProfileId{UniqueId: id}}
	told, err := client.CheckRequirements(r.ctx, nil, nil, []policies.BasePbmPlacementRequirement{wanted})
	if err != nil {
		t.Fatal(err)
	}
	if good := told.CompatibleDatastores(); len(good) != 1 || r.lab.storeName(types.ManagedObjectReference{Type: "Datastore", Value: good[0].HubId}) != "nfs-images" {
		t.Errorf("compatible are %+v", good)
	}
}

// cloneWith clones the template with these policies for the VM's home.
func (r *rig) cloneWith(name, datastore string, profile []types.BaseVirtualMachineProfileSpec) *object.VirtualMachine {
	r.Helper()
	store, err := r.find.Datastore(r.ctx, datastore)
	if err != nil {
		r.Fatal(err)
	}
	pool, reference := r.pool(), store.Reference()
	spec := types.VirtualMachineCloneSpec{Location: types.VirtualMachineRelocateSpec{Pool: &pool, Datastore: &reference, Profile: profile}}
	made := r.result(r.vm("ubuntu-22.04-gpu").Clone(r.ctx, r.folder(), name, spec))
	if made.fault != nil {
		r.Fatalf("%T %s", made.fault, made.message)
	}
	return object.NewVirtualMachine(r.client, made.value.(types.ManagedObjectReference))
}
