package server

import (
	"strconv"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/catalogue"
	"vsml.dev/lab/vcenter/rack"
	"vsml.dev/lab/vcenter/topology"
)

// PCI class codes (PCI-SIG): bridge, Ethernet controller, 3D controller.
const (
	classBridge   = 0x0604
	classEthernet = 0x0200
	class3D       = 0x0302
)

const gib = int64(1) << 30

// hardwareInfo is a host's hardware property.
func hardwareInfo(view rack.View) *types.HostHardwareInfo {
	name, model := view.Name, view.Model
	packages, cores, threads := cpuPackages(model)
	return &types.HostHardwareInfo{
		SystemInfo: types.HostSystemInfo{Vendor: model.Vendor, Model: model.Product, Uuid: stableUUID(name), SerialNumber: "VSML-" + strings.ToUpper(strings.SplitN(name, ".", 2)[0])},
		CpuInfo: types.HostCpuInfo{
			NumCpuPackages: int16(len(packages)), NumCpuCores: int16(cores), NumCpuThreads: int16(threads),
			Hz: int64(model.CPUMHz) * 1_000_000,
		},
		CpuPkg:                 packages,
		CpuPowerManagementInfo: &types.HostCpuPowerManagementInfo{CurrentPolicy: "High Performance", HardwareSupport: "ACPI P-states, ACPI C-states"},
		MemorySize:             memory(model),
		NumaInfo:               numaInfo(view),
		SmcPresent:             false,
		PciDevice:              pciDevices(view),
		ReliableMemoryInfo:     &types.HostReliableMemoryInfo{},
		BiosInfo:               &types.HostBIOSInfo{BiosVersion: "1.12.1", Vendor: model.Vendor},
		PersistentMemoryInfo:   &types.HostPersistentMemoryInfo{},
	}
}

func memory(model topology.Model) int64 {
	var total int64
	for _, node := range model.NUMA {
		total += int64(node.MemoryGiB) * gib
	}
	return total
}

func threadsPerCore(model topology.Model) int { return max(model.ThreadsPerCore, 1) }

// cpuPackages takes each NUMA node for a socket.
func cpuPackages(model topology.Model) (packages []types.HostCpuPackage, cores, threads int) {
	for i, node := range model.NUMA {
		count := node.Cores * threadsPerCore(model)
		packages = append(packages, types.HostCpuPackage{
			Index: int16(i), Vendor: model.CPUVendor, Description: model.CPUName,
			Hz: int64(model.CPUMHz) * 1_000_000, BusHz: 100_000_000, ThreadId: threadIDs(threads, count),
		})
		cores += node.Cores
		threads += count
	}
	return packages, cores, threads
}

func threadIDs(first, count int) []int16 {
	ids := make([]int16, count)
	for i := range ids {
		ids[i] = int16(first + i)
	}
	return ids
}

// numaInfo says which CPUs, memory and PCI devices each node has.
func numaInfo(view rack.View) *types.HostNumaInfo {
	model := view.Model
	info := &types.HostNumaInfo{Type: "NUMA", NumNodes: int32(len(model.NUMA))}
	thread, begin := 0, int64(0)
	for _, node := range model.NUMA {
		count, size := node.Cores*threadsPerCore(model), int64(node.MemoryGiB)*gib
		info.NumaNode = append(info.NumaNode, types.HostNumaNode{
			TypeId: byte(node.ID), CpuID: threadIDs(thread, count), MemorySize: size,
			MemoryRangeBegin: begin, MemoryRangeLength: size, PciId: pciIDs(view, node.ID),
		})
		thread += count
		begin += size
	}
	return info
}

func pciIDs(view rack.View, node int) []string {
	var ids []string
	for _, bridge := range view.Model.Bridges {
		if bridge.NUMA == node {
			ids = append(ids, bridge.Address)
		}
	}
	for _, gpu := range view.GPUs {
		if gpu.NUMA == node {
			ids = append(ids, gpu.Address)
		}
	}
	for _, nic := range view.NICs {
		if nic.NUMA == node {
			ids = append(append(ids, nic.Address), nic.VFAddresses()...)
		}
	}
	return ids
}

// pciDevices are bridges, GPUs and adapters, with the virtual functions that are active.
func pciDevices(view rack.View) []types.HostPciDevice {
	var devices []types.HostPciDevice
	for _, bridge := range view.Model.Bridges {
		devices = append(devices, bridgeDevice(bridge))
	}
	for _, gpu := range view.GPUs {
		devices = append(devices, gpuDevice(gpu))
	}
	for _, nic := range view.NICs {
		devices = append(devices, nicDevice(nic))
		for _, address := range nic.VFAddresses() {
			devices = append(devices, vfDevice(nic, address))
		}
	}
	return devices
}

func bridgeDevice(bridge topology.Bridge) types.HostPciDevice {
	device := pciDevice(bridge.Address, bridge.Parent, classBridge)
	device.VendorId, device.VendorName = short(0x8086), "Intel Corporation"
	device.DeviceId, device.DeviceName = short(0x347a), "PCI Express Root Port"
	if strings.Contains(strings.ToLower(bridge.Name), "switch") {
		device.VendorId, device.VendorName = short(0x1000), "Broadcom / LSI"
		device.DeviceId, device.DeviceName = short(0xc010), "PEX880xx PCIe Gen 4 Switch"
	}
	device.DeviceClassName = "PCI bridge"
	return device
}

func gpuDevice(gpu rack.GPU) types.HostPciDevice {
	device := boardDevice(pciDevice(gpu.Address, gpu.Parent, class3D), gpu.Board)
	device.DeviceClassName = "3D controller"
	return device
}

func nicDevice(nic rack.NIC) types.HostPciDevice {
	device := boardDevice(pciDevice(nic.Address, nic.Parent, classEthernet), nic.Board)
	device.DeviceClassName = "Ethernet controller"
	return device
}

func vfDevice(nic rack.NIC, address string) types.HostPciDevice {
	device := boardDevice(pciDevice(address, nic.Parent, classEthernet), nic.Board)
	device.DeviceId, device.DeviceName = short(nic.Board.VFDeviceID), "ConnectX Family mlx5Gen Virtual Function"
	device.DeviceClassName = "Ethernet controller"
	return device
}

func boardDevice(device types.HostPciDevice, board catalogue.Board) types.HostPciDevice {
	device.VendorId, device.DeviceId = short(board.VendorID), short(board.DeviceID)
	device.SubVendorId, device.SubDeviceId = short(board.SubVendorID), short(board.SubDeviceID)
	device.VendorName, device.DeviceName = board.VendorName(), board.DeviceName
	return device
}

func pciDevice(address, parent string, class uint16) types.HostPciDevice {
	bus, slot, function := splitAddress(address)
	return types.HostPciDevice{Id: address, ClassId: short(class), Bus: bus, Slot: slot, Function: function, ParentBridge: parent}
}

// short is the signed 16-bit number by which the vSphere API carries a PCI identifier.
func short(id uint16) int16 { return int16(id) }

// splitAddress reads 0000:3b:00.0; the topology has been checked to be written so.
func splitAddress(address string) (bus, slot, function byte) {
	fields := strings.FieldsFunc(address, func(r rune) bool { return r == ':' || r == '.' })
	if len(fields) != 4 {
		return 0, 0, 0
	}
	number := func(text string) byte {
		value, _ := strconv.ParseUint(text, 16, 8)
		return byte(value)
	}
	return number(fields[1]), number(fields[2]), number(fields[3])
}
