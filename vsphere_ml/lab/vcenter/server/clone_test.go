package server

import (
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
)

// wholeSpec sets everything that a GPU node needs.
func wholeSpec() *types.VirtualMachineConfigSpec {
	spec := gpuSpec("", "grid_a100-40c")
	spec.Files, spec.Annotation = nil, "made by a test"
	spec.DeviceGroups = groups(pairGroup)
	card := &types.VirtualSriovEthernetCard{SriovBacking: &types.VirtualSriovEthernetCardSriovBackingInfo{}}
	card.Key = -7
	spec.DeviceChange = append(spec.DeviceChange, added(card))
	for i, change := range spec.DeviceChange {
		change.GetVirtualDeviceConfigSpec().Device.GetVirtualDevice().DeviceGroupInfo =
			&types.VirtualDeviceDeviceGroupInfo{GroupInstanceKey: -1, SequenceId: int32(i)}
	}
	spec.VirtualNuma = &types.VirtualMachineVirtualNuma{CoresPerNumaNode: types.NewInt32(4)}
	spec.LatencySensitivity = &types.LatencySensitivity{Level: types.LatencySensitivitySensitivityLevelHigh}
	spec.CpuAllocation = &types.ResourceAllocationInfo{Reservation: types.NewInt64(8 * 2600)}
	spec.CpuAffinity = &types.VirtualMachineAffinityInfo{AffinitySet: []int32{1, 2}}
	spec.Flags = &types.VirtualMachineFlagInfo{EnableLogging: types.NewBool(false)}
	spec.BootOptions = &types.VirtualMachineBootOptions{EfiSecureBootEnabled: types.NewBool(false), BootDelay: 7}
	spec.FixedPassthruHotPlugEnabled = types.NewBool(true)
	spec.ExtraConfig = append(spec.ExtraConfig, &types.OptionValue{Key: "numa.nodeAffinity", Value: "0"})
	return &spec
}

// mustHaveAll compares what reads back with wholeSpec.
func mustHaveAll(t *testing.T, config *types.VirtualMachineConfigInfo) {
	t.Helper()
	checks := map[string]bool{
		"firmware":              config.Firmware == "efi",
		"version":               config.Version == "vmx-20",
		"annotation":            config.Annotation == "made by a test",
		"memory":                config.Hardware.MemoryMB == 64<<10 && config.Hardware.NumCPU == 8,
		"memory lock":           isTrue(config.MemoryReservationLockedToMax),
		"memory reservation":    *config.MemoryAllocation.Reservation == 64<<10,
		"CPU reservation":       *config.CpuAllocation.Reservation == 8*2600,
		"latency":               config.LatencySensitivity.Level == types.LatencySensitivitySensitivityLevelHigh,
		"CPU affinity":          config.CpuAffinity != nil && len(config.CpuAffinity.AffinitySet) == 2,
		"flags":                 config.Flags.EnableLogging != nil && !*config.Flags.EnableLogging,
		"boot delay":            config.BootOptions.BootDelay == 7,
		"virtual NUMA":          config.NumaInfo != nil && *config.NumaInfo.CoresPerNumaNode == 4,
		"hot plug":              isTrue(config.FixedPassthruHotPlugEnabled),
		"device group":          groupNames(config.DeviceGroups)[-1] == pairGroup,
		"node affinity":         extraConfig(config.ExtraConfig, "numa.nodeAffinity") == "0",
		"MMIO size":             extraConfig(config.ExtraConfig, "pciPassthru.64bitMMIOSizeGB") == "1024",
		"nothing of the lab's":  extraConfig(config.ExtraConfig, "govcsim") == "",
		"a vGPU and its number": hasVGPU(config, 13000, "PCI device 0"),
	}
	for what, kept := range checks {
		if !kept {
			t.Errorf("%s does not read back as written", what)
		}
	}
}

func hasVGPU(config *types.VirtualMachineConfigInfo, key int32, label string) bool {
	device := object.VirtualDeviceList(config.Hardware.Device).FindByKey(key)
	if device == nil || vgpuOf(device) != "grid_a100-40c" {
		return false
	}
	base := device.GetVirtualDevice()
	return base.DeviceInfo.GetDescription().Label == label && base.DeviceGroupInfo != nil && base.DeviceGroupInfo.GroupInstanceKey == -1
}

func (r *rig) tryClone(source, name string, spec types.VirtualMachineCloneSpec) outcome {
	r.Helper()
	return r.result(r.vm(source).Clone(r.ctx, r.folder(), name, spec))
}

func (r *rig) clone(source, name string, spec types.VirtualMachineCloneSpec) *object.VirtualMachine {
	r.Helper()
	made := r.tryClone(source, name, spec)
	if made.fault != nil {
		r.Fatalf("clone %s was refused: %T %s", name, made.fault, made.message)
	}
	return object.NewVirtualMachine(r.client, made.value.(types.ManagedObjectReference))
}

const quadTemplate = "ubuntu-22.04-gpu"

func TestCloneAppliesTheWholeConfiguration(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	pool, host := r.pool(), r.host("esx-03.lab.test").Reference()
	machine := r.clone(quadTemplate, "node-00", types.VirtualMachineCloneSpec{
		Config: wholeSpec(), Location: types.VirtualMachineRelocateSpec{Pool: &pool, Host: &host},
	})
	mustHaveAll(t, r.config(machine))
	if got, _ := machine.HostSystem(r.ctx); got.Reference() != host {
		t.Error("the clone is not on the host it was to be on")
	}
	if fault := r.powerOn(machine); fault != nil {
		t.Fatalf("the clone does not start: %T", fault)
	}
	again := r.clone("node-00", "node-01", types.VirtualMachineCloneSpec{Location: types.VirtualMachineRelocateSpec{Pool: &pool}})
	mustHaveAll(t, r.config(again))
}

func TestCreateAndReconfigureKeepTheWholeConfiguration(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	spec := wholeSpec()
	spec.Name, spec.Files = "created", &types.VirtualMachineFileInfo{VmPathName: "[vsan]"}
	mustHaveAll(t, r.config(r.create(*spec, "")))

	plain := gpuSpec("plain")
	plain.Annotation = "other"
	machine := r.create(plain, "")
	if fault := r.done(machine.Reconfigure(r.ctx, *wholeSpec())); fault != nil {
		t.Fatalf("%T", fault)
	}
	mustHaveAll(t, r.config(machine))
}

func TestClonesHaveAddressesAndIdentitiesOfTheirOwn(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	pool := r.pool()
	location := types.VirtualMachineRelocateSpec{Pool: &pool}
	seen := map[string]string{}
	for _, name := range []string{quadTemplate, "a", "b"} {
		if name != quadTemplate {
			r.clone(quadTemplate, name, types.VirtualMachineCloneSpec{Location: location})
		}
		config := r.config(r.vm(name))
		cards := object.VirtualDeviceList(config.Hardware.Device).SelectByType((*types.VirtualEthernetCard)(nil))
		if len(cards) != 1 {
			t.Fatalf("%s has %d adapters", name, len(cards))
		}
		for _, id := range []string{config.Uuid, config.InstanceUuid, cards[0].(types.BaseVirtualEthernetCard).GetVirtualEthernetCard().MacAddress} {
			if id == "" || seen[id] != "" {
				t.Errorf("%s and %s share %q", name, seen[id], id)
			}
			seen[id] = name
		}
	}
}

func TestCloneRefusals(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	pool := r.pool()
	location := types.VirtualMachineRelocateSpec{Pool: &pool}
	unknown := gpuSpec("", "grid_a100-41c")
	cases := map[string]struct {
		name string
		spec types.VirtualMachineCloneSpec
		want string
	}{
		"taken name":      {"etl-7", types.VirtualMachineCloneSpec{Location: location}, "DuplicateName"},
		"no pool":         {"x", types.VirtualMachineCloneSpec{}, "InvalidArgument"},
		"unknown profile": {"x", types.VirtualMachineCloneSpec{Location: location, Config: &unknown}, "InvalidDeviceBacking"},
		"linked without snapshot": {"x", types.VirtualMachineCloneSpec{Location: types.VirtualMachineRelocateSpec{
			Pool: &pool, DiskMoveType: "createNewChildDiskBacking"}}, "InvalidArgument"},
		"unknown datastore": {"x", types.VirtualMachineCloneSpec{Location: types.VirtualMachineRelocateSpec{
			Pool: &pool, Datastore: &types.ManagedObjectReference{Type: "Datastore", Value: "datastore-0"}}}, "ManagedObjectNotFound"},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) { mustBe(t, r.tryClone(quadTemplate, c.name, c.spec).fault, c.want) })
	}
	r.clone(quadTemplate, "x", types.VirtualMachineCloneSpec{Location: location}) // nothing is left under the name
}

func TestReconfigureEdits(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	pool := r.pool()
	machine := r.clone(quadTemplate, "n", types.VirtualMachineCloneSpec{Location: types.VirtualMachineRelocateSpec{Pool: &pool}})
	devices := object.VirtualDeviceList(r.config(machine).Hardware.Device)
	disk := devices.SelectByType((*types.VirtualDisk)(nil))[0].(*types.VirtualDisk)
	disk.CapacityInKB, disk.CapacityInBytes = 100<<20, 100<<30
	spec := types.VirtualMachineConfigSpec{
		DeviceChange: []types.BaseVirtualDeviceConfigSpec{&types.VirtualDeviceConfigSpec{Operation: "edit", Device: disk}},
		ExtraConfig:  []types.BaseOptionValue{&types.OptionValue{Key: "a", Value: "1"}, &types.OptionValue{Key: "b", Value: "2"}},
	}
	if fault := r.done(machine.Reconfigure(r.ctx, spec)); fault != nil {
		t.Fatalf("%T", fault)
	}
	spec = types.VirtualMachineConfigSpec{ExtraConfig: []types.BaseOptionValue{&types.OptionValue{Key: "a", Value: ""}}}
	if fault := r.done(machine.Reconfigure(r.ctx, spec)); fault != nil {
		t.Fatalf("%T", fault)
	}
	config := r.config(machine)
	disks := object.VirtualDeviceList(config.Hardware.Device).SelectByType((*types.VirtualDisk)(nil))
	if grown := disks[0].(*types.VirtualDisk).CapacityInBytes; grown != 100<<30 {
		t.Errorf("the disk has %d bytes", grown)
	}
	if extraConfig(config.ExtraConfig, "a") != "" || extraConfig(config.ExtraConfig, "b") != "2" {
		t.Errorf("options are %v", config.ExtraConfig)
	}
	spec = types.VirtualMachineConfigSpec{ChangeVersion: "1", Annotation: "late"}
	mustBe(t, r.done(machine.Reconfigure(r.ctx, spec)), "ConcurrentAccess")
	mustBe(t, r.done(r.vm(quadTemplate).Reconfigure(r.ctx, types.VirtualMachineConfigSpec{NumCPUs: 2})), "NotSupported")
}

func TestUpgradeRaisesTheHardwareVersion(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	pool := r.pool()
	machine := r.clone(quadTemplate, "n", types.VirtualMachineCloneSpec{Location: types.VirtualMachineRelocateSpec{Pool: &pool}})
	upgrade := func(version string) types.BaseMethodFault { return r.done(machine.UpgradeVM(r.ctx, version)) }
	mustBe(t, upgrade("vmx-22"), "NotSupported")
	if fault := upgrade("vmx-20"); fault != nil {
		t.Fatalf("%T", fault)
	}
	mustBe(t, upgrade("vmx-20"), "AlreadyUpgraded")
	if got := r.config(machine).Version; got != "vmx-20" {
		t.Errorf("the version is %s", got)
	}
}

func TestCloneIsCustomizedAtItsFirstPowerOn(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	pool := r.pool()
	wanted := &types.CustomizationSpec{
		Identity: &types.CustomizationLinuxPrep{HostName: &types.CustomizationFixedName{Name: "n-1"}, Domain: "lab.test"},
		NicSettingMap: []types.CustomizationAdapterMapping{{
			Adapter: types.CustomizationIPSettings{Ip: &types.CustomizationFixedIp{IpAddress: "192.0.2.7"}, SubnetMask: "255.255.255.0"},
		}},
	}
	machine := r.clone(quadTemplate, "n-1", types.VirtualMachineCloneSpec{
		Location: types.VirtualMachineRelocateSpec{Pool: &pool}, Customization: wanted,
	})
	if fault := r.powerOn(machine); fault != nil {
		t.Fatalf("%T", fault)
	}
	if guest := machineProperties(t, machine, "guest").Guest; guest.HostName != "n-1" {
		t.Errorf("the guest is called %q", guest.HostName)
	}
}

func TestOfTwoClonesWithOneNameOneIsRefused(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	pool := r.pool()
	source, folder := r.vm(quadTemplate), r.folder()
	var tasks []*object.Task
	for _, name := range []string{"same", "same", "a", "b", "c", "d"} {
		task, err := source.Clone(r.ctx, folder, name, types.VirtualMachineCloneSpec{Location: types.VirtualMachineRelocateSpec{Pool: &pool}})
		if err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, task)
	}
	refused := 0
	for _, task := range tasks {
		if r.done(task, nil) != nil {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("%d clones were refused, of two with one name and four others", refused)
	}
}
