package server

import (
	"fmt"
	"reflect"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// Device keys as vCenter gives them, all on PCI controller 100: network adapters from 4000 up, PCI devices from 13000
// up, and SR-IOV adapters from 13031 down, whatever key and unit number the client chose for them. Source: vm-operator
// (github.com/vmware-tanzu/vm-operator), "NIC unit numbers", experiment 14, run on ESXi 8.0.3.
const (
	pciDeviceKey     = 13000
	lastPCIDeviceKey = 13031
	networkKey       = 4000
	firstNetworkUnit = 7
	pciController    = 100
)

// dress gives the spec's new devices the keys, labels and addresses that vCenter would give; the simulator has others.
func (l *Lab) dress(devices object.VirtualDeviceList, spec *types.VirtualMachineConfigSpec) {
	taken := map[int32]bool{}
	for _, device := range devices {
		taken[device.GetVirtualDevice().Key] = true
	}
	for _, change := range spec.DeviceChange {
		device := change.GetVirtualDeviceConfigSpec()
		if device.Operation != types.VirtualDeviceConfigSpecOperationAdd {
			continue
		}
		switch added := device.Device.(type) {
		case *types.VirtualPCIPassthrough:
			number := number(&added.VirtualDevice, pciDeviceKey, taken)
			labelled(&added.VirtualDevice, fmt.Sprintf("PCI device %d", number), pciSummary(added))
			added.UnitNumber = pciUnit(added.Key)
		case *types.VirtualSriovEthernetCard:
			numberFunction(&added.VirtualDevice, taken)
			labelled(&added.VirtualDevice, fmt.Sprintf("SR-IOV network adapter %d", lastPCIDeviceKey-added.Key+1), "")
			l.addressCard(&added.VirtualEthernetCard)
		case types.BaseVirtualEthernetCard:
			card := added.GetVirtualEthernetCard()
			number := number(&card.VirtualDevice, networkKey, taken)
			labelled(&card.VirtualDevice, fmt.Sprintf("Network adapter %d", number+1), "")
			// The simulator counts units to 30 when it looks for a free one, and PCI devices have higher ones.
			if card.UnitNumber == nil {
				card.UnitNumber = types.NewInt32(firstNetworkUnit + number)
			}
			l.addressCard(card)
		}
	}
}

// number takes the first free key from base on, unless the client has chosen one, and says which it is of its kind.
func number(device *types.VirtualDevice, base int32, taken map[int32]bool) int32 {
	if device.Key <= 0 {
		device.Key = base
		for taken[device.Key] {
			device.Key++
		}
	}
	taken[device.Key] = true
	if device.ControllerKey <= 0 {
		device.ControllerKey = pciController
	}
	return max(0, device.Key-base)
}

// numberFunction takes the highest free key for an SR-IOV adapter.
func numberFunction(device *types.VirtualDevice, taken map[int32]bool) {
	device.Key, device.ControllerKey = lastPCIDeviceKey, pciController
	for taken[device.Key] && device.Key > pciDeviceKey {
		device.Key--
	}
	taken[device.Key] = true
	device.UnitNumber = pciUnit(device.Key)
}

// pciUnit is the unit number that goes with a PCI device's key: 18 to 21 for the first four, then from 38 on. By the
// same source; nil for a key that is not one of these.
func pciUnit(key int32) *int32 {
	index := key - pciDeviceKey
	switch {
	case index < 0 || key > lastPCIDeviceKey:
		return nil
	case index < 4:
		return types.NewInt32(18 + index)
	}
	return types.NewInt32(34 + index)
}

func labelled(device *types.VirtualDevice, label, summary string) {
	if device.DeviceInfo == nil {
		device.DeviceInfo = &types.Description{Label: label, Summary: summary}
	}
}

func pciSummary(device *types.VirtualPCIPassthrough) string {
	if profile := vgpuOf(device); profile != "" {
		return "NVIDIA GRID vGPU " + profile
	}
	return "PCI passthrough device"
}

// addressCard gives the card a MAC address of its own, unless the client has written one.
func (l *Lab) addressCard(card *types.VirtualEthernetCard) {
	if card.MacAddress != "" {
		return
	}
	card.MacAddress = l.nextMAC()
	if card.AddressType == "" {
		card.AddressType = string(types.VirtualEthernetCardMacTypeAssigned)
	}
}

// blended is what a spec means by an object it fills in part: the rest stays as it was. The simulator would take the
// part for the whole.
func blended[T any](before, change *T) *T {
	if change == nil || before == nil {
		return change
	}
	whole := *before
	target, source := reflect.ValueOf(&whole).Elem(), reflect.ValueOf(change).Elem()
	for i := range source.NumField() {
		if !source.Field(i).IsZero() {
			target.Field(i).Set(source.Field(i))
		}
	}
	return &whole
}

// blend completes the spec's part objects from the configuration.
func blend(config *types.VirtualMachineConfigInfo, spec *types.VirtualMachineConfigSpec) {
	spec.Flags = blended(&config.Flags, spec.Flags)
	spec.BootOptions = blended(config.BootOptions, spec.BootOptions)
	spec.CpuAllocation = blended(config.CpuAllocation, spec.CpuAllocation)
	spec.MemoryAllocation = blended(config.MemoryAllocation, spec.MemoryAllocation)
	spec.Tools = blended(config.Tools, spec.Tools)
}

// keep stores what the simulator drops of a spec; take the VM's lock.
func (l *Lab) keep(ctx *simulator.Context, machine *simulator.VirtualMachine, spec *types.VirtualMachineConfigSpec, extra []types.BaseOptionValue) {
	config := machine.Config
	keepTopology(config, spec, apiVersion(l.File))
	if spec.SwapPlacement != "" {
		config.SwapPlacement = spec.SwapPlacement
	}
	if spec.Tools != nil {
		config.Tools = blended(config.Tools, spec.Tools)
	}
	if spec.MaxMksConnections != 0 {
		config.MaxMksConnections = spec.MaxMksConnections
	}
	for change, stored := range map[*bool]**bool{spec.SevEnabled: &config.SevEnabled, spec.VPMCEnabled: &config.VPMCEnabled} {
		if change != nil {
			*stored = change
		}
	}
	reserve(config)
	config.ExtraConfig = mergeExtraConfig(config.ExtraConfig, extra)
	ctx.Update(machine, []types.PropertyChange{
		{Name: "config.extraConfig", Val: config.ExtraConfig},
		{Name: "config.hardware.device", Val: config.Hardware.Device},
		{Name: "summary.config.memoryReservation", Val: machine.Summary.Config.MemoryReservation},
	})
}

// keepTopology stores what came with vSphere 8, on servers new enough to know it.
func keepTopology(config *types.VirtualMachineConfigInfo, spec *types.VirtualMachineConfigSpec, api string) {
	if older(api, "8.0.0.1") {
		return
	}
	if spec.DeviceGroups != nil {
		config.DeviceGroups = spec.DeviceGroups
	}
	if numa := spec.VirtualNuma; numa != nil {
		config.NumaInfo = &types.VirtualMachineVirtualNumaInfo{
			CoresPerNumaNode: numa.CoresPerNumaNode, AutoCoresPerNumaNode: types.NewBool(numa.CoresPerNumaNode == nil),
			VnumaOnCpuHotaddExposed: numa.ExposeVnumaOnCpuHotadd,
		}
	}
	if spec.SimultaneousThreads != 0 {
		config.Hardware.SimultaneousThreads = spec.SimultaneousThreads
	}
	if spec.MotherboardLayout != "" {
		config.Hardware.MotherboardLayout = spec.MotherboardLayout
	}
	if spec.FixedPassthruHotPlugEnabled != nil && !older(api, "8.0.1.0") {
		config.FixedPassthruHotPlugEnabled = spec.FixedPassthruHotPlugEnabled
	}
}

// reserve follows the memory's size with its reservation when the two are locked together.
func reserve(config *types.VirtualMachineConfigInfo) {
	if !isTrue(config.MemoryReservationLockedToMax) {
		return
	}
	allocation := types.ResourceAllocationInfo{}
	if config.MemoryAllocation != nil {
		allocation = *config.MemoryAllocation
	}
	allocation.Reservation = types.NewInt64(int64(config.Hardware.MemoryMB))
	config.MemoryAllocation = &allocation
}
