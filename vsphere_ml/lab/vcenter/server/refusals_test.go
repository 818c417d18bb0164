package server

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

// kind is a fault's type name in the API.
func kind(fault types.BaseMethodFault) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", fault), "*types.")
}

func mustBe(t *testing.T, fault types.BaseMethodFault, want string) {
	t.Helper()
	if fault == nil || kind(fault) != want {
		t.Errorf("got fault %T, want %s", fault, want)
	}
}

func TestCreateRefusals(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	cases := map[string]struct {
		want   string
		change func(*types.VirtualMachineConfigSpec)
	}{
		"unknown profile":   {"InvalidDeviceBacking", func(s *types.VirtualMachineConfigSpec) { *s = gpuSpec(s.Name, "grid_a100-41c") }},
		"profile elsewhere": {"InvalidDeviceBacking", func(s *types.VirtualMachineConfigSpec) { *s = gpuSpec(s.Name, "nvidia_h100-80c") }},
		"unknown group": {"InvalidArgument", func(s *types.VirtualMachineConfigSpec) {
			s.DeviceGroups = groups("Nvidia:9@grid_a100-40c%NVLink")
		}},
		"group on old hardware": {"InvalidArgument", func(s *types.VirtualMachineConfigSpec) {
			s.Version, s.DeviceGroups = "vmx-19", groups(pairGroup)
		}},
		"same key twice": {"InvalidDeviceSpec", func(s *types.VirtualMachineConfigSpec) {
			s.DeviceChange = append(s.DeviceChange, added(vgpuDevice(-1, "grid_a100-40c")), added(vgpuDevice(-1, "grid_a100-40c")))
		}},
		"dynamic on old hardware": {"DeviceUnsupportedForVmVersion", func(s *types.VirtualMachineConfigSpec) {
			s.Version = "vmx-15"
			s.DeviceChange = append(s.DeviceChange, added(dynamicDevice()))
		}},
		"virtual NUMA on old hardware": {"InvalidArgument", func(s *types.VirtualMachineConfigSpec) {
			s.Version, s.VirtualNuma = "vmx-19", &types.VirtualMachineVirtualNuma{CoresPerNumaNode: types.NewInt32(4)}
		}},
		"hardware too new":  {"VirtualHardwareVersionNotSupported", func(s *types.VirtualMachineConfigSpec) { s.Version = "vmx-22" }},
		"unknown datastore": {"InvalidDatastorePath", func(s *types.VirtualMachineConfigSpec) { s.Files.VmPathName = "[nowhere]" }},
		"no path":           {"InvalidVmConfig", func(s *types.VirtualMachineConfigSpec) { s.Files = nil }},
		"unknown guest":     {"InvalidArgument", func(s *types.VirtualMachineConfigSpec) { s.GuestId = "plan9" }},
		"secure BIOS":       {"InvalidVmConfig", func(s *types.VirtualMachineConfigSpec) { s.Firmware = "bios"; s.BootOptions = secureBoot() }},
		"endless memory":    {"InvalidArgument", func(s *types.VirtualMachineConfigSpec) { s.MemoryMB = 1 << 30 }},
		"unknown network": {"InvalidDeviceBacking", func(s *types.VirtualMachineConfigSpec) {
			s.DeviceChange = append(s.DeviceChange, added(cardOn("nowhere")))
		}},
		"name that is taken": {"DuplicateName", func(s *types.VirtualMachineConfigSpec) { s.Name = "etl-7" }},
		"disk too large":     {"NoDiskSpace", func(s *types.VirtualMachineConfigSpec) { s.DeviceChange = append(s.DeviceChange, hugeDisk()) }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			spec := gpuSpec("refused")
			c.change(&spec)
			mustBe(t, r.tryCreate(spec, "").fault, c.want)
		})
	}
	if made := r.tryCreate(gpuSpec("refused"), ""); made.fault != nil {
		t.Errorf("after all refusals the name is not free: %T", made.fault)
	}
}

const pairGroup = "Nvidia:1@grid_a100-40c:1@NVIDIA-ConnectX-6-Dx-NIC%SameSwitch"

func groups(name string) *types.VirtualMachineVirtualDeviceGroups {
	group := &types.VirtualMachineVirtualDeviceGroupsVendorDeviceGroup{DeviceGroupName: name}
	group.GroupInstanceKey = -1
	return &types.VirtualMachineVirtualDeviceGroups{DeviceGroup: []types.BaseVirtualMachineVirtualDeviceGroupsDeviceGroup{group}}
}

func dynamicDevice() *types.VirtualPCIPassthrough {
	return &types.VirtualPCIPassthrough{VirtualDevice: types.VirtualDevice{Key: -1, Backing: &types.VirtualPCIPassthroughDynamicBackingInfo{
		AllowedDevice: []types.VirtualPCIPassthroughAllowedDevice{{VendorId: 0x10de, DeviceId: 0x20f1}},
	}}}
}

func fixedDevice(key int32, address string) *types.VirtualPCIPassthrough {
	return &types.VirtualPCIPassthrough{VirtualDevice: types.VirtualDevice{Key: key, Backing: &types.VirtualPCIPassthroughDeviceBackingInfo{
		Id: address, DeviceId: "20f1", SystemId: "x", VendorId: 0x10de,
	}}}
}

func secureBoot() *types.VirtualMachineBootOptions {
	return &types.VirtualMachineBootOptions{EfiSecureBootEnabled: types.NewBool(true)}
}

func cardOn(network string) *types.VirtualVmxnet3 {
	card := &types.VirtualVmxnet3{}
	card.Key = -1
	backing := &types.VirtualEthernetCardNetworkBackingInfo{}
	backing.DeviceName = network
	card.Backing = backing
	return card
}

func hugeDisk() *types.VirtualDeviceConfigSpec {
	change := added(&types.VirtualDisk{CapacityInKB: 1 << 40, VirtualDevice: types.VirtualDevice{
		Key: -5, ControllerKey: 1000, UnitNumber: types.NewInt32(0), Backing: &types.VirtualDiskFlatVer2BackingInfo{
			VirtualDeviceFileBackingInfo: types.VirtualDeviceFileBackingInfo{FileName: "[vsan] a/a.vmdk"}, DiskMode: "persistent",
		}}})
	change.FileOperation = types.VirtualDeviceConfigSpecFileOperationCreate
	return change
}

func TestPowerOnRefusals(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	cases := map[string]struct {
		want, says string
		change     func(*types.VirtualMachineConfigSpec)
	}{
		"memory not reserved": {"GenericVmConfigFault", "memory reservation", func(s *types.VirtualMachineConfigSpec) { s.MemoryReservationLockedToMax = nil }},
		"BIOS":                {"GenericVmConfigFault", "EFI", func(s *types.VirtualMachineConfigSpec) { s.Firmware = "bios" }},
		"little MMIO":         {"GenericVmConfigFault", "MMIO", func(s *types.VirtualMachineConfigSpec) { s.ExtraConfig = s.ExtraConfig[:1] }},
		"five full GPUs": {"InsufficientGraphicsResourcesFault", "graphics", func(s *types.VirtualMachineConfigSpec) {
			*s = gpuSpec(s.Name, "grid_a100-40c", "grid_a100-40c", "grid_a100-40c", "grid_a100-40c", "grid_a100-40c")
		}},
		"more memory than the host": {"InsufficientHostMemoryCapacityFault", "memory", func(s *types.VirtualMachineConfigSpec) { s.MemoryMB = 1100 << 10 }},
		"latency without CPU": {"GenericVmConfigFault", "sched.cpu.min", func(s *types.VirtualMachineConfigSpec) {
			s.LatencySensitivity = &types.LatencySensitivity{Level: types.LatencySensitivitySensitivityLevelHigh}
		}},
		"function not enabled": {"GenericVmConfigFault", "0000:3b:00.0", func(s *types.VirtualMachineConfigSpec) {
			s.DeviceChange = []types.BaseVirtualDeviceConfigSpec{added(fixedDevice(-1, "0000:3b:00.0"))}
		}},
		"no such function": {"GenericVmConfigFault", "not found", func(s *types.VirtualMachineConfigSpec) {
			s.DeviceChange = []types.BaseVirtualDeviceConfigSpec{added(fixedDevice(-1, "0000:ff:00.0"))}
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			spec := gpuSpec(strings.ReplaceAll(name, " ", "-"), "grid_a100-40c")
			c.change(&spec)
			refused := r.result(r.create(spec, "esx-01.lab.test").PowerOn(r.ctx))
			mustBe(t, refused.fault, c.want)
			if !strings.Contains(refused.message, c.says) {
				t.Errorf("the sentence %q does not speak of %q", refused.message, c.says)
			}
		})
	}
	if fault := r.powerOn(r.create(gpuSpec("good", "grid_a100-40c", "grid_a100-40c"), "esx-01.lab.test")); fault != nil {
		t.Errorf("a VM that breaks no rule was refused: %T", fault)
	}
}

func TestVSphere7TakesSeveralVGPUsOnlyWithFullFramebuffer(t *testing.T) {
	r := newRig(t, "seed-7.0u2", nil)
	spec := func(name string, profiles ...string) types.VirtualMachineConfigSpec {
		s := gpuSpec(name, profiles...)
		s.Version = "vmx-19"
		return s
	}
	mustBe(t, r.powerOn(r.create(spec("halves", "grid_a100-20c", "grid_a100-20c"), "")), "GenericVmConfigFault")
	if fault := r.powerOn(r.create(spec("fulls", "grid_a100-40c", "grid_a100-40c"), "")); fault != nil {
		t.Errorf("two full-framebuffer vGPUs were refused: %T", fault)
	}
	grouped := spec("grouped")
	grouped.DeviceGroups = groups(pairGroup)
	mustBe(t, r.tryCreate(grouped, "").fault, "InvalidArgument")
}

func TestHotAddOfAVGPUIsRefused(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	machine := r.create(gpuSpec("busy", "grid_a100-40c"), "esx-01.lab.test")
	if fault := r.powerOn(machine); fault != nil {
		t.Fatalf("%T", fault)
	}
	change := types.VirtualMachineConfigSpec{DeviceChange: []types.BaseVirtualDeviceConfigSpec{added(vgpuDevice(-1, "grid_a100-40c"))}}
	mustBe(t, r.done(machine.Reconfigure(r.ctx, change)), "InvalidPowerState")
	mustBe(t, r.powerOn(machine), "InvalidPowerState")
}

func TestHostStateRefusals(t *testing.T) {
	r := newRig(t, "quad-8.0u3", func(f *topology.File) { f.Models[0].GraphicsType = "shared"; f.VMs = nil })
	first, second := r.create(gpuSpec("a", "grid_a100-40c"), "esx-01.lab.test"), r.create(gpuSpec("b"), "esx-02.lab.test")
	refused := r.result(first.PowerOn(r.ctx))
	mustBe(t, refused.fault, "GenericVmConfigFault")
	if !strings.Contains(refused.message, "libnvidia-vgx.so") {
		t.Errorf("host not Shared Direct, but the sentence is %q", refused.message)
	}
	if fault := r.done(r.host("esx-02.lab.test").EnterMaintenanceMode(r.ctx, 0, false, nil)); fault != nil {
		t.Fatalf("%T", fault)
	}
	mustBe(t, r.powerOn(second), "InvalidState")
	mustBe(t, r.tryCreate(gpuSpec("c"), "esx-02.lab.test").fault, "InvalidState")
	if fault := r.done(r.host("esx-01.lab.test").Disconnect(r.ctx)); fault != nil {
		t.Fatalf("%T", fault)
	}
	mustBe(t, r.powerOn(first), "HostNotConnected")
}

func TestPassthroughFunctionIsGivenOnce(t *testing.T) {
	r := newRig(t, "quad-8.0u3", func(f *topology.File) { f.Models[0].GPUs[0].Passthrough = true })
	spec := func(name string) types.VirtualMachineConfigSpec {
		s := gpuSpec(name)
		s.DeviceChange = append(s.DeviceChange, added(fixedDevice(-1, "0000:3b:00.0")))
		return s
	}
	if fault := r.powerOn(r.create(spec("one"), "esx-01.lab.test")); fault != nil {
		t.Fatalf("%T", fault)
	}
	refused := r.result(r.create(spec("two"), "esx-01.lab.test").PowerOn(r.ctx))
	mustBe(t, refused.fault, "GenericVmConfigFault")
	if !strings.Contains(refused.message, "in use") {
		t.Errorf("sentence %q", refused.message)
	}
}

// Eight clients start 40 full-GPU VMs on hosts with 15 GPUs free: exactly 15 run, the others lack graphics.
func TestConcurrentClientsNeverOverbook(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	faults := make([]types.BaseMethodFault, 40)
	var wait sync.WaitGroup
	for client := range 8 {
		connection := r.login()
		wait.Go(func() {
			for i := client; i < len(faults); i += 8 {
				spec := gpuSpec(fmt.Sprintf("gpu-%02d", i), "grid_a100-40c")
				host := fmt.Sprintf("esx-%02d.lab.test", i%4+1)
				made := object.NewVirtualMachine(connection, r.create(spec, host).Reference())
				faults[i] = r.powerOn(made)
			}
		})
	}
	wait.Wait()
	running := 0
	for _, fault := range faults {
		if fault == nil {
			running++
		} else {
			mustBe(t, fault, "InsufficientGraphicsResourcesFault")
		}
	}
	if running != 15 {
		t.Errorf("%d VMs run on 15 free GPUs", running)
	}
}

func TestBadRequestsDoNotEndTheServer(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	spec := gpuSpec("odd")
	spec.ExtraConfig = append(spec.ExtraConfig, &types.OptionValue{Key: "SET.no.such.path", Value: "x"})
	machine := r.create(spec, "")
	if got := extraConfig(r.config(machine).ExtraConfig, "SET.no.such.path"); got != "x" {
		t.Errorf("an unusual key reads back as %q", got)
	}
	nothing := []types.BaseVirtualDeviceConfigSpec{&types.VirtualDeviceConfigSpec{Operation: "remove", Device: vgpuDevice(99, "x")}}
	mustBe(t, r.done(machine.Reconfigure(r.ctx, types.VirtualMachineConfigSpec{DeviceChange: nothing})), "InvalidDeviceSpec")
}
