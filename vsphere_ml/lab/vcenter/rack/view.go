package rack

import (
	"slices"
	"sort"

	"vsml.dev/lab/vcenter/topology"
)

// View is a host as it is now; changing it changes nothing.
type View struct {
	Name         string
	Model        topology.Model
	GraphicsType string // the host's default
	Policy       string
	GPUs         []GPU
	NICs         []NIC
	Kernel       map[string]Kernel
	Modules      map[string]Module
	Faults       []string
	Uses         map[string][]Use // by PCI address
	MemoryMiB    int64
	ReservedMiB  int64
}

// Host is the host as it is now.
func (r *Rack) Host(name string) (View, bool) {
	var view View
	err := r.with(name, func(h *host) error {
		view = h.view()
		return nil
	})
	return view, err == nil
}

func (h *host) view() View {
	view := View{
		Name: h.name, Model: h.model, GraphicsType: h.graphics, Policy: h.policy, Kernel: map[string]Kernel{},
		Modules: h.shownModules(),
		Faults:  slices.Clone(h.faults), Uses: map[string][]Use{}, MemoryMiB: h.memoryMiB(), ReservedMiB: h.reservedMiB(),
	}
	for _, gpu := range h.gpus {
		view.GPUs = append(view.GPUs, *gpu)
	}
	for _, nic := range h.nics {
		copied := *nic
		copied.Firmware = slices.Clone(nic.Firmware)
		view.NICs = append(view.NICs, copied)
	}
	for name, option := range h.kernel {
		view.Kernel[name] = option
	}
	for address, uses := range h.uses {
		view.Uses[address] = append([]Use(nil), uses...)
	}
	return view
}

// VMs are those that use the function, each once.
func (v View) VMs(address string) []string {
	var vms []string
	seen := map[string]bool{}
	for _, use := range v.Uses[address] {
		if !seen[use.VM] {
			seen[use.VM] = true
			vms = append(vms, use.VM)
		}
	}
	sort.Strings(vms)
	return vms
}

// Booked is what the VM holds on that host.
func (v View) Booked(vm string) []Assignment {
	var booked []Assignment
	for address, uses := range v.Uses {
		for _, use := range uses {
			if use.VM == vm {
				booked = append(booked, Assignment{Host: v.Name, VM: vm, Key: use.Key, Address: address, Profile: use.Profile})
			}
		}
	}
	sort.Slice(booked, func(i, j int) bool { return booked[i].Address < booked[j].Address })
	return booked
}
