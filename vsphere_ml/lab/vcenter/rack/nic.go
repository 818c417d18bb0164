package rack

import (
	"fmt"
	"strings"

	"vsml.dev/lab/vcenter/catalogue"
	"vsml.dev/lab/vcenter/topology"
)

// NIC is one physical function of an adapter and its virtual functions.
type NIC struct {
	Address     string
	Board       catalogue.Board
	NUMA        int
	Parent      string
	VMNic       string
	MaxVFs      int
	firstVF     int // how many functions after this one its virtual functions begin
	Passthrough Passthrough
	SRIOV       SRIOV
	Firmware    []Setting
}

// SRIOV is a physical function's SR-IOV setting: as configured, and as in force since the last boot.
type SRIOV struct {
	Enabled   bool
	Requested int
	Active    int
}

func newNIC(nic topology.NIC, board catalogue.Board) *NIC {
	return &NIC{
		Address: nic.Address, Board: board, NUMA: nic.NUMA, Parent: nic.Parent, VMNic: nic.VMNic, MaxVFs: nic.VFs,
		Passthrough: Passthrough{nic.Passthrough, nic.Passthrough, nic.Label},
		SRIOV:       SRIOV{nic.SRIOVEnabled, nic.SRIOVActive, nic.SRIOVActive},
		Firmware:    newFirmware(nic),
	}
}

// VFAddresses are the PCI addresses of the virtual functions in force. They follow the physical functions of the card,
// those of the first before those of the second.
func (n NIC) VFAddresses() []string {
	var addresses []string
	for i := range n.SRIOV.Active {
		addresses = append(addresses, after(n.Address, n.firstVF+i))
	}
	return addresses
}

// spread places the virtual functions of every card's ports.
func spread(nics []*NIC) {
	for _, nic := range nics {
		before, ports := 0, 0
		nic.firstVF = 0
		for _, other := range nics {
			if cardOf(other.Address) != cardOf(nic.Address) {
				continue
			}
			ports++
			if other.Address < nic.Address {
				before++
				nic.firstVF += other.MaxVFs
			}
		}
		nic.firstVF += ports - before
	}
}

// cardOf is a function's address without the function.
func cardOf(address string) string {
	card, _, _ := strings.Cut(address, ".")
	return card
}

// after is the address so many functions behind another: 0000:3d:00.7 is followed by 0000:3d:01.0.
func after(address string, steps int) string {
	var domain, bus, device, function int
	if _, err := fmt.Sscanf(address, "%x:%x:%x.%x", &domain, &bus, &device, &function); err != nil {
		return fmt.Sprintf("%s+%d", address, steps)
	}
	flat := bus<<8 + device<<3 + function + steps
	return fmt.Sprintf("%04x:%02x:%02x.%x", domain, flat>>8, flat>>3&0x1f, flat&7)
}

// freeVF is the first unused virtual function, "" when none is left.
func (h *host) freeVF(nic *NIC) string {
	if nic.Passthrough.Active {
		return "" // the physical function itself has left the host
	}
	for _, address := range nic.VFAddresses() {
		if len(h.uses[address]) == 0 {
			return address
		}
	}
	return ""
}
