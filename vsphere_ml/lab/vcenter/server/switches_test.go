package server

import (
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

func (r *rig) distributedSwitch() (*object.DistributedVirtualSwitch, *types.VMwareDVSConfigInfo) {
	r.Helper()
	network, err := r.find.Network(r.ctx, "dvs-gpu")
	if err != nil {
		r.Fatal(err)
	}
	made := network.(*object.DistributedVirtualSwitch)
	var seen mo.DistributedVirtualSwitch
	if err := property.DefaultCollector(r.client).RetrieveOne(r.ctx, made.Reference(), []string{"config"}, &seen); err != nil {
		r.Fatal(err)
	}
	return made, seen.Config.(*types.VMwareDVSConfigInfo)
}

func (r *rig) setMTU(version string, mtu int32) types.BaseMethodFault {
	r.Helper()
	made, _ := r.distributedSwitch()
	spec := &types.VMwareDVSConfigSpec{MaxMtu: mtu}
	spec.ConfigVersion = version
	return r.done(made.Reconfigure(r.ctx, spec))
}

func TestASwitchTakesAnotherMTUByItsVersion(t *testing.T) {
	r := newRig(t, "quad-8.0u3", func(file *topology.File) { file.Switches[0].MTU = 1500 })
	_, before := r.distributedSwitch()
	if before.MaxMtu != 1500 {
		t.Fatalf("the MTU is %d at the start", before.MaxMtu)
	}
	if fault := r.setMTU(before.ConfigVersion, 9000); fault != nil {
		t.Fatalf("%T", fault)
	}
	_, after := r.distributedSwitch()
	if after.MaxMtu != 9000 || after.ConfigVersion == before.ConfigVersion || len(after.Host) != len(before.Host) {
		t.Errorf("the MTU is %d in version %s with %d hosts", after.MaxMtu, after.ConfigVersion, len(after.Host))
	}
	mustBe(t, r.setMTU(before.ConfigVersion, 1500), "ConcurrentAccess")
	mustBe(t, r.setMTU(after.ConfigVersion, 9216), "InvalidArgument")
}

func TestASwitchHasTheUplinksOfTheTopology(t *testing.T) {
	r := newRig(t, "spectrum-8.0u3", nil)
	_, config := r.distributedSwitch()
	for _, member := range config.Host {
		backing := member.Config.Backing.(*types.DistributedVirtualSwitchHostMemberPnicBacking)
		if len(backing.PnicSpec) != 1 || backing.PnicSpec[0].PnicDevice != "vmnic4" {
			t.Fatalf("the uplinks are %v", backing.PnicSpec)
		}
	}
}
