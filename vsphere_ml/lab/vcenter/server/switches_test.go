package server

import (
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/simulator"
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

func TestASwitchTellsTheLargestMTUThatItTakes(t *testing.T) {
	r := newRig(t, "quad-8.0u3", func(file *topology.File) { file.Switches[0].MaxMTU = 9190 })
	distributed, config := r.distributedSwitch()
	var seen mo.DistributedVirtualSwitch
	if err := distributed.Properties(r.ctx, distributed.Reference(), []string{"capability.featuresSupported"}, &seen); err != nil {
		t.Fatal(err)
	}
	told := seen.Capability.FeaturesSupported.(*types.VMwareDVSFeatureCapability).MtuCapability
	if told.MaxMtuSupported != 9190 {
		t.Errorf("it takes %d", told.MaxMtuSupported)
	}
	mustBe(t, r.setMTU(config.ConfigVersion, told.MaxMtuSupported+1), "InvalidArgument")
	if fault := r.setMTU(config.ConfigVersion, told.MaxMtuSupported); fault != nil {
		t.Errorf("%T", fault)
	}
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

// What a host shows of its switches: the management NIC on its standard switch, the topology's uplinks on the
// distributed one, and none of a port that is handed through.
func TestAHostShowsWhichAdaptersLinkItsSwitches(t *testing.T) {
	r := newRig(t, "quad-8.0u3", func(file *topology.File) { file.Models[0].NICs[1].Passthrough = true })
	var seen mo.HostSystem
	host := r.host("esx-02.lab.test")
	if err := host.Properties(r.ctx, host.Reference(), []string{"config.network"}, &seen); err != nil {
		t.Fatal(err)
	}
	network := seen.Config.Network
	if len(network.ProxySwitch) != 1 {
		t.Fatalf("%d proxy switches", len(network.ProxySwitch))
	}
	_, config := r.distributedSwitch()
	proxy := network.ProxySwitch[0]
	if proxy.DvsName != config.Name || proxy.DvsUuid != config.Uuid {
		t.Errorf("the host has %s (%s)", proxy.DvsName, proxy.DvsUuid)
	}
	standard := network.Vswitch[0].Pnic
	if len(proxy.Pnic) != 1 || len(standard) != 1 {
		t.Fatalf("the uplinks are %v and %v", proxy.Pnic, standard)
	}
	for _, nic := range network.Pnic {
		on := map[string]string{proxy.Pnic[0]: proxy.DvsName, standard[0]: network.Vswitch[0].Name}[nic.Key]
		if want := map[string]string{"vmnic0": "vSwitch0", "vmnic4": "dvs-gpu"}[nic.Device]; on != want {
			t.Errorf("%s links %q, want %q", nic.Device, on, want)
		}
	}
	backing := proxy.Spec.Backing.(*types.DistributedVirtualSwitchHostMemberPnicBacking)
	if len(backing.PnicSpec) != 1 || backing.PnicSpec[0].PnicDevice != "vmnic4" {
		t.Errorf("it is backed by %v", backing.PnicSpec)
	}
}

func TestASwitchIsMadeOnlyWhenItsUplinksAre(t *testing.T) {
	r := newRig(t, "seed-7.0u2", nil)
	// Of the simulator's whole process: no test of this package runs beside another.
	simulator.TaskDelay.MethodDelay = map[string]int{"AddDVPortgroup": 200}
	defer func() { simulator.TaskDelay = simulator.DelayConfig{} }()
	made, err := r.lab.addSwitch(topology.Switch{Name: "late", MTU: 1500})
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Portgroup) != 1 {
		t.Errorf("the switch has %d port groups, its uplinks are missing", len(made.Portgroup))
	}
}
