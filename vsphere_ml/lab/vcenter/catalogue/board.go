// Package catalogue lists the boards a lab host can hold and the vGPU profiles each offers.
// It knows data sheets only: no host, no booking, no simulator.
package catalogue

import "strings"

// Kind tells a GPU from a network adapter.
type Kind int

// The kinds of board.
const (
	GPU Kind = iota
	NIC
)

// PCI vendor identifiers (pci.ids).
const (
	NVIDIA   uint16 = 0x10de
	Mellanox uint16 = 0x15b3
)

// Board is one model of GPU or adapter, as its PCI function shows itself.
type Board struct {
	Name        string
	VendorID    uint16
	DeviceID    uint16
	SubVendorID uint16
	SubDeviceID uint16
	DeviceName  string
	MemoryMiB   int
	Kind        Kind
	NVLink      bool
	MIG         bool
	SRIOV       bool
	Profiles    []Profile
	// MMIOGiB is the 64-bit MMIO space a VM needs for one such GPU.
	MMIOGiB int
	// VFDeviceID is the device id of an adapter's virtual functions.
	VFDeviceID uint16
	// GroupName is how vendor device group names spell an adapter.
	GroupName string
}

// Profile is one vGPU type of a board, under vSphere's name for it.
type Profile struct {
	Name            string // grid_a100-40c
	FramebufferMiB  int
	MaxSameSize     int // vGPUs of this type on one GPU in sameSize mode
	MaxMixedSize    int // the same in mixedSize mode; 0 when the type cannot be mixed
	MIG             bool
	Slices          int // MIG compute slices of the GPU instance, of 7 (A30, RTX PRO 6000: of 4)
	FullFramebuffer bool
	MinAPI          string // the first API version that offers it; "" for all
}

// VendorName is the vendor as vSphere prints it.
func (b Board) VendorName() string {
	if b.VendorID == Mellanox {
		return "Mellanox Technologies"
	}
	return "NVIDIA Corporation"
}

// MIGSlices is the number of compute slices a GPU in MIG mode divides into.
func (b Board) MIGSlices() int {
	if strings.HasPrefix(b.Name, "A30") || strings.HasPrefix(b.Name, "RTX-PRO-6000") {
		return 4
	}
	return 7
}

// FullProfile is the time-sliced profile that takes the whole framebuffer.
func (b Board) FullProfile() (Profile, bool) {
	for _, profile := range b.Profiles {
		if profile.FullFramebuffer && !profile.MIG {
			return profile, true
		}
	}
	return Profile{}, false
}

// Profile is the board's profile of that name.
func (b Board) Profile(name string) (Profile, bool) {
	for _, profile := range b.Profiles {
		if profile.Name == name {
			return profile, true
		}
	}
	return Profile{}, false
}

// NVLinks is the number of NVLinks of the board, 0 when it has none: 12 of A100 and 18 of H100 (NVIDIA's third and fourth
// generation), 4 of A30 (its data sheet: 200 GB/s by links of 50).
func (b Board) NVLinks() int {
	switch {
	case !b.NVLink:
		return 0
	case strings.HasPrefix(b.Name, "H100"):
		return 18
	case strings.HasPrefix(b.Name, "A30"):
		return 4
	}
	return 12
}

// Find is the board of that catalogue name.
func Find(name string) (Board, bool) {
	for _, board := range boards {
		if board.Name == name {
			return board, true
		}
	}
	return Board{}, false
}

// ProfileNamed is the profile of that vSphere name and the first board that offers it.
func ProfileNamed(name string) (Profile, Board, bool) {
	for _, board := range boards {
		if profile, ok := board.Profile(name); ok {
			return profile, board, true
		}
	}
	return Profile{}, Board{}, false
}

// Names are the catalogue's boards in its own order.
func Names() []string {
	names := make([]string, len(boards))
	for i, board := range boards {
		names[i] = board.Name
	}
	return names
}
