package server

import (
	"testing"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

func browserOf(t *testing.T, client *govmomi.Client) types.ManagedObjectReference {
	t.Helper()
	owner, err := finder(t, client).DefaultClusterComputeResource(within(t))
	if err != nil {
		t.Fatal(err)
	}
	var properties mo.ClusterComputeResource
	if err := owner.Properties(within(t), owner.Reference(), []string{"environmentBrowser"}, &properties); err != nil {
		t.Fatal(err)
	}
	return *properties.EnvironmentBrowser
}

func target(t *testing.T, client *govmomi.Client, host *types.ManagedObjectReference) *types.ConfigTarget {
	t.Helper()
	request := types.QueryConfigTarget{This: browserOf(t, client), Host: host}
	reply, err := methods.QueryConfigTarget(within(t), client, &request)
	if err != nil {
		t.Fatal(err)
	}
	return reply.Returnval
}

// secondHostBare gives esx-02 and the hosts behind it servers without GPUs.
func secondHostBare(file *topology.File) {
	bare := file.Models[0]
	bare.Name, bare.GPUs, bare.VGPUManager = "bare", nil, ""
	file.Models = append(file.Models, bare)
	file.Clusters[0].Hosts = file.Clusters[0].Hosts[:1]
	second := file.Clusters[0]
	second.Name, second.Model, second.Hosts = "cpu", "bare", []string{"esx-02.lab.test"}
	file.Clusters = append(file.Clusters, second)
	file.VMs = nil
}

func TestConfigTargetOfAHost(t *testing.T) {
	client := login(t, startLab(t, "quad-8.0u3"))
	host := hostNamed(t, client, "esx-01.lab.test").Reference()
	found := target(t, client, &host)
	if len(found.SharedGpuPassthroughTypes) != 6 || len(found.Sriov) != 2 || len(found.VendorDeviceGroupInfo) != 1 ||
		len(found.VgpuProfileInfo) != 6 || len(found.VgpuDeviceInfo) != 1 || found.NumNumaNodes != 2 || len(found.Datastore) != 2 {
		t.Errorf("target %+v", found)
	}
	if found.Sriov[0].Pnic != "vmnic4" || found.Sriov[0].SystemId == "" {
		t.Errorf("SR-IOV %+v", found.Sriov[0])
	}
	whole := target(t, client, nil)
	if len(whole.VendorDeviceGroupInfo) != 1 || len(whole.Sriov) != 8 {
		t.Errorf("the cluster's union has %d groups and %d adapters", len(whole.VendorDeviceGroupInfo), len(whole.Sriov))
	}
}

func TestConfigTargetKnowsOneHostFromAnother(t *testing.T) {
	lab := startLab(t, "quad-8.0u3", secondHostBare)
	client := login(t, lab)
	owner, err := finder(t, client).ClusterComputeResource(within(t), "cpu")
	if err != nil {
		t.Fatal(err)
	}
	browser := *lab.site.clusters["cpu"].EnvironmentBrowser
	reply, err := methods.QueryConfigTarget(within(t), client, &types.QueryConfigTarget{This: browser})
	if err != nil {
		t.Fatal(err)
	}
	if len(reply.Returnval.SharedGpuPassthroughTypes) != 0 || len(reply.Returnval.Sriov) != 2 {
		t.Errorf("%s offers %+v", owner.Name(), reply.Returnval.SharedGpuPassthroughTypes)
	}
	stranger := hostNamed(t, client, "esx-01.lab.test").Reference()
	if _, err := methods.QueryConfigTarget(within(t), client, &types.QueryConfigTarget{This: browser, Host: &stranger}); err == nil {
		t.Error("a host of another cluster was answered for")
	}
}

func TestHardwareVersionsEndAtTheModels(t *testing.T) {
	client := login(t, startLab(t, "seed-7.0u2"))
	request := types.QueryConfigOptionDescriptor{This: browserOf(t, client)}
	reply, err := methods.QueryConfigOptionDescriptor(within(t), client, &request)
	if err != nil {
		t.Fatal(err)
	}
	last := reply.Returnval[len(reply.Returnval)-1]
	if last.Key != "vmx-19" || !last.DefaultConfigOption || len(last.Host) != 1 {
		t.Errorf("the newest is %+v", last)
	}
	for key, accepted := range map[string]bool{"": true, "vmx-19": true, "vmx-20": false, "nonsense": false} {
		spec := types.EnvironmentBrowserConfigOptionQuerySpec{Key: key, GuestId: []string{"ubuntu64Guest"}}
		reply, err := methods.QueryConfigOptionEx(within(t), client, &types.QueryConfigOptionEx{This: request.This, Spec: &spec})
		if (err == nil) != accepted {
			t.Errorf("key %q gave %v", key, err)
		}
		if err != nil {
			continue
		}
		if option := reply.Returnval; option.Version != "vmx-19" || option.HardwareOptions.HwVersion != 19 || len(option.GuestOSDescriptor) != 1 {
			t.Errorf("key %q gave version %s, %d", key, option.Version, option.HardwareOptions.HwVersion)
		}
	}
}
