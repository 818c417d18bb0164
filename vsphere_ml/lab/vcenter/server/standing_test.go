package server

import (
	"fmt"
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

// manyVMs adds eight VMs like each other, two a host.
func manyVMs(file *topology.File) {
	for i := range 8 {
		file.VMs = append(file.VMs, topology.VM{
			Name: fmt.Sprintf("many-%d", i), Host: file.Clusters[0].Hosts[i%4], CPUs: 4, MemoryGiB: 16, DiskGiB: 20,
			Datastore: "vsan", Portgroup: "vm-mgmt", HardwareVersion: 20, Profiles: []string{"grid_a100-40c"}, Power: "on",
		})
	}
}

func TestCopiesDifferInWhatMustDiffer(t *testing.T) {
	lab := startLab(t, "quad-8.0u3", manyVMs)
	client := login(t, lab)
	seen := map[string]string{}
	for i := range 8 {
		name := fmt.Sprintf("many-%d", i)
		properties := machineProperties(t, machineNamed(t, client, name), "config", "summary", "runtime", "resourcePool")
		devices := object.VirtualDeviceList(properties.Config.Hardware.Device)
		disk := devices.SelectByType((*types.VirtualDisk)(nil))[0].GetVirtualDevice().Backing.(*types.VirtualDiskFlatVer2BackingInfo)
		card := devices.SelectByType((*types.VirtualEthernetCard)(nil))[0].(types.BaseVirtualEthernetCard).GetVirtualEthernetCard()
		for kind, value := range map[string]string{
			"MAC": card.MacAddress, "disk": disk.FileName, "BIOS UUID": properties.Config.Uuid,
			"instance UUID": properties.Config.InstanceUuid, "path": properties.Config.Files.VmPathName,
		} {
			if other := seen[kind+value]; other != "" {
				t.Errorf("%s %s is shared by %s and %s", kind, value, other, name)
			}
			seen[kind+value] = name
		}
		if properties.Summary.Config.Name != name || properties.Runtime.PowerState != types.VirtualMachinePowerStatePoweredOn {
			t.Errorf("%s: summary %s, %s", name, properties.Summary.Config.Name, properties.Runtime.PowerState)
		}
	}
}

func TestACopyCanBePoweredOffAndDestroyed(t *testing.T) {
	lab := startLab(t, "quad-8.0u3", manyVMs)
	client := login(t, lab)
	machine := machineNamed(t, client, "many-7")
	powerOff(t, machine)
	task, err := machine.Destroy(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := task.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := finder(t, client).VirtualMachine(within(t), "many-7"); err == nil {
		t.Error("many-7 is still found")
	}
	machineProperties(t, machineNamed(t, client, "many-6"), "config")
}

func TestTemplateIsOneWithItsSnapshot(t *testing.T) {
	client := login(t, startLab(t, "quad-8.0u3"))
	template := machineProperties(t, machineNamed(t, client, "ubuntu-22.04-gpu"), "config", "snapshot", "resourcePool")
	if !template.Config.Template || template.Config.Firmware != "efi" || template.Config.Version != "vmx-19" || template.ResourcePool != nil {
		t.Errorf("template %v, firmware %s, version %s", template.Config.Template, template.Config.Firmware, template.Config.Version)
	}
	if template.Snapshot == nil || template.Snapshot.RootSnapshotList[0].Name != "base" {
		t.Errorf("snapshot %+v", template.Snapshot)
	}
}

func TestDatastoresShowTheTopologysNumbers(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	store := lab.site.datastores["vsan"]
	refresh := &datastore{store, lab}
	refresh.RefreshDatastore(lab.Context, &types.RefreshDatastore{This: store.Self})
	if store.Summary.Capacity != 20480<<30 || store.Summary.FreeSpace != 16384<<30 || len(store.Host) != 4 {
		t.Errorf("capacity %d, free %d, %d hosts", store.Summary.Capacity>>30, store.Summary.FreeSpace>>30, len(store.Host))
	}
}

func TestOverbookedTopologyIsRefused(t *testing.T) {
	file, err := topology.Load("../../topologies/seed-7.0u2.toml")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		file.VMs = append(file.VMs, topology.VM{Name: fmt.Sprintf("greedy-%d", i), Host: "esx-01.lab.test", CPUs: 2, MemoryGiB: 4,
			Datastore: "vsan", Profiles: []string{"grid_a100-40c"}, Power: "on"})
	}
	if lab, err := Start(Options{File: file, StateDir: t.TempDir(), Listen: "127.0.0.1:0", Username: "u", Password: "p"}); err == nil {
		lab.Close()
		t.Error("three VMs stand on two cards")
	}
}

func TestSwitchKnowsItsMembers(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	network, err := finder(t, login(t, lab)).Network(within(t), "dvs-gpu")
	if err != nil {
		t.Fatal(err)
	}
	made := network.(*object.DistributedVirtualSwitch)
	config := lab.Context.Map.Get(made.Reference())
	members := membersOf(config)
	if len(members) != 4 || members[0].Config.Backing.(*types.DistributedVirtualSwitchHostMemberPnicBacking).PnicSpec[1].PnicDevice != "vmnic5" {
		t.Errorf("members %+v", members)
	}
}

func membersOf(object mo.Reference) []types.DistributedVirtualSwitchHostMember {
	return object.(*simulator.DistributedVirtualSwitch).Config.GetDVSConfigInfo().Host
}

func TestStandingVMsHoldGroupsAndFunctions(t *testing.T) {
	const group = "Nvidia:1@grid_a100-40c:1@NVIDIA-ConnectX-6-Dx-NIC%SameSwitch"
	lab := startLab(t, "quad-8.0u3", func(file *topology.File) {
		file.Models[0].GPUs[3].Passthrough = true
		common := topology.VM{Host: "esx-04.lab.test", CPUs: 4, MemoryGiB: 16, Datastore: "vsan", Portgroup: "vm-mgmt", HardwareVersion: 20, Power: "on"}
		grouped, fixed := common, common
		grouped.Name, grouped.Groups = "grouped", []string{group}
		fixed.Name, fixed.Passthrough = "fixed", []string{"0000:b4:00.0"}
		file.VMs = append(file.VMs, grouped, fixed)
	})
	client := login(t, lab)
	config := machineProperties(t, machineNamed(t, client, "grouped"), "config").Config
	if config.DeviceGroups == nil || len(config.DeviceGroups.DeviceGroup) != 1 {
		t.Errorf("device groups %+v", config.DeviceGroups)
	}
	held := map[string]string{}
	for _, binding := range hostProperties(t, client, "esx-04.lab.test", "config").Config.AssignableHardwareBinding {
		held[binding.InstanceId] = binding.Vm.Value
	}
	if len(held) != 3 || held["pcip:0000:b4:00.0"] != machineNamed(t, client, "fixed").Reference().Value {
		t.Errorf("held %v", held)
	}
}

// Whatever stands with the power on must start again, whichever way it holds its GPU.
func TestStandingVMsStartAgain(t *testing.T) {
	r := newRig(t, "quad-8.0u3", func(file *topology.File) {
		file.Models[0].GPUs[3].Passthrough = true
		common := topology.VM{Host: "esx-04.lab.test", CPUs: 4, MemoryGiB: 16, Datastore: "vsan", Portgroup: "vm-mgmt", HardwareVersion: 20, Power: "on"}
		grouped, fixed := common, common
		grouped.Name, grouped.Groups = "grouped", []string{pairGroup}
		fixed.Name, fixed.Passthrough = "fixed", []string{"0000:b4:00.0"}
		file.VMs = append(file.VMs, grouped, fixed)
	})
	for _, name := range []string{"etl-7", "grouped", "fixed"} {
		if fault := r.done(r.vm(name).PowerOff(r.ctx)); fault != nil {
			t.Fatalf("%s: %T", name, fault)
		}
		if started := r.result(r.vm(name).PowerOn(r.ctx)); started.fault != nil {
			t.Errorf("%s does not start again: %T %s", name, started.fault, started.message)
		}
	}
}
