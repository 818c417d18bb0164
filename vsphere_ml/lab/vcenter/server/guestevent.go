package server

import (
	"fmt"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/rack"
)

// powerEvent is what the power hook is told.
type powerEvent struct {
	Event       string            `json:"event"`
	VM          string            `json:"vm"`
	MoID        string            `json:"moid"`
	UUID        string            `json:"uuid"`
	Host        string            `json:"host"`
	ExtraConfig map[string]string `json:"extraConfig"`
	NICs        []hookNIC         `json:"nics"`
	Template    hookTemplate      `json:"template"`
	// Customization is what the guest is to be told now, once.
	Customization *hookCustomization `json:"customization,omitempty"`
	GPUs          []string           `json:"gpus"` // the profile of each vGPU
	whole         []string           // the address of each adapter that was handed over whole, "" for others
}

type hookNIC struct {
	MAC     string `json:"mac"` // empty for hardware whose own vCenter does not know
	Network string `json:"network"`
	Kind    string `json:"kind"` // vmxnet3, sriov, passthrough, other
	// What the adapter is customized with: 10.0.0.1/24, or empty for DHCP.
	Address  string   `json:"address,omitempty"`
	Gateways []string `json:"gateways,omitempty"`
}

// hookTemplate is what the guest's template brings along.
type hookTemplate struct {
	CloudInit      bool     `json:"cloud_init"`
	User           string   `json:"user,omitempty"`
	AuthorizedKeys []string `json:"authorized_keys,omitempty"`
}

type hookCustomization struct {
	Hostname string   `json:"hostname"`
	Domain   string   `json:"domain"`
	DNS      []string `json:"dns,omitempty"`
	Search   []string `json:"search,omitempty"`
}

// hasGuest: a VM with anything that a guest's first boot reads, and one whose template needs nothing to boot.
func (e *powerEvent) hasGuest() bool {
	return e.ExtraConfig["guestinfo.metadata"] != "" || e.ExtraConfig["guestinfo.userdata"] != "" ||
		e.Customization != nil || !e.Template.CloudInit || e.Template.User != ""
}

func (l *Lab) describe(ctx *simulator.Context, machine *simulator.VirtualMachine, event string) powerEvent {
	told := powerEvent{Event: event, MoID: machine.Self.Value, ExtraConfig: map[string]string{}, Template: l.origins.of(machine.Self)}
	ctx.WithLock(machine, func() {
		told.VM = machine.Name
		host := l.esxOf(machine.Runtime.Host)
		if host != nil {
			told.Host = host.name
		}
		if machine.Config == nil {
			return
		}
		if host != nil {
			told.whole = wholeFunctions(l.adaptersOf(machine, l.view(host)))
		}
		told.UUID = machine.Config.Uuid
		for _, option := range machine.Config.ExtraConfig {
			value := option.GetOptionValue()
			told.ExtraConfig[value.Key] = fmt.Sprint(value.Value)
		}
		told.NICs, told.GPUs = adapters(machine.Config.Hardware.Device), profiles(machine.Config.Hardware.Device)
	})
	return told
}

func wholeFunctions(adapters []rack.Adapter) []string {
	addresses := make([]string, len(adapters))
	for i, adapter := range adapters {
		if adapter.Whole {
			addresses[i] = adapter.NIC.Address
		}
	}
	return addresses
}

func adapters(devices []types.BaseVirtualDevice) []hookNIC {
	var found []hookNIC
	for _, device := range devices {
		card, ok := device.(types.BaseVirtualEthernetCard)
		if !ok {
			if handedOver(device) {
				found = append(found, hookNIC{Kind: "passthrough"})
			}
			continue
		}
		nic := hookNIC{MAC: card.GetVirtualEthernetCard().MacAddress, Kind: adapterKind(device)}
		switch backing := card.GetVirtualEthernetCard().Backing.(type) {
		case *types.VirtualEthernetCardDistributedVirtualPortBackingInfo:
			nic.Network = backing.Port.PortgroupKey
		case *types.VirtualEthernetCardNetworkBackingInfo:
			nic.Network = backing.DeviceName
		}
		found = append(found, nic)
	}
	return found
}

// handedOver: a PCI device that is no vGPU. The adapters that hosts hand over whole are fast ones.
func handedOver(device types.BaseVirtualDevice) bool {
	passthrough, ok := device.(*types.VirtualPCIPassthrough)
	if !ok {
		return false
	}
	_, vgpu := passthrough.Backing.(*types.VirtualPCIPassthroughVmiopBackingInfo)
	return !vgpu
}

func profiles(devices []types.BaseVirtualDevice) []string {
	var found []string
	for _, device := range devices {
		if passthrough, ok := device.(*types.VirtualPCIPassthrough); ok {
			if vgpu, ok := passthrough.Backing.(*types.VirtualPCIPassthroughVmiopBackingInfo); ok {
				found = append(found, vgpu.Vgpu)
			}
		}
	}
	return found
}

func adapterKind(device types.BaseVirtualDevice) string {
	switch device.(type) {
	case *types.VirtualVmxnet3:
		return "vmxnet3"
	case *types.VirtualSriovEthernetCard:
		return "sriov"
	}
	return "other"
}

func ethernetCards(devices []types.BaseVirtualDevice) (found []types.BaseVirtualEthernetCard) {
	for _, device := range devices {
		if card, ok := device.(types.BaseVirtualEthernetCard); ok {
			found = append(found, card)
		}
	}
	return found
}
