package server

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/catalogue"
	"vsml.dev/lab/vcenter/rack"
)

// graphicsManager is a host's HostGraphicsManager.
type graphicsManager struct {
	mo.HostGraphicsManager
	lab *Lab
	esx *esx
}

// newGraphicsManager is the manager of a host; refresh gives it its properties.
func newGraphicsManager(lab *Lab, owner *esx) *graphicsManager {
	return &graphicsManager{lab: lab, esx: owner}
}

// IsSharedGraphicsActive tells whether the host's default is one of the shared kinds.
func (g *graphicsManager) IsSharedGraphicsActive(*simulator.Context, *types.IsSharedGraphicsActive) soap.HasFault {
	active := len(g.lab.view(g.esx).GPUs) > 0
	return &methods.IsSharedGraphicsActiveBody{Res: &types.IsSharedGraphicsActiveResponse{Returnval: active}}
}

// RefreshGraphicsManager has nothing to find: the lab's cards never change places.
func (g *graphicsManager) RefreshGraphicsManager(*simulator.Context, *types.RefreshGraphicsManager) soap.HasFault {
	return &methods.RefreshGraphicsManagerBody{Res: &types.RefreshGraphicsManagerResponse{}}
}

// RetrieveVgpuDeviceInfo lists the kinds of card that offer vGPUs.
func (g *graphicsManager) RetrieveVgpuDeviceInfo(*simulator.Context, *types.RetrieveVgpuDeviceInfo) soap.HasFault {
	return &methods.RetrieveVgpuDeviceInfoBody{
		Res: &types.RetrieveVgpuDeviceInfoResponse{Returnval: vgpuDevices(g.lab.view(g.esx))},
	}
}

// RetrieveVgpuProfileInfo lists the profiles of the host's cards.
func (g *graphicsManager) RetrieveVgpuProfileInfo(*simulator.Context, *types.RetrieveVgpuProfileInfo) soap.HasFault {
	return &methods.RetrieveVgpuProfileInfoBody{
		Res: &types.RetrieveVgpuProfileInfoResponse{Returnval: vgpuProfiles(g.lab.Rack.Profiles(g.esx.name))},
	}
}

func profileNames(profiles []catalogue.Profile) []string {
	var names []string
	for _, profile := range profiles {
		names = append(names, profile.Name)
	}
	slices.Sort(names)
	return names
}

func sharedCapabilities(profiles []catalogue.Profile) []types.HostSharedGpuCapabilities {
	var capabilities []types.HostSharedGpuCapabilities
	for _, name := range profileNames(profiles) {
		capabilities = append(capabilities, types.HostSharedGpuCapabilities{
			Vgpu: name, SuspendSupported: true, MigrateSupported: true,
		})
	}
	return capabilities
}

// graphicsInfo is one line per card, with the VMs on it.
func graphicsInfo(view rack.View, api string) []types.HostGraphicsInfo {
	var cards []types.HostGraphicsInfo
	for _, gpu := range view.GPUs {
		if gpu.Passthrough.Active {
			continue // a card passed through is none of the host's graphics devices
		}
		cards = append(cards, types.HostGraphicsInfo{
			DeviceName: boardLabel(gpu.Board), VendorName: gpu.Board.VendorName(), PciId: gpu.Address,
			GraphicsType: gpu.GraphicsType, VgpuMode: vgpuMode(gpu, api),
			MemorySizeInKB: int64(gpu.Board.MemoryMiB) * 1024, Vm: references(view.VMs(gpu.Address)),
		})
	}
	return cards
}

// references are the VMs of those managed object ids.
func references(ids []string) []types.ManagedObjectReference {
	var machines []types.ManagedObjectReference
	for _, id := range ids {
		machines = append(machines, types.ManagedObjectReference{Type: "VirtualMachine", Value: id})
	}
	return machines
}

func graphicsConfig(view rack.View, api string) *types.HostGraphicsConfig {
	config := &types.HostGraphicsConfig{HostDefaultGraphicsType: view.GraphicsType, SharedPassthruAssignmentPolicy: view.Policy}
	for _, gpu := range view.GPUs {
		mode := vgpuMode(gpu, api)
		if mode == "multiInstanceGpu" {
			mode = "" // a value of the read-out only; the config knows sameSize and mixedSize
		}
		config.DeviceType = append(config.DeviceType, types.HostGraphicsConfigDeviceType{
			DeviceId: gpu.Address, GraphicsType: gpu.GraphicsNext, VgpuMode: mode,
		})
	}
	return config
}

// vgpuMode exists from API 8.0.3.0 on.
func vgpuMode(gpu rack.GPU, api string) string {
	switch {
	case older(api, "8.0.3.0"):
		return ""
	case gpu.MIG:
		return "multiInstanceGpu"
	}
	return gpu.VGPUMode
}

// vgpuDevices are the kinds of card that can be divided: the host driver is there and they are not passed through.
func vgpuDevices(view rack.View) []types.VirtualMachineVgpuDeviceInfo {
	var devices []types.VirtualMachineVgpuDeviceInfo
	for _, gpu := range view.GPUs {
		name := boardLabel(gpu.Board)
		known := slices.ContainsFunc(devices, func(d types.VirtualMachineVgpuDeviceInfo) bool { return d.DeviceName == name })
		if known || gpu.Passthrough.Active || view.Model.VGPUManager == "" {
			continue
		}
		devices = append(devices, types.VirtualMachineVgpuDeviceInfo{
			VirtualMachineTargetInfo: types.VirtualMachineTargetInfo{Name: name}, DeviceName: name,
			DeviceVendorId: int64(gpu.Board.VendorID), MaxFbSizeInGib: int64(gpu.Board.MemoryMiB / 1024),
			TimeSlicedCapable: true, MigCapable: gpu.Board.MIG, ComputeProfileCapable: true,
		})
	}
	return devices
}

// boardLabel is a card's name for people.
func boardLabel(board catalogue.Board) string { return "NVIDIA " + board.Name }

func vgpuProfiles(profiles []catalogue.Profile) []types.VirtualMachineVgpuProfileInfo {
	var infos []types.VirtualMachineVgpuProfileInfo
	for _, profile := range profiles {
		sharing := "timeSliced"
		if profile.MIG {
			sharing = "mig"
		}
		infos = append(infos, types.VirtualMachineVgpuProfileInfo{
			VirtualMachineTargetInfo: types.VirtualMachineTargetInfo{Name: profile.Name}, ProfileName: profile.Name,
			DeviceVendorId: int64(catalogue.NVIDIA), FbSizeInGib: int64(profile.FramebufferMiB / 1024),
			ProfileSharing: sharing, ProfileClass: "compute",
		})
	}
	return infos
}
