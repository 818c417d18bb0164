package server

import (
	"testing"

	"github.com/vmware/govmomi/pbm"
	policies "github.com/vmware/govmomi/pbm/types"
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
