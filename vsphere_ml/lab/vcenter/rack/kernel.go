package rack

import (
	"strconv"

	"vsml.dev/lab/vcenter/topology"
)

// Kernel is a boot option of the VMkernel; Configured becomes Runtime at the next boot.
type Kernel struct {
	Name        string
	Description string
	Configured  bool
	Runtime     bool
	Default     bool
	Advanced    bool // shown as the advanced setting VMkernel.Boot.NAME too
}

// firstAdvancedATS is the build of ESXi 7.0 U3d, whose list of advanced settings is the first to hold
// VMkernel.Boot.atsSupport.
const firstAdvancedATS = 19482537

// newKernel has the options that matter to GPUDirect RDMA, by ESXi version.
//
// Source: William Lam's lists of ESXi kernel options by release: atsSupport is absent in 7.0 GA and 7.0 U1, FALSE by
// default in 7.0 U2, TRUE from 7.0 U3d on; 9.0 adds enableACSDTP2P. No list tells of 7.0 U3 before U3d; those builds are
// taken to be as 7.0 U2.
func newKernel(model topology.Model) map[string]Kernel {
	esxi := parseVersion(model.ESXiVersion)
	options := map[string]Kernel{}
	add := func(name, text string, value bool) {
		options[name] = Kernel{Name: name, Description: text, Configured: value, Runtime: value, Default: value}
	}
	add("vtdAtsSupport", "Enable Support for PCIe ATS.", false)
	add("disableACSCheck", "Disable the Access Control Services (ACS) capability check.", false)
	add("enableACSCheckForRP", "Enable the ACS capability check for root ports.", false)
	if esxi.atLeast(version{7, 0, 2}) {
		later := fromU3d(esxi, model.ESXiBuild)
		add("atsSupport", "Enable Support for PCIe ATS.", later)
		option := options["atsSupport"]
		option.Advanced = later
		options["atsSupport"] = option
	}
	if esxi.atLeast(version{9}) {
		add("enableACSDTP2P", "Enable ACS direct translated P2P.", true)
	}
	for name, value := range model.Kernel {
		option := options[name]
		option.Name, option.Configured, option.Runtime = name, value, value
		options[name] = option
	}
	return options
}

func fromU3d(esxi version, build string) bool {
	number, err := strconv.Atoi(build)
	if err != nil || esxi.atLeast(version{8}) {
		return esxi.atLeast(version{7, 0, 3})
	}
	return esxi.atLeast(version{7, 0, 3}) && number >= firstAdvancedATS
}

// SetKernel configures a boot option; false when the host has none of that name.
func (r *Rack) SetKernel(hostName, option string, value bool) bool {
	found := false
	_ = r.with(hostName, func(h *host) error {
		var setting Kernel
		if setting, found = h.kernel[option]; found && !h.fails("kernel-ignores") {
			setting.Configured = value
			h.kernel[option] = setting
		}
		return nil
	})
	return found
}

// Reboot puts in force what was configured: kernel options, passthrough, virtual functions, graphics, MIG. VMs on the host lose
// their bookings, since they end with it.
func (r *Rack) Reboot(hostName string) {
	_ = r.with(hostName, func(h *host) error {
		h.bootKernel()
		h.bootModules()
		h.bootGPUs()
		for _, nic := range h.nics {
			nic.Passthrough.Active = nic.Passthrough.Enabled
			nic.SRIOV.apply()
			nic.bootFirmware(h.fails("firmware-forgets"))
		}
		spread(h.nics)
		h.memory, h.uses = map[string]int64{}, map[string][]Use{}
		return nil
	})
}

func (h *host) bootKernel() {
	if h.fails("kernel-forgets") {
		return
	}
	for name, option := range h.kernel {
		option.Runtime = option.Configured
		h.kernel[name] = option
	}
}

// apply puts the requested virtual functions in force.
func (s *SRIOV) apply() {
	s.Active = 0
	if s.Enabled {
		s.Active = s.Requested
	}
}
