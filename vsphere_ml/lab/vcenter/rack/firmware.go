package rack

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vsml.dev/lab/vcenter/topology"
)

// What the firmware refuses.
var (
	ErrNoSetting = errors.New("the firmware has no such setting")
	ErrBadValue  = errors.New("the setting takes no such value")
	ErrLocked    = errors.New("the firmware takes no setting")
)

// ATSEnabled is the firmware's setting for Address Translation Services.
const ATSEnabled = "ATS_ENABLED"

// Setting is one setting of an adapter function's firmware, in mlxconfig's spelling of values: False(0), 8.
// Next becomes Current when the host boots.
type Setting struct {
	Name    string
	Default string
	Current string
	Next    string
}

// newFirmware holds a few of the settings that a ConnectX-6 Dx lists, in mlxconfig's order. The defaults are those of a
// printed query of a ConnectX-5 Ex, but for what the topology says.
func newFirmware(nic topology.NIC) []Setting {
	return []Setting{
		{"NUM_OF_VFS", "8", strconv.Itoa(nic.VFs), strconv.Itoa(nic.VFs)},
		// With it off the function shows no SR-IOV capability: NVIDIA's nmlx5 manual, chapter on SR-IOV.
		{"SRIOV_EN", truth(true), truth(nic.VFs > 0), truth(nic.VFs > 0)},
		{"NUM_PF_MSIX", "63", "63", "63"},
		{"NUM_VF_MSIX", "11", "11", "11"},
		{"ROCE_CC_PRIO_MASK_P1", "255", "255", "255"},
		{"KEEP_ETH_LINK_UP_P1", truth(true), truth(true), truth(true)},
		{"PCI_WR_ORDERING", "per_mkey(0)", "per_mkey(0)", "per_mkey(0)"},
		{ATSEnabled, truth(false), truth(nic.ATSEnabled), truth(nic.ATSEnabled)},
		{"EXP_ROM_PXE_ENABLE", truth(true), truth(true), truth(true)},
		{"ADVANCED_PCI_SETTINGS", truth(false), truth(false), truth(false)},
	}
}

func truth(value bool) string {
	if value {
		return "True(1)"
	}
	return "False(0)"
}

// ATS tells whether the firmware in force translates addresses.
func (n NIC) ATS() bool {
	return slices.ContainsFunc(n.Firmware, func(s Setting) bool { return s.Name == ATSEnabled && s.Current == truth(true) })
}

func (n *NIC) bootFirmware(forgets bool) {
	for i := range n.Firmware {
		setting := &n.Firmware[i]
		if forgets {
			setting.Next = setting.Current
		}
		setting.Current = setting.Next
	}
	n.MaxVFs = 0
	if n.current("SRIOV_EN") == truth(true) {
		n.MaxVFs, _ = strconv.Atoi(n.current("NUM_OF_VFS"))
	}
}

// current is what the firmware in force has for a setting.
func (n *NIC) current(name string) string {
	for _, setting := range n.Firmware {
		if setting.Name == name {
			return setting.Current
		}
	}
	return ""
}

// Firmware is what the firmware of a function lists; nothing for an unknown one.
func (v View) Firmware(address string) []Setting {
	for _, nic := range v.NICs {
		if nic.Address == address {
			return slices.DeleteFunc(slices.Clone(nic.Firmware), func(s Setting) bool {
				return s.Name == ATSEnabled && v.Fails("no-ats")
			})
		}
	}
	return nil
}

// SetFirmware gives a setting another value, which counts from the host's next boot.
func (r *Rack) SetFirmware(hostName, address, name, value string) error {
	return r.with(hostName, func(h *host) error {
		nic := h.nic(address)
		if nic == nil {
			return fmt.Errorf("%w: %s", ErrNoFunction, address)
		}
		index := slices.IndexFunc(nic.Firmware, func(s Setting) bool { return s.Name == name })
		if index < 0 || name == ATSEnabled && h.fails("no-ats") {
			return fmt.Errorf("%w: %s", ErrNoSetting, name)
		}
		spelled, err := nic.Firmware[index].spell(value)
		if err != nil {
			return err
		}
		if h.fails("firmware-refuses") {
			return ErrLocked
		}
		nic.Firmware[index].Next = spelled
		return nil
	})
}

// spell turns 1, true or True into True(1) for a setting that is true or false.
func (s Setting) spell(value string) (string, error) {
	if s.Default != truth(true) && s.Default != truth(false) {
		if _, err := strconv.ParseUint(value, 0, 32); err != nil {
			return "", fmt.Errorf("%w: %s=%s", ErrBadValue, s.Name, value)
		}
		return value, nil
	}
	switch strings.ToLower(value) {
	case "1", "true":
		return truth(true), nil
	case "0", "false":
		return truth(false), nil
	}
	return "", fmt.Errorf("%w: %s=%s", ErrBadValue, s.Name, value)
}
