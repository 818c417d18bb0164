package server

import (
	"fmt"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/rack"
)

// What the lab tells a guest of its adapters at power-on, by the VM's extra config; stand-ins in the guest read it.
const (
	// atsKey is "on" when ATS is in force for all of the VM's adapters, "off" when not.
	atsKey = "guestinfo.lab.ats"
	// adaptersKey lists the adapters in the order of the VM's devices, with a semicolon between them: the PCI identifier,
	// and for a function handed over whole its firmware's settings as NAME=DEFAULT,CURRENT,NEXT.
	adaptersKey = "guestinfo.lab.adapters"
	// firmwareKey and an adapter's number is how a guest tells that it changed the firmware: NAME=VALUE.
	firmwareKey = "guestinfo.lab.firmware."
)

// vmKeys are the VM's own half of ATS: the only switches that NVIDIA's and VMware's texts name for peer-to-peer
// transfers in a VM.
var vmKeys = []string{"pciPassthru.allowP2P", "pciPassthru.RelaxACSforP2P"}

// adaptersOf are the VM's adapters on its host; take the VM's lock.
func (l *Lab) adaptersOf(machine *simulator.VirtualMachine, view rack.View) []rack.Adapter {
	var found []rack.Adapter
	for _, device := range machine.Config.Hardware.Device {
		if adapter, ok := view.Adapter(machine.Self.Value, device.GetVirtualDevice().Key); ok {
			found = append(found, adapter)
		}
	}
	return found
}

// showAdapters tells the guest what it will see; take the VM's lock, after its devices were booked.
func (l *Lab) showAdapters(ctx *simulator.Context, machine *simulator.VirtualMachine, host *esx) {
	view := l.view(host)
	adapters := l.adaptersOf(machine, view)
	if len(adapters) == 0 {
		return
	}
	on := wantsATS(machine.Config.ExtraConfig)
	var told []string
	for _, adapter := range adapters {
		on = on && view.TranslatesFor(adapter)
		told = append(told, describeAdapter(view, adapter))
	}
	state := map[bool]string{true: "on", false: "off"}[on]
	merged := mergeExtraConfig(machine.Config.ExtraConfig, []types.BaseOptionValue{
		&types.OptionValue{Key: atsKey, Value: state}, &types.OptionValue{Key: adaptersKey, Value: strings.Join(told, ";")},
	})
	ctx.Map.Update(ctx, machine, []types.PropertyChange{{Name: "config.extraConfig", Val: merged}})
}

func wantsATS(options []types.BaseOptionValue) bool {
	set := map[string]bool{}
	for _, option := range options {
		value := option.GetOptionValue()
		set[value.Key] = strings.EqualFold(fmt.Sprint(value.Value), "true")
	}
	for _, key := range vmKeys {
		if !set[key] {
			return false
		}
	}
	return true
}

func describeAdapter(view rack.View, adapter rack.Adapter) string {
	words := []string{fmt.Sprintf("%04x:%04x", adapter.NIC.Board.VendorID, adapter.DeviceID())}
	if adapter.Whole {
		for _, setting := range view.Firmware(adapter.NIC.Address) {
			words = append(words, fmt.Sprintf("%s=%s,%s,%s", setting.Name, setting.Default, setting.Current, setting.Next))
		}
	}
	return strings.Join(words, " ")
}

// takeFirmware gives the adapters what their guest has set meanwhile. Only a whole function's firmware can be reached
// from a guest.
func (l *Lab) takeFirmware(told powerEvent, guestinfo map[string]string) {
	for number, address := range told.whole {
		for _, change := range strings.Fields(guestinfo[fmt.Sprintf("%s%d", firmwareKey, number)]) {
			if name, value, ok := strings.Cut(change, "="); ok && address != "" {
				_ = l.Rack.SetFirmware(told.Host, address, name, value)
			}
		}
	}
}
