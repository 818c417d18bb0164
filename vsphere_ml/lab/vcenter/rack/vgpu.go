package rack

import (
	"sort"

	"vsml.dev/lab/vcenter/catalogue"
)

func framebuffer(profile string) int {
	found, _, _ := catalogue.ProfileNamed(profile)
	return found.FramebufferMiB
}

// vgpu places a vGPU by the host's assignment policy: performance takes the least loaded GPU, consolidation the
// fullest; among equals the one that the host's tie-break names.
func (b *booking) vgpu(device Device) *Refusal {
	h := b.host
	if !h.knows(device.Profile) {
		return &Refusal{Reason: UnknownProfile, Key: device.Key, Subject: device.Profile}
	}
	for _, gpu := range h.byLoad() {
		if profile, ok := gpu.Board.Profile(device.Profile); ok && gpu.shared() && h.hasRoom(gpu, profile) {
			b.take(device, gpu.Address)
			return nil
		}
	}
	reason := NoGraphics
	if !h.anyShared() {
		reason = NotSharedDirect
	}
	return &Refusal{Reason: reason, Key: device.Key, Subject: device.Profile}
}

func (g *GPU) shared() bool {
	return g.GraphicsType == SharedDirect && !g.Passthrough.Active
}

func (h *host) anyShared() bool {
	for _, gpu := range h.gpus {
		if gpu.GraphicsType == SharedDirect {
			return true
		}
	}
	return len(h.gpus) == 0
}

// hasRoom is NVIDIA's rules for one GPU: MIG and time-sliced vGPUs never together; in sameSize mode one size only.
func (h *host) hasRoom(gpu *GPU, profile catalogue.Profile) bool {
	uses := h.uses[gpu.Address]
	if len(h.wholeUses(gpu.Address)) > 0 || profile.MIG != gpu.MIG {
		return false
	}
	same, megabytes, slices := 1, gpu.takes(profile), profile.Slices
	for _, use := range uses {
		other, _ := gpu.Board.Profile(use.Profile)
		if other.Name == profile.Name {
			same++
		} else if !gpu.MIG && !gpu.mixes() {
			return false
		}
		megabytes += gpu.takes(other)
		slices += other.Slices
	}
	return same <= mostOf(gpu, profile) && megabytes <= gpu.Board.MemoryMiB && slices <= gpu.Board.MIGSlices()
}

// takes is the memory that a vGPU keeps from others, in MiB. In mixed-size mode a GPU is cut at fixed places, so that a
// profile takes its part of as many as the GPU could have of it: an A100-8C, of which there are 4, takes a quarter.
// Sources: NVIDIA's counts for the mode, and Frank Denneman's article of 2026-02-24 on placement IDs. The parts of the
// boards here are halves of halves, which fit whenever their sum does.
func (g *GPU) takes(profile catalogue.Profile) int {
	if g.mixes() && profile.MaxMixedSize > 0 {
		return g.Board.MemoryMiB / profile.MaxMixedSize
	}
	return profile.FramebufferMiB
}

func (g *GPU) mixes() bool { return !g.MIG && g.VGPUMode == MixedSize }

func mostOf(gpu *GPU, profile catalogue.Profile) int {
	if gpu.mixes() {
		return profile.MaxMixedSize
	}
	return profile.MaxSameSize
}

// wholeUses are the bookings of a function as a whole.
func (h *host) wholeUses(address string) []Use {
	var whole []Use
	for _, use := range h.uses[address] {
		if use.Profile == "" {
			whole = append(whole, use)
		}
	}
	return whole
}

func (h *host) byLoad() []*GPU {
	gpus := append([]*GPU(nil), h.gpus...)
	sort.SliceStable(gpus, func(i, j int) bool {
		a, b := h.load(gpus[i]), h.load(gpus[j])
		if a == b {
			return h.tiesBefore(gpus[i].Address, gpus[j].Address)
		}
		return (a < b) == (h.policy != Consolidation)
	})
	return gpus
}

// tiesBefore tells which of two equally loaded GPUs comes first.
func (h *host) tiesBefore(one, other string) bool {
	switch h.model.AssignmentTie {
	case "highest":
		return one > other
	case "next":
		if past := one > h.lastGPU; past != (other > h.lastGPU) {
			return past
		}
	}
	return one < other
}

func (h *host) load(gpu *GPU) int {
	total := 0
	for _, use := range h.uses[gpu.Address] {
		total += framebuffer(use.Profile)
	}
	return total
}

// knows tells whether some GPU of the host offers the profile in its present mode.
func (h *host) knows(profile string) bool {
	for _, offered := range h.profiles() {
		if offered.Name == profile {
			return true
		}
	}
	return false
}

// profiles need the vGPU manager on the host, and an API new enough for the newer MIG types.
func (h *host) profiles() []catalogue.Profile {
	if h.model.VGPUManager == "" {
		return nil
	}
	var offered []catalogue.Profile
	seen := map[string]bool{}
	for _, gpu := range h.gpus {
		for _, profile := range gpu.Board.Profiles {
			if profile.MIG != gpu.MIG || seen[profile.Name] || !h.new(profile) || gpu.Passthrough.Active {
				continue
			}
			seen[profile.Name] = true
			offered = append(offered, profile)
		}
	}
	return offered
}

func (h *host) new(profile catalogue.Profile) bool {
	return profile.MinAPI == "" || h.api.atLeast(parseVersion(profile.MinAPI))
}

// Profiles are the vGPU types the host offers in its GPUs' present modes.
func (r *Rack) Profiles(hostName string) []catalogue.Profile {
	var offered []catalogue.Profile
	_ = r.with(hostName, func(h *host) error {
		offered = h.profiles()
		return nil
	})
	return offered
}
