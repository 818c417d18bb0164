package server

import (
	"net/url"
	"testing"

	"github.com/vmware/govmomi/vapi/library"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vapi/vcenter"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

func withImages(file *topology.File) {
	file.Libraries = []topology.Library{{Name: "images", Datastore: "nfs-images", Items: []topology.LibraryItem{
		{Name: "ubuntu-lib", Template: "ubuntu-22.04-gpu"}, {Name: "appliance"},
	}}}
}

func TestALibraryTellsItsItemsAndWhichTemplateIsBehindOne(t *testing.T) {
	r := newRig(t, "quad-8.0u3", withImages)
	client := rest.NewClient(r.client)
	if err := client.Login(r.ctx, url.UserPassword("administrator@vsphere.local", rigPassword)); err != nil {
		t.Fatal(err)
	}
	manager := library.NewManager(client)
	images, err := manager.GetLibraryByName(r.ctx, "images")
	if err != nil {
		t.Fatal(err)
	}
	items, err := manager.GetLibraryItems(r.ctx, images.ID)
	if err != nil {
		t.Fatal(err)
	}
	kinds, ids := map[string]string{}, map[string]string{}
	for _, item := range items {
		kinds[item.Name], ids[item.Name] = item.Type, item.ID
	}
	if len(kinds) != 2 || kinds["ubuntu-lib"] != library.ItemTypeVMTX || kinds["appliance"] != library.ItemTypeOVF {
		t.Errorf("items %v", kinds)
	}
	told, err := vcenter.NewManager(client).GetLibraryTemplateInfo(r.ctx, ids["ubuntu-lib"])
	if err != nil || told.VmTemplate != r.vm("ubuntu-lib").Reference().Value {
		t.Errorf("the template is %+v, %v", told, err)
	}
	if machine := machineOf(r.lab.Context, types.ManagedObjectReference{Type: "VirtualMachine", Value: told.VmTemplate}); !machine.Config.Template || machine.Config.Firmware != "efi" {
		t.Errorf("behind the item is %+v", machine.Config)
	}
	if _, err := vcenter.NewManager(client).GetLibraryTemplateInfo(r.ctx, ids["appliance"]); err == nil {
		t.Error("an item of type OVF has a VM template")
	}
}

func TestAnItemIsDeployedAsVCenterDoes(t *testing.T) {
	r := newRig(t, "quad-8.0u3", withImages)
	client := rest.NewClient(r.client)
	if err := client.Login(r.ctx, url.UserPassword("administrator@vsphere.local", rigPassword)); err != nil {
		t.Fatal(err)
	}
	ids, err := library.NewManager(client).FindLibraryItems(r.ctx, library.FindItem{Name: "ubuntu-lib"})
	if err != nil || len(ids) != 1 {
		t.Fatalf("%v, %v", ids, err)
	}
	made, err := vcenter.NewManager(client).DeployTemplateLibraryItem(r.ctx, ids[0], vcenter.DeployTemplate{
		Name: "deployed", Placement: &vcenter.Placement{ResourcePool: r.pool().Value, Folder: r.folder().Reference().Value},
	})
	if err != nil || made.Value != r.vm("deployed").Reference().Value {
		t.Errorf("%v, %v", made, err)
	}
}
