package esxi

import (
	"fmt"
	"strings"

	"vsml.dev/lab/vcenter/rack"
)

// mstDevice is one function under the name that NVIDIA's tools know it by.
type mstDevice struct {
	name string
	nic  rack.NIC
}

// mstDevices are the adapters' functions that the host still has. Names on native ESXi have no /dev/ before them; the
// second function of a card ends in .1 (NVIDIA's MFT manual, "VMware ESXi").
func mstDevices(view rack.View) []mstDevice {
	var devices []mstDevice
	cards := map[string]map[string]int{} // by kind: which card of it
	for _, nic := range view.NICs {
		if nic.Passthrough.Active {
			continue
		}
		kind := fmt.Sprintf("mt%d_pciconf", nic.Board.DeviceID)
		card, function, _ := strings.Cut(nic.Address, ".")
		if cards[kind] == nil {
			cards[kind] = map[string]int{}
		}
		if _, known := cards[kind][card]; !known {
			cards[kind][card] = len(cards[kind])
		}
		name := fmt.Sprintf("%s%d", kind, cards[kind][card])
		if function != "0" {
			name += "." + function
		}
		devices = append(devices, mstDevice{name, nic})
	}
	return devices
}

// kind is the adapter as the tools name it: ConnectX6DX.
func (d mstDevice) kind() string {
	return strings.ReplaceAll(d.nic.Board.Name, "-", "")
}

// mst knows start, stop, restart, status [-v|-vv] and version.
func mst(p *process) error {
	p.standIn()
	verb := strings.Join(p.args[1:], " ")
	switch verb {
	case "start", "restart", "stop":
		return nil // the nmst module is loaded at boot
	case "version":
		version := firmwareToolsVersion(p.host)
		p.printf("mst, mft %s", version)
		return nil
	case "status":
		p.printf("MST devices:\n------------")
		for _, device := range mstDevices(p.host.View()) {
			p.printf("%s", device.name)
		}
		return nil
	case "status -v", "status -vv":
		p.printf("PCI devices:\n------------")
		const row = "%-24s%-30s%-10s%-16s%-26s%s"
		p.printf(row, "DEVICE_TYPE", "MST", "PCI", "RDMA", "NET", "NUMA")
		for _, device := range mstDevices(p.host.View()) {
			p.print(strings.TrimRight(fmt.Sprintf(row, device.kind()+"(rev:0)", device.name,
				strings.TrimPrefix(device.nic.Address, "0000:"), "", "net-"+device.nic.VMNic, ""), " ") + "\n")
		}
		return nil
	}
	return p.fail(1, "-E- Unknown command: %s", verb)
}
