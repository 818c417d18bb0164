package server

import (
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// hardwareOptions are the limits of a virtual machine, in the numbers VMware's configuration maximums give for
// vSphere 8, and how many vGPUs of a type its plugin lets it have.
func hardwareOptions(profiles []string, api string) types.VirtualHardwareOption {
	return types.VirtualHardwareOption{
		VirtualDeviceOption:   []types.BaseVirtualDeviceOption{passthroughOption(profiles, api)},
		NumCPU:                []int32{1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 768},
		NumCoresPerSocket:     types.IntOption{Min: 1, Max: 768, DefaultValue: 1},
		MemoryMB:              types.LongOption{Min: 4, Max: 25165824, DefaultValue: 2048},
		NumPCIControllers:     one(),
		NumIDEControllers:     types.IntOption{Min: 0, Max: 2, DefaultValue: 2},
		NumUSBControllers:     types.IntOption{Max: 1},
		NumUSBXHCIControllers: types.IntOption{Max: 1},
		NumSIOControllers:     one(),
		NumPS2Controllers:     one(),
		ResourceConfigOption: types.ResourceConfigOption{
			CpuAllocationOption:    allocationOption(),
			MemoryAllocationOption: allocationOption(),
		},
	}
}

func passthroughOption(profiles []string, api string) types.BaseVirtualDeviceOption {
	option := &types.VirtualPCIPassthroughOption{VirtualDeviceOption: types.VirtualDeviceOption{Type: "VirtualPCIPassthrough"}}
	for _, profile := range profiles {
		backing := &types.VirtualPCIPassthroughVmiopBackingOption{
			Vgpu:         types.StringOption{DefaultValue: profile},
			MaxInstances: int32(mostVGPUs(api)),
		}
		backing.Type = "VirtualPCIPassthroughVmiopBackingInfo"
		option.BackingOption = append(option.BackingOption, backing)
	}
	return option
}

func one() types.IntOption { return types.IntOption{Min: 1, Max: 1, DefaultValue: 1} }

func allocationOption() types.ResourceAllocationOption {
	return types.ResourceAllocationOption{SharesOption: types.SharesOption{
		SharesOption: types.IntOption{Min: 0, Max: 1000000, DefaultValue: 1000}, DefaultLevel: types.SharesLevelNormal,
	}}
}

// guestDescriptors describe the guests asked for, or all when none of them is known, as the API says.
func guestDescriptors(wanted []string) []types.GuestOsDescriptor {
	var all, matching []types.GuestOsDescriptor
	for _, id := range simulator.GuestID {
		descriptor := guestDescriptor(string(id))
		all = append(all, descriptor)
		for _, name := range wanted {
			if name == string(id) {
				matching = append(matching, descriptor)
			}
		}
	}
	if len(matching) > 0 {
		return matching
	}
	return all
}

func guestDescriptor(id string) types.GuestOsDescriptor {
	return types.GuestOsDescriptor{
		Id: id, Family: guestFamily(id), FullName: guestName(id),
		SupportedMaxCPUs: 768, NumSupportedPhysicalSockets: 128, NumSupportedCoresPerSocket: 256,
		SupportedMinMemMB: 32, SupportedMaxMemMB: 25165824, RecommendedMemMB: 2048, RecommendedColorDepth: 32,
		SupportedDiskControllerList: []string{"ParaVirtualSCSIController", "VirtualAHCIController"},
		RecommendedDiskController:   "ParaVirtualSCSIController", SupportedNumDisks: 256, RecommendedDiskSizeMB: 16384,
		RecommendedCdromController: "VirtualAHCIController",
		SupportedEthernetCard:      []string{"VirtualVmxnet3", "VirtualE1000e", "VirtualSriovEthernetCard", "VirtualVmxnet3Vrdma"},
		RecommendedEthernetCard:    "VirtualVmxnet3", SupportedFirmware: []string{"bios", "efi"}, RecommendedFirmware: "efi",
		SupportLevel: "supported", SupportedForCreate: true, SupportsMemoryHotAdd: true, SupportsCpuHotAdd: true,
		VRAMSizeInKB: types.IntOption{Min: 1024, Max: 131072, DefaultValue: 4096}, SupportsPvscsiControllerForBoot: true,
		SupportsHotPlugPCI: true,
	}
}

func guestFamily(id string) string {
	switch {
	case strings.HasPrefix(id, "win"):
		return string(types.VirtualMachineGuestOsFamilyWindowsGuest)
	case strings.HasPrefix(id, "darwin"):
		return string(types.VirtualMachineGuestOsFamilyDarwinGuestFamily)
	}
	return string(types.VirtualMachineGuestOsFamilyLinuxGuest)
}

// guestNames are the full names of the guests that GPU clusters run; other ids stand for themselves.
var guestNames = map[string]string{
	"ubuntu64Guest":    "Ubuntu Linux (64-bit)",
	"rhel8_64Guest":    "Red Hat Enterprise Linux 8 (64-bit)",
	"rhel9_64Guest":    "Red Hat Enterprise Linux 9 (64-bit)",
	"debian11_64Guest": "Debian GNU/Linux 11 (64-bit)",
	"debian12_64Guest": "Debian GNU/Linux 12 (64-bit)",
	"otherGuest64":     "Other (64-bit)",
}

func guestName(id string) string {
	if name, ok := guestNames[id]; ok {
		return name
	}
	return id
}
