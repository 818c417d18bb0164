package rack

import (
	"fmt"
	"sync"
	"testing"

	"vsml.dev/lab/vcenter/topology"
)

// site is one host with GPUs a and b and an adapter of two virtual functions on one switch.
func site(change func(*topology.Model)) *Rack {
	on := true
	model := topology.Model{
		Name: "m", ESXiVersion: "8.0.3", GraphicsType: SharedDirect, VGPUManager: "535", DeviceGroups: &on,
		NUMA:    []topology.NUMANode{{Cores: 28, MemoryGiB: 512}},
		Bridges: []topology.Bridge{{Address: "root"}, {Address: "switch", Parent: "root"}},
		GPUs:    []topology.GPU{{Address: "a", Board: "A100-PCIE-40GB", Parent: "switch"}, {Address: "b", Board: "A100-PCIE-40GB", Parent: "switch"}},
		NICs:    []topology.NIC{{Address: "0000:3d:00.0", Board: "ConnectX-6-Dx", Parent: "switch", VFs: 8, SRIOVEnabled: true, SRIOVActive: 2}},
	}
	if change != nil {
		change(&model)
	}
	rack, err := New(topology.File{
		VCenter:  topology.VCenter{APIVersion: "8.0.3.0"},
		Clusters: []topology.Cluster{{Name: "c", Hosts: []string{"esx"}, Model: "m"}}, Models: []topology.Model{model},
	})
	if err != nil {
		panic(err)
	}
	return rack
}

func vgpus(vm string, profiles ...string) Request {
	request := Request{VM: vm}
	for i, profile := range profiles {
		request.Devices = append(request.Devices, Device{Key: int32(13000 + i), Kind: VGPU, Profile: profile})
	}
	return request
}

func mustBook(t *testing.T, rack *Rack, request Request) []Assignment {
	t.Helper()
	got, refusal := rack.Book("esx", request)
	if refusal != nil {
		t.Fatalf("%s refused: %v", request.VM, refusal)
	}
	return got
}

func mustRefuse(t *testing.T, rack *Rack, request Request, want Reason) {
	t.Helper()
	_, refusal := rack.Book("esx", request)
	if refusal == nil {
		t.Fatalf("%s was not refused", request.VM)
	}
	if refusal.Reason != want {
		t.Errorf("%s refused for reason %d, want %d", request.VM, refusal.Reason, want)
	}
}

func TestPerformanceSpreadsAndConsolidationFills(t *testing.T) {
	for policy, want := range map[string]string{Performance: "b", Consolidation: "a"} {
		rack := site(func(m *topology.Model) { m.AssignmentPolicy = policy })
		mustBook(t, rack, vgpus("1", "grid_a100-10c"))
		if got := mustBook(t, rack, vgpus("2", "grid_a100-10c")); got[0].Address != want {
			t.Errorf("%s put the second vGPU on %s, want %s", policy, got[0].Address, want)
		}
	}
}

func TestTiesAreBrokenAsTheModelSays(t *testing.T) {
	for tie, want := range map[string]string{"": "aaa", "lowest": "aaa", "highest": "bbb", "next": "aba"} {
		rack := site(func(m *topology.Model) { m.AssignmentTie = tie })
		got := ""
		for range 3 {
			got += mustBook(t, rack, vgpus("1", "grid_a100-10c"))[0].Address
			rack.Free("1")
			rack.Try("esx", vgpus("2", "grid_a100-10c"))
		}
		if got != want {
			t.Errorf("%q took %s, want %s", tie, got, want)
		}
	}
}

func TestFunctionsComeWithTheFirmwaresSRIOV(t *testing.T) {
	rack := site(func(m *topology.Model) { m.NICs[0].VFs, m.NICs[0].SRIOVActive, m.NICs[0].SRIOVEnabled = 0, 0, false })
	most := func() int { return rack.hosts["esx"].nics[0].MaxVFs }
	for name, value := range map[string]string{"SRIOV_EN": "1", "NUM_OF_VFS": "16"} {
		if err := rack.SetFirmware("esx", "0000:3d:00.0", name, value); err != nil {
			t.Fatal(err)
		}
	}
	if most() != 0 {
		t.Errorf("%d functions before the reboot", most())
	}
	rack.Reboot("esx")
	if most() != 16 {
		t.Errorf("%d functions after the reboot, want 16", most())
	}
}

func TestCapacityEndsAndComesBack(t *testing.T) {
	rack := site(nil)
	mustBook(t, rack, vgpus("1", "grid_a100-40c", "grid_a100-40c"))
	mustRefuse(t, rack, vgpus("2", "grid_a100-40c"), NoGraphics)
	rack.Free("1")
	mustBook(t, rack, vgpus("2", "grid_a100-40c"))
}

func TestRefusedRequestLeavesNothingBooked(t *testing.T) {
	rack := site(nil)
	request := vgpus("1", "grid_a100-40c", "grid_a100-40c", "grid_a100-40c")
	request.ReservedMiB = 1024
	mustRefuse(t, rack, request, NoGraphics)
	view, _ := rack.Host("esx")
	if len(view.Uses) != 0 || view.ReservedMiB != 0 {
		t.Errorf("left behind: %v, %d MiB", view.Uses, view.ReservedMiB)
	}
}

func TestSameSizeGPURefusesAnotherSize(t *testing.T) {
	rack := site(func(m *topology.Model) { m.GPUs = m.GPUs[:1] })
	mustBook(t, rack, vgpus("1", "grid_a100-10c"))
	mustRefuse(t, rack, vgpus("2", "grid_a100-20c"), NoGraphics)
	if err := rack.SetGPU("esx", "a", "", MixedSize); err == nil {
		t.Error("the mode of a GPU in use was changed")
	}
	rack.Free("1")
	if err := rack.SetGPU("esx", "a", "", MixedSize); err != nil {
		t.Fatal(err)
	}
	mustBook(t, rack, vgpus("1", "grid_a100-10c"))
	mustBook(t, rack, vgpus("2", "grid_a100-20c"))
}

func TestMIGAndTimeSlicedDoNotShare(t *testing.T) {
	rack := site(func(m *topology.Model) { m.GPUs[0].Mode = "mig"; m.GPUs = m.GPUs[:1] })
	mustRefuse(t, rack, vgpus("1", "grid_a100-40c"), UnknownProfile)
	mustBook(t, rack, vgpus("2", "grid_a100-3-20c", "grid_a100-3-20c"))
	mustRefuse(t, rack, vgpus("3", "grid_a100-2-10c"), NoGraphics)
}

func TestGPUNotSharedDirectIsRefused(t *testing.T) {
	rack := site(func(m *topology.Model) { m.GraphicsType = "shared" })
	mustRefuse(t, rack, vgpus("1", "grid_a100-40c"), NotSharedDirect)
}

func TestNoVGPUManagerNoProfile(t *testing.T) {
	rack := site(func(m *topology.Model) { m.VGPUManager = "" })
	mustRefuse(t, rack, vgpus("1", "grid_a100-40c"), UnknownProfile)
}

func TestMemoryReservations(t *testing.T) {
	rack := site(nil)
	mustRefuse(t, rack, Request{VM: "1", ReservedMiB: 513 << 10}, MemoryTooLarge)
	mustBook(t, rack, Request{VM: "2", ReservedMiB: 500 << 10})
	mustRefuse(t, rack, Request{VM: "3", ReservedMiB: 13 << 10}, NoMemory)
	mustBook(t, rack, Request{VM: "3", ReservedMiB: 12 << 10})
}

func TestFixedFunction(t *testing.T) {
	rack := site(func(m *topology.Model) { m.GPUs[0].Passthrough = true })
	whole := func(vm, address string) Request {
		return Request{VM: vm, Devices: []Device{{Key: 13000, Kind: Fixed, Address: address}}}
	}
	mustRefuse(t, rack, whole("1", "b"), NotPassthrough)
	mustRefuse(t, rack, whole("1", "nowhere"), NoFunction)
	mustBook(t, rack, whole("1", "a"))
	mustRefuse(t, rack, whole("2", "a"), FunctionInUse)
}

func TestDynamicTakesAMatchingLabelledFunction(t *testing.T) {
	rack := site(func(m *topology.Model) {
		m.GPUs[0].Passthrough, m.GPUs[1].Passthrough, m.GPUs[1].Label = true, true, "blue"
	})
	any := Request{VM: "1", Devices: []Device{{Kind: Dynamic, Allowed: []PCIID{{Vendor: 0x10de, Device: 0x20f1}}, Label: "blue"}}}
	if got := mustBook(t, rack, any); got[0].Address != "b" {
		t.Errorf("got %s, want the function labelled blue", got[0].Address)
	}
	any.VM = "2"
	mustRefuse(t, rack, any, FunctionInUse)
}

func TestVirtualFunctionsRunOut(t *testing.T) {
	rack := site(nil)
	request := Request{VM: "1", Devices: []Device{{Key: 1, Kind: SRIOVNIC}, {Key: 2, Kind: SRIOVNIC}}}
	got := mustBook(t, rack, request)
	if got[0].Address != "0000:3d:00.1" || got[1].Address != "0000:3d:00.2" {
		t.Errorf("got %v", got)
	}
	mustRefuse(t, rack, Request{VM: "2", Devices: []Device{{Key: 1, Kind: SRIOVNIC}}}, NoVirtualFunction)
}

const pair = "Nvidia:1@grid_a100-40c:1@NVIDIA-ConnectX-6-Dx-NIC%SameSwitch"

func TestGroupTakesGPUAndVirtualFunction(t *testing.T) {
	rack := site(nil)
	request := func(vm string) Request {
		return Request{VM: vm, Groups: map[int32]string{1: pair}, Devices: []Device{
			{Key: 13000, Kind: VGPU, Profile: "grid_a100-40c", Group: 1}, {Key: 13001, Kind: SRIOVNIC, Group: 1},
		}}
	}
	got := mustBook(t, rack, request("1"))
	if len(got) != 2 || got[0].Address != "a" || got[1].Key != 13001 || got[1].Address != "0000:3d:00.1" {
		t.Errorf("got %+v", got)
	}
	mustBook(t, rack, request("2"))
	mustRefuse(t, rack, request("3"), NoGroup)
	mustRefuse(t, rack, Request{VM: "4", Groups: map[int32]string{1: "Nvidia:9@x%NVLink"}}, UnknownGroup)
}

func TestGroupsNeedASwitchAndVSphere8(t *testing.T) {
	if groups := site(func(m *topology.Model) { m.Bridges[1].Parent = "" }).Groups("esx"); len(groups) != 0 {
		t.Errorf("a root port made groups: %v", groups)
	}
	off := false
	if groups := site(func(m *topology.Model) { m.DeviceGroups = &off }).Groups("esx"); len(groups) != 0 {
		t.Errorf("groups though switched off: %v", groups)
	}
	if groups := site(nil).Groups("esx"); len(groups) != 1 || groups[0].Name != pair {
		t.Errorf("got %v", groups)
	}
}

func TestNVLinkGroupTakesBothGPUs(t *testing.T) {
	rack := site(func(m *topology.Model) { m.NVLinks = []topology.NVLink{{GPUs: []string{"a", "b"}}} })
	request := Request{VM: "1", Groups: map[int32]string{1: "Nvidia:2@grid_a100-40c%NVLink"}}
	if got := mustBook(t, rack, request); len(got) != 2 {
		t.Errorf("got %v", got)
	}
	mustRefuse(t, rack, vgpus("2", "grid_a100-4c"), NoGraphics)
}

func TestKernelAndPassthroughComeWithTheReboot(t *testing.T) {
	rack := site(func(m *topology.Model) { m.ESXiVersion = "7.0.2" })
	if !rack.SetKernel("esx", "atsSupport", true) || rack.SetKernel("esx", "noSuch", true) {
		t.Fatal("SetKernel misjudged what exists")
	}
	_ = rack.SetPassthrough("esx", "a", true, false, nil)
	_ = rack.SetSRIOV("esx", "0000:3d:00.0", true, 8, false)
	before, _ := rack.Host("esx")
	rack.Reboot("esx")
	after, _ := rack.Host("esx")
	if before.Kernel["atsSupport"].Runtime || !after.Kernel["atsSupport"].Runtime {
		t.Error("the kernel option did not wait for the reboot")
	}
	if before.GPUs[0].Passthrough.Active || !after.GPUs[0].Passthrough.Active {
		t.Error("passthrough did not wait for the reboot")
	}
	if before.NICs[0].SRIOV.Active != 2 || after.NICs[0].SRIOV.Active != 8 {
		t.Error("virtual functions did not wait for the reboot")
	}
}

func TestOldESXiHasNoATSOption(t *testing.T) {
	if site(func(m *topology.Model) { m.ESXiVersion = "7.0.1" }).SetKernel("esx", "atsSupport", true) {
		t.Error("7.0 U1 has atsSupport")
	}
}

func TestAddressesOfVirtualFunctionsCrossDevices(t *testing.T) {
	for steps, want := range map[int]string{1: "0000:3d:00.1", 7: "0000:3d:00.7", 8: "0000:3d:01.0"} {
		if got := after("0000:3d:00.0", steps); got != want {
			t.Errorf("%d behind: %s, want %s", steps, got, want)
		}
	}
}

func TestConcurrentBookingsNeverOverbook(t *testing.T) {
	rack := site(nil)
	var wait sync.WaitGroup
	var mu sync.Mutex
	booked := 0
	for i := range 40 {
		wait.Go(func() {
			if _, refusal := rack.Book("esx", vgpus(fmt.Sprint(i), "grid_a100-20c")); refusal == nil {
				mu.Lock()
				booked++
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if booked != 4 {
		t.Errorf("%d vGPUs of half a GPU on two GPUs", booked)
	}
}

func TestFitNamesEveryHostsReason(t *testing.T) {
	rack := site(nil)
	if host, _ := rack.Fit([]string{"esx"}, vgpus("1", "grid_a100-40c")); host != "esx" {
		t.Errorf("got %q", host)
	}
	_, refusals := rack.Fit([]string{"esx", "other"}, vgpus("1", "nvidia_h100-80c"))
	if len(refusals) != 2 || refusals[0].Reason != UnknownProfile || refusals[1].Reason != UnknownHost {
		t.Errorf("got %v", refusals)
	}
	view, _ := rack.Host("esx")
	if len(view.Uses) != 0 {
		t.Error("Fit left a booking behind")
	}
}

func TestPortsOfOneCardShareNoAddress(t *testing.T) {
	first, second := &NIC{Address: "0000:3d:00.0", MaxVFs: 8}, &NIC{Address: "0000:3d:00.1", MaxVFs: 8}
	spread([]*NIC{first, second})
	seen := map[string]bool{first.Address: true, second.Address: true}
	for _, nic := range []*NIC{first, second} {
		nic.SRIOV.Active = 8
		for _, address := range nic.VFAddresses() {
			if seen[address] {
				t.Errorf("%s is used twice", address)
			}
			seen[address] = true
		}
	}
	if got := first.VFAddresses()[0]; got != "0000:3d:00.2" {
		t.Errorf("the first virtual function is %s", got)
	}
}

// Of a GPU for mixed sizes an 8C takes a quarter, as a 10C does: beside two of them there is room for four 4C, not six.
func TestMixedSizesLieAtFixedPlaces(t *testing.T) {
	rack := site(func(m *topology.Model) { m.GPUs = m.GPUs[:1]; m.GPUs[0].VGPUMode = MixedSize })
	for number, profile := range []string{"8c", "8c", "4c", "4c", "4c", "4c"} {
		mustBook(t, rack, vgpus(fmt.Sprint(number), "grid_a100-"+profile))
	}
	mustRefuse(t, rack, vgpus("one more", "grid_a100-4c"), NoGraphics)
}
