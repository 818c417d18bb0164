package server

import (
	"testing"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
)

func vmiop(profile string) types.BaseDirectPathProfileManagerDirectPathConfig {
	return &types.DirectPathProfileManagerVmiopDirectPathConfig{VgpuProfile: profile}
}

func groupConfig(name string) types.BaseDirectPathProfileManagerDirectPathConfig {
	return &types.DirectPathProfileManagerVirtualDeviceGroupDirectPathConfig{DeviceGroupName: name}
}

func dynamicConfig(label string) types.BaseDirectPathProfileManagerDirectPathConfig {
	return &types.DirectPathProfileManagerDynamicDirectPathConfig{
		DynamicDirectPathBacking: types.VirtualPCIPassthroughDynamicBackingInfo{
			AllowedDevice: []types.VirtualPCIPassthroughAllowedDevice{{VendorId: 0x10de, DeviceId: 0x20f1}},
			CustomLabel:   label,
		},
	}
}

func (r *rig) capacity(target types.BaseDirectPathProfileManagerTargetEntity, questions ...types.BaseDirectPathProfileManagerCapacityQuerySpec) []types.BaseDirectPathProfileManagerCapacityResult {
	r.Helper()
	manager := r.client.ServiceContent.DirectPathProfileManager
	if manager == nil {
		r.Fatal("a vCenter 9.0 has no DirectPathProfileManager")
	}
	response, err := methods.DirectPathProfileManagerQueryCapacity(r.ctx, r.client, &types.DirectPathProfileManagerQueryCapacity{
		This: *manager, Target: target, QuerySpec: questions,
	})
	if err != nil {
		r.Fatal(err)
	}
	return response.Returnval
}

func (r *rig) onHost(name string) types.BaseDirectPathProfileManagerTargetEntity {
	return &types.DirectPathProfileManagerTargetHost{Host: r.host(name).Reference()}
}

func byConfig(config types.BaseDirectPathProfileManagerDirectPathConfig) types.BaseDirectPathProfileManagerCapacityQuerySpec {
	return &types.DirectPathProfileManagerCapacityQueryByDeviceConfig{DeviceConfig: config}
}

func TestCapacityIsWhatTheHostWouldStillGive(t *testing.T) {
	r := newRig(t, "nine-9.0", nil)
	for _, one := range []struct {
		host                     string
		config                   types.BaseDirectPathProfileManagerDirectPathConfig
		consumed, remaining, max int32
	}{
		{"nine-01.lab.test", vmiop("grid_a100-40c"), 2, 2, 4},   // etl-7 has a bridged pair
		{"nine-02.lab.test", vmiop("grid_a100-10c"), 1, 15, 16}, // beside notebook-1's
		{"nine-02.lab.test", vmiop("grid_a100-20c"), 0, 6, 8},   // not on the GPU that is cut to 10C
		{"nine-01.lab.test", groupConfig("Nvidia:2@grid_a100-40c%NVLink"), 1, 1, 2},
		{"nine-mig.lab.test", vmiop("grid_a100-3-20c"), 1, 3, 4},
		{"nine-mig.lab.test", vmiop("grid_a100-4-20c"), 0, 2, 2},
		{"nine-mig.lab.test", vmiop("grid_a100-20c"), 0, 4, 4}, // of the two GPUs that are time-sliced
		{"nine-direct.lab.test", dynamicConfig("left"), 1, 1, 2},
		{"nine-direct.lab.test", dynamicConfig(""), 1, 3, 4},
		{"nine-direct.lab.test", vmiop("grid_a100-40c"), 0, 0, 0},
	} {
		info, ok := r.capacity(r.onHost(one.host), byConfig(one.config))[0].(*types.DirectPathProfileManagerCapacityInfo)
		if !ok || info.Consumed != one.consumed || info.Remaining != one.remaining || info.Max != one.max {
			t.Errorf("%s %+v: got %+v, want %d %d %d", one.host, one.config, info, one.consumed, one.remaining, one.max)
		}
	}
}

func TestCapacityFollowsPowerAndSumsUpForACluster(t *testing.T) {
	r := newRig(t, "nine-9.0", nil)
	cluster := &types.DirectPathProfileManagerTargetCluster{Cluster: r.lab.site.clusters["gpu"].Self}
	left := func() int32 {
		return r.capacity(cluster, byConfig(vmiop("grid_a100-40c")))[0].(*types.DirectPathProfileManagerCapacityInfo).Remaining
	}
	if got := left(); got != 2+3 {
		t.Errorf("%d left of the cluster, want 5", got)
	}
	off, err := r.vm("etl-7").PowerOff(r.ctx)
	if err != nil || off.Wait(r.ctx) != nil {
		t.Fatal(err)
	}
	if got := left(); got != 4+3 {
		t.Errorf("%d left when etl-7 is off, want 7", got)
	}
}

func TestCapacityOfWhatNobodyKnowsIsUnknownInItsPlace(t *testing.T) {
	r := newRig(t, "nine-9.0", nil)
	manager := *r.client.ServiceContent.DirectPathProfileManager
	create := types.DirectPathProfileManagerCreate{This: manager, Spec: types.DirectPathProfileManagerCreateSpec{
		Name: "silver", DeviceConfig: vmiop("grid_a100-40c"),
	}}
	if _, err := methods.DirectPathProfileManagerCreate(r.ctx, r.client, &create); err != nil {
		t.Fatal(err)
	}
	if _, err := methods.DirectPathProfileManagerCreate(r.ctx, r.client, &create); err == nil {
		t.Error("a name was given twice")
	}
	silver := r.capacity(r.onHost("nine-01.lab.test"), &types.DirectPathProfileManagerCapacityQueryByName{Name: "silver"})
	if info, ok := silver[0].(*types.DirectPathProfileManagerCapacityInfo); !ok || info.Profile.Name != "silver" {
		t.Errorf("by its name %T was answered", silver[0])
	}
	answers := r.capacity(r.onHost("nine-01.lab.test"), &types.DirectPathProfileManagerCapacityQueryByName{Name: "gold"}, byConfig(vmiop("grid_a100-40c")))
	unknown, ok := answers[0].(*types.DirectPathProfileManagerCapacityUnknown)
	if !ok || len(unknown.FaultList) != 1 {
		t.Errorf("got %+v", answers[0])
	}
	if _, ok := answers[1].(*types.DirectPathProfileManagerCapacityInfo); !ok {
		t.Errorf("got %+v", answers[1])
	}
	_, err := methods.DirectPathProfileManagerQueryCapacity(r.ctx, r.client, &types.DirectPathProfileManagerQueryCapacity{
		This: *r.client.ServiceContent.DirectPathProfileManager, Target: &types.DirectPathProfileManagerTargetHost{Host: r.vm("etl-7").Reference()},
	})
	mustBe(t, faultOf(t, err), "InvalidArgument")
}

func TestAnOlderVCenterCannotBeAsked(t *testing.T) {
	if manager := newRig(t, "quad-8.0u3", nil).client.ServiceContent.DirectPathProfileManager; manager != nil {
		t.Errorf("8.0 U3 has %v", manager)
	}
}
