package server

import (
	"net/url"
	"slices"
	"testing"

	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vapi/tags"
)

func TestATagCategoryTellsItsTypesWithoutAPrefix(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	client := rest.NewClient(login(t, lab).Client)
	if err := client.Login(within(t), url.UserPassword(testUser, testPassword)); err != nil {
		t.Fatal(err)
	}
	manager := tags.NewManager(client)
	id, err := manager.CreateCategory(within(t), &tags.Category{
		Name: "team", Cardinality: "SINGLE", AssociableTypes: []string{"urn:vim25:VirtualMachine", "Folder"},
	})
	if err != nil {
		t.Fatal(err)
	}
	made, err := manager.GetCategory(within(t), id)
	if err != nil || !slices.Equal(made.AssociableTypes, []string{"VirtualMachine", "Folder"}) {
		t.Errorf("%+v, %v", made, err)
	}
}
