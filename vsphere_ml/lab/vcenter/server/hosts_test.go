package server

import (
	"slices"
	"testing"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

func TestHostShowsItsModelsHardware(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	host := hostProperties(t, login(t, lab), "esx-03.lab.test", "hardware", "config", "summary", "capability")
	if host.Hardware.MemorySize != 1024<<30 || host.Hardware.CpuInfo.NumCpuThreads != 112 || host.Summary.Hardware.NumCpuCores != 56 {
		t.Errorf("memory %d, CPUs %+v", host.Hardware.MemorySize, host.Hardware.CpuInfo)
	}
	node := host.Hardware.NumaInfo.NumaNode[1]
	if node.TypeId != 1 || len(node.CpuID) != 56 || node.CpuID[0] != 56 || node.MemoryRangeBegin != 512<<30 {
		t.Errorf("NUMA node 1 is %+v", node)
	}
	for _, address := range []string{"0000:b3:00.0", "0000:b5:00.0", "0000:b5:01.0"} {
		if !slices.Contains(node.PciId, address) {
			t.Errorf("NUMA node 1 lacks %s: %v", address, node.PciId)
		}
	}
	if host.Config.Product.Version != "8.0.3" || host.Config.Product.Build != "24022510" {
		t.Errorf("product %+v", host.Config.Product)
	}
}

func TestPCIDevicesCarrySignedShortsAndTheirBridge(t *testing.T) {
	host := hostProperties(t, login(t, startLab(t, "quad-8.0u3")), "esx-01.lab.test", "hardware.pciDevice")
	index := slices.IndexFunc(host.Hardware.PciDevice, func(d types.HostPciDevice) bool { return d.Id == "0000:b3:00.0" })
	gpu := host.Hardware.PciDevice[index]
	if gpu.VendorId != 0x10de || gpu.DeviceId != 0x20f1 || gpu.ParentBridge != "0000:b1:00.0" || gpu.Bus != 0xb3 || gpu.ClassId != 0x0302 {
		t.Errorf("GPU is %+v", gpu)
	}
	bridge := host.Hardware.PciDevice[slices.IndexFunc(host.Hardware.PciDevice, func(d types.HostPciDevice) bool { return d.Id == "0000:36:00.0" })]
	if bridge.VendorId != -32634 {
		t.Errorf("0x8086 reads %d", bridge.VendorId)
	}
}

func TestAdaptersShowSRIOVAndRDMA(t *testing.T) {
	host := hostProperties(t, login(t, startLab(t, "quad-8.0u3")), "esx-01.lab.test", "config.pciPassthruInfo", "config.network")
	for _, base := range host.Config.PciPassthruInfo {
		info, ok := base.(*types.HostSriovInfo)
		if ok && (!info.SriovActive || info.NumVirtualFunction != 8 || info.MaxVirtualFunctionSupported != 8) {
			t.Errorf("SR-IOV of %s is %+v", info.Id, info)
		}
	}
	network := host.Config.Network
	if len(network.RdmaDevice) != 2 || network.RdmaDevice[0].Backing.(*types.HostRdmaDevicePnicBacking).PairedUplink != network.Pnic[1].Key {
		t.Errorf("RDMA devices %+v", network.RdmaDevice)
	}
}

func TestATSIsAnOptionFrom70U3On(t *testing.T) {
	has := func(lab *Lab, name string) bool {
		host := hostProperties(t, login(t, lab), name, "config.option")
		return slices.ContainsFunc(host.Config.Option, func(o types.BaseOptionValue) bool {
			return o.GetOptionValue().Key == "VMkernel.Boot.atsSupport"
		})
	}
	if !has(startLab(t, "quad-8.0u3"), "esx-01.lab.test") || has(startLab(t, "seed-7.0u2"), "esx-01.lab.test") {
		t.Error("atsSupport is an advanced option on 8.0.3 and none on 7.0.2")
	}
}

func TestEachHostHasManagersOfItsOwn(t *testing.T) {
	client := login(t, startLab(t, "quad-8.0u3"))
	seen := map[types.ManagedObjectReference]bool{}
	for _, name := range []string{"esx-01.lab.test", "esx-02.lab.test"} {
		managers := hostProperties(t, client, name, "configManager").ConfigManager
		for _, reference := range []*types.ManagedObjectReference{managers.GraphicsManager, managers.PciPassthruSystem, managers.AssignableHardwareManager} {
			if reference == nil || seen[*reference] {
				t.Fatalf("%s: manager %v is missing or shared", name, reference)
			}
			seen[*reference] = true
		}
		var graphics mo.HostGraphicsManager
		if err := client.RetrieveOne(within(t), *managers.GraphicsManager, nil, &graphics); err != nil {
			t.Fatal(err)
		}
		if len(graphics.GraphicsInfo) != 4 || len(graphics.SharedPassthruGpuTypes) != 6 {
			t.Errorf("%s: %d cards, types %v", name, len(graphics.GraphicsInfo), graphics.SharedPassthruGpuTypes)
		}
	}
}

func TestStandingVMHoldsItsGPU(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	client := login(t, lab)
	machine := machineNamed(t, client, "etl-7")
	properties := machineProperties(t, machine, "runtime", "config")
	if properties.Runtime.PowerState != types.VirtualMachinePowerStatePoweredOn || properties.Config.Version != "vmx-20" {
		t.Errorf("etl-7 is %s at %s", properties.Runtime.PowerState, properties.Config.Version)
	}
	host := hostProperties(t, client, "esx-02.lab.test", "config")
	var holders int
	for _, card := range host.Config.GraphicsInfo {
		holders += len(card.Vm)
		if len(card.Vm) > 0 && card.Vm[0] != machine.Reference() {
			t.Errorf("card %s is held by %v", card.PciId, card.Vm)
		}
	}
	if holders != 1 || len(host.Config.AssignableHardwareBinding) != 1 {
		t.Errorf("%d holders, bindings %v", holders, host.Config.AssignableHardwareBinding)
	}
}

func TestDeviceGroupsComeWithVSphere8(t *testing.T) {
	const group = "Nvidia:1@grid_a100-40c:1@NVIDIA-ConnectX-6-Dx-NIC%SameSwitch"
	client := login(t, startLab(t, "quad-8.0u3"))
	manager := *hostProperties(t, client, "esx-01.lab.test", "configManager").ConfigManager.AssignableHardwareManager
	reply, err := methods.RetrieveVendorDeviceGroupInfo(within(t), client, &types.RetrieveVendorDeviceGroupInfo{This: manager})
	if err != nil {
		t.Fatal(err)
	}
	if len(reply.Returnval) != 1 || reply.Returnval[0].DeviceGroupName != group {
		t.Fatalf("groups %+v", reply.Returnval)
	}
	components := reply.Returnval[0].ComponentDeviceInfo
	if components[0].Type != "nvidiaVgpu" || components[1].Type != "sriovNic" {
		t.Errorf("components %+v", components)
	}
	client = login(t, startLab(t, "seed-7.0u2"))
	manager = *hostProperties(t, client, "esx-01.lab.test", "configManager").ConfigManager.AssignableHardwareManager
	if reply, err := methods.RetrieveVendorDeviceGroupInfo(within(t), client, &types.RetrieveVendorDeviceGroupInfo{This: manager}); err == nil && len(reply.Returnval) > 0 {
		t.Errorf("7.0.2 has groups %+v", reply.Returnval)
	}
}

func TestGroupsNICIsPassedThroughWhereSRIOVIsOff(t *testing.T) {
	lab := startLab(t, "quad-8.0u3", func(file *topology.File) {
		for i := range file.Models[0].NICs {
			nic := &file.Models[0].NICs[i]
			nic.SRIOVEnabled, nic.SRIOVActive = false, 0
		}
	})
	groups := lab.deviceGroups(lab.site.hosts["esx-01.lab.test"])
	if groups[0].ComponentDeviceInfo[1].Type != "pciPassthru" {
		t.Errorf("components %+v", groups[0].ComponentDeviceInfo)
	}
}

func TestVGPUModeIsNewIn803(t *testing.T) {
	host := hostProperties(t, login(t, startLab(t, "seed-7.0u2")), "esx-01.lab.test", "config.graphicsInfo")
	if mode := host.Config.GraphicsInfo[0].VgpuMode; mode != "" {
		t.Errorf("7.0.2 shows vgpuMode %q", mode)
	}
	host = hostProperties(t, login(t, startLab(t, "quad-8.0u3")), "esx-01.lab.test", "config.graphicsInfo")
	if mode := host.Config.GraphicsInfo[0].VgpuMode; mode != "sameSize" {
		t.Errorf("8.0.3 shows vgpuMode %q", mode)
	}
}
