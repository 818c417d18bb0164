package rack

import (
	"fmt"
	"sort"
	"strings"

	"vsml.dev/lab/vcenter/catalogue"
	"vsml.dev/lab/vcenter/topology"
)

// Group is a vendor device group that a host offers, by the name vSphere prints.
type Group struct {
	Name        string
	Description string
	Components  []Component
}

// Component is one device of a group.
type Component struct {
	NIC     bool // an SR-IOV virtual function; otherwise a vGPU
	Board   catalogue.Board
	Profile string // of a vGPU
}

// instance is one place on a host where a group can be had: these GPUs, and this adapter if there is one.
type instance struct {
	group Group
	gpus  []*GPU
	nic   *NIC
}

// findGroups lists all instances. vSphere groups only devices that share a PCIe switch or an NVLink, and knows
// vendor device groups from API 8.0.0.1 on.
//
// Names follow the ones vSphere prints for A100 and H100; the grammar is inferred from those.
func (h *host) findGroups() []instance {
	if !h.offersGroups() {
		return nil
	}
	return append(h.nvlinkGroups(), h.switchGroups()...)
}

func (h *host) offersGroups() bool {
	if h.model.DeviceGroups != nil {
		return *h.model.DeviceGroups
	}
	return h.api.atLeast(version{8, 0, 0, 1})
}

func (h *host) switchGroups() []instance {
	var found []instance
	for _, gpu := range h.gpus {
		for _, nic := range h.nics {
			full, ok := gpu.Board.FullProfile()
			if !ok || nic.Parent != gpu.Parent || !h.isSwitch(gpu.Parent) {
				continue
			}
			name := fmt.Sprintf("Nvidia:1@%s:1@%s%%SameSwitch", full.Name, nic.Board.GroupName)
			group := Group{name, "vGPU and adapter on one PCIe switch", []Component{
				{Board: gpu.Board, Profile: full.Name}, {NIC: true, Board: nic.Board},
			}}
			found = append(found, instance{group, []*GPU{gpu}, nic})
		}
	}
	return found
}

// isSwitch tells a PCIe switch, which hangs below a root port, from a root port.
func (h *host) isSwitch(address string) bool {
	for _, bridge := range h.model.Bridges {
		if bridge.Address == address {
			return bridge.Parent != ""
		}
	}
	return false
}

func (h *host) nvlinkGroups() []instance {
	var found []instance
	for _, link := range h.model.NVLinks {
		if link.Switch && !h.programsSwitch(link) {
			continue
		}
		for _, size := range groupSizes(link) {
			for begin := 0; begin+size <= len(link.GPUs); begin += size {
				if one, ok := h.nvlinkGroup(link.GPUs[begin : begin+size]); ok {
					found = append(found, one)
				}
			}
		}
	}
	return found
}

// programsSwitch tells whether this ESXi joins GPUs by their NVSwitch: those of Ampere from 8.0 U1 on, those of Hopper
// from 8.0 U2 on. Source: NVIDIA AI Enterprise 8.0, page on NVSwitch.
func (h *host) programsSwitch(link topology.NVLink) bool {
	first := h.gpu(link.GPUs[0])
	switch {
	case first == nil:
		return false
	case strings.HasPrefix(first.Board.Name, "H"):
		return parseVersion(h.model.ESXiVersion).atLeast(version{8, 0, 2})
	}
	return parseVersion(h.model.ESXiVersion).atLeast(version{8, 0, 1})
}

// groupSizes: a bridge joins a pair; an NVSwitch system is cut into 2, 4 or 8 GPUs.
func groupSizes(link topology.NVLink) []int {
	if link.Switch {
		return []int{2, 4, 8}
	}
	return []int{2}
}

func (h *host) nvlinkGroup(addresses []string) (instance, bool) {
	var one instance
	for _, address := range addresses {
		gpu := h.gpu(address)
		if gpu == nil {
			return instance{}, false
		}
		full, ok := gpu.Board.FullProfile()
		if !ok {
			return instance{}, false
		}
		one.gpus = append(one.gpus, gpu)
		one.group.Components = append(one.group.Components, Component{Board: gpu.Board, Profile: full.Name})
	}
	one.group.Name = fmt.Sprintf("Nvidia:%d@%s%%NVLink", len(addresses), one.group.Components[0].Profile)
	one.group.Description = fmt.Sprintf("%d vGPUs joined by NVLink", len(addresses))
	return one, true
}

// Groups are the device groups the host offers, one entry a name.
func (r *Rack) Groups(hostName string) []Group {
	var groups []Group
	_ = r.with(hostName, func(h *host) error {
		seen := map[string]bool{}
		for _, instance := range h.groups {
			if !seen[instance.group.Name] {
				seen[instance.group.Name] = true
				groups = append(groups, instance.group)
			}
		}
		return nil
	})
	sort.Slice(groups, func(i, j int) bool { return groups[i].Name < groups[j].Name })
	return groups
}

// GroupNamed is the group of that name, if any host of the list offers it.
func (r *Rack) GroupNamed(name string, hosts []string) (Group, bool) {
	for _, host := range hosts {
		for _, group := range r.Groups(host) {
			if group.Name == name {
				return group, true
			}
		}
	}
	return Group{}, false
}
