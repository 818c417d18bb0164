package server

import (
	"fmt"
	"strings"

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
	GPUs          []hookGPU          `json:"gpus"`
	NVLinks       int                `json:"nvlinks"` // between any two of the GPUs; 0 when they are not joined
	whole         []string           // the address of each adapter that was handed over whole, "" for others
}

type hookNIC struct {
	MAC     string `json:"mac"` // empty for hardware whose own vCenter does not know
	Network string `json:"network"`
	Kind    string `json:"kind"` // vmxnet3, sriov, passthrough, pvrdma, other
	// What the adapter is customized with: 10.0.0.1/24, or empty for DHCP.
	Address  string   `json:"address,omitempty"`
	Gateways []string `json:"gateways,omitempty"`
}

// hookGPU is a GPU as the guest sees it.
type hookGPU struct {
	Profile string `json:"profile,omitempty"` // of a vGPU; empty when the GPU was handed over whole
	Board   string `json:"board"`             // A100-PCIE-40GB
	ID      string `json:"id"`                // 10de:20f1
	Name    string `json:"name"`              // as lspci prints it
}

// hookTemplate is what the guest's template brings along.
type hookTemplate struct {
	CloudInit      bool     `json:"cloud_init"`
	User           string   `json:"user,omitempty"`
	AuthorizedKeys []string `json:"authorized_keys,omitempty"`
	Image          string   `json:"image,omitempty"` // what its disk holds; empty for a cloud image
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
		var view rack.View
		if host != nil {
			view = l.view(host)
			told.whole = wholeFunctions(l.adaptersOf(machine, view))
		}
		told.UUID = machine.Config.Uuid
		for _, option := range machine.Config.ExtraConfig {
			value := option.GetOptionValue()
			told.ExtraConfig[value.Key] = fmt.Sprint(value.Value)
		}
		told.GPUs = gpusOf(machine, view)
		told.NVLinks = l.joinedBy(machine.Config.DeviceGroups, told.Host)
		told.NICs = adapters(machine.Config.Hardware.Device, func(key int32) bool {
			_, is := view.GPU(machine.Self.Value, key)
			return is
		})
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

// adapters are those of the devices; isGPU tells by its key what a device that was handed over whole is not.
func adapters(devices []types.BaseVirtualDevice, isGPU func(int32) bool) []hookNIC {
	var found []hookNIC
	for _, device := range devices {
		card, ok := device.(types.BaseVirtualEthernetCard)
		if !ok {
			if handedOver(device) && !isGPU(device.GetVirtualDevice().Key) {
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

// gpusOf are the GPUs that the VM has of its host, in the order of its devices.
func gpusOf(machine *simulator.VirtualMachine, view rack.View) []hookGPU {
	var found []hookGPU
	for _, device := range machine.Config.Hardware.Device {
		gpu, ok := view.GPU(machine.Self.Value, device.GetVirtualDevice().Key)
		if !ok {
			continue
		}
		found = append(found, hookGPU{
			Profile: vgpuOf(device), Board: gpu.Board.Name, Name: gpu.Board.DeviceName,
			ID: fmt.Sprintf("%04x:%04x", gpu.Board.VendorID, gpu.Board.DeviceID),
		})
	}
	return found
}

// joinedBy is the number of NVLinks between the GPUs of a device group; GPUs outside one are not joined.
func (l *Lab) joinedBy(groups *types.VirtualMachineVirtualDeviceGroups, host string) int {
	for _, name := range groupNames(groups) {
		if group, known := l.Rack.GroupNamed(name, []string{host}); known && strings.HasSuffix(name, "%NVLink") {
			return group.Components[0].Board.NVLinks()
		}
	}
	return 0
}

func adapterKind(device types.BaseVirtualDevice) string {
	switch device.(type) {
	case *types.VirtualVmxnet3Vrdma:
		return "pvrdma"
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
