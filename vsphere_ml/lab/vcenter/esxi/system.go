package esxi

import (
	"fmt"
	"strings"
	"time"

	"vsml.dev/lab/vcenter/rack"
)

func hostname(p *process) error {
	p.printf("%s", p.host.View().Name)
	return nil
}

func identity(p *process) error {
	if len(p.args) > 1 && p.args[1] == "-u" {
		p.printf("0")
		return nil
	}
	p.printf("uid=0(root) gid=0(root)")
	return nil
}

func date(p *process) error {
	now := time.Now().UTC()
	if len(p.args) > 1 && p.args[len(p.args)-1] == "+%s" {
		p.printf("%d", now.Unix())
		return nil
	}
	p.printf("%s", now.Format("Mon Jan _2 15:04:05 UTC 2006"))
	return nil
}

func uname(p *process) error {
	version, build := p.host.Product()
	switch strings.Join(p.args[1:], " ") {
	case "":
		p.printf("VMkernel")
	case "-r":
		p.printf("%s", version)
	case "-n":
		p.printf("%s", p.host.View().Name)
	case "-m":
		p.printf("x86_64")
	default:
		p.printf("VMkernel %s %s #1 SMP Release build-%s x86_64 x86_64 x86_64 ESXi", p.host.View().Name, version, build)
	}
	return nil
}

// vmware prints the version; -l adds the release's name.
func vmware(p *process) error {
	version, build := p.host.Product()
	flags := strings.Join(p.args[1:], "")
	if strings.Contains(flags, "v") || flags == "" {
		p.printf("VMware ESXi %s build-%s", version, build)
	}
	if strings.Contains(flags, "l") {
		p.printf("VMware ESXi %s", release(version))
	}
	return nil
}

// release is the version as people call it: 8.0 Update 3 for 8.0.3, 8.0 GA for 8.0.0.
func release(version string) string {
	parts := strings.SplitN(version, ".", 4)
	if len(parts) < 3 || parts[2] == "0" {
		return strings.Join(parts[:min(2, len(parts))], ".") + " GA"
	}
	return fmt.Sprintf("%s.%s Update %s", parts[0], parts[1], parts[2])
}

// lspci prints a line for each function, with the name of its uplink: as ESXi 7 does for a ConnectX-5 in a printed
// output.
func lspci(p *process) error {
	view := p.host.View()
	for _, bridge := range view.Model.Bridges {
		p.printf("%s Bridge: %s", bridge.Address, bridge.Name)
	}
	for _, gpu := range view.GPUs {
		p.printf("%s Display controller: %s %s", gpu.Address, gpu.Board.VendorName(), gpu.Board.DeviceName)
	}
	for _, nic := range view.NICs {
		p.printf("%s Network controller: %s %s%s", nic.Address, nic.Board.VendorName(), nic.Board.DeviceName, uplink(nic))
		for i, address := range nic.VFAddresses() {
			p.printf("%s Network controller: %s ConnectX Family mlx5Gen Virtual Function [PF_%s_VF_%d]",
				address, nic.Board.VendorName(), nic.Address, i)
		}
	}
	return nil
}

// uplink is the function's name on the host; one that is handed over whole has none.
func uplink(nic rack.NIC) string {
	if nic.Passthrough.Active {
		return ""
	}
	return fmt.Sprintf(" [%s]", nic.VMNic)
}

func reboot(p *process) error {
	if err := p.host.Reboot(); err != nil {
		return p.fail(1, "reboot: %v", err)
	}
	return nil
}
