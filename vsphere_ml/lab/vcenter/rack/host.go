package rack

import (
	"fmt"

	"vsml.dev/lab/vcenter/catalogue"
	"vsml.dev/lab/vcenter/topology"
)

// Graphics types and assignment policies as the vSphere API spells them.
const (
	SharedDirect  = "sharedDirect"
	Performance   = "performance"
	Consolidation = "consolidation"
	MixedSize     = "mixedSize"
	SameSize      = "sameSize"
)

// host is one server's hardware, its settings and its bookings.
type host struct {
	name     string
	model    topology.Model
	api      version
	graphics string
	policy   string
	gpus     []*GPU
	nics     []*NIC
	groups   []instance
	kernel   map[string]Kernel
	modules  map[string]*Module
	faults   []string
	memory   map[string]int64
	uses     map[string][]Use // by PCI address
	lastGPU  string           // the GPU that backed the last vGPU of a VM that was started
}

// GPU is a physical GPU and its present settings.
type GPU struct {
	Address      string
	Board        catalogue.Board
	NUMA         int
	Parent       string
	MIG          bool
	MIGNext      bool   // as nvidia-smi was told; differs from MIG until the host reboots, on Ampere
	VGPUMode     string // sameSize or mixedSize
	GraphicsType string // sharedDirect or shared, in force; the host's default unless set for the device
	GraphicsNext string // as configured; in force once X.Org or the host was restarted
	Passthrough  Passthrough
}

// Passthrough is a function's DirectPath setting.
type Passthrough struct {
	Enabled bool // as configured
	Active  bool // in force; differs from Enabled until the host reboots, unless applied at once
	Label   string
}

// Use is one device of one VM on a function.
type Use struct {
	VM      string
	Key     int32
	Profile string // "" for a whole function
	Group   string // the device group it came with, or ""
}

func newHost(name string, model topology.Model, api version) (*host, error) {
	h := &host{
		name: name, model: model, api: api, graphics: model.GraphicsType, policy: model.AssignmentPolicy,
		memory: map[string]int64{}, uses: map[string][]Use{},
	}
	if h.policy == "" {
		h.policy = Performance
	}
	if h.graphics == "" {
		h.graphics = "shared" // ESXi's default
	}
	if err := h.installBoards(); err != nil {
		return nil, err
	}
	h.groups = h.findGroups()
	h.kernel = newKernel(model)
	h.modules = h.newModules()
	return h, nil
}

func (h *host) installBoards() error {
	for _, gpu := range h.model.GPUs {
		board, ok := catalogue.Find(gpu.Board)
		if !ok || board.Kind != catalogue.GPU {
			return fmt.Errorf("gpu %s: no GPU board named %q", gpu.Address, gpu.Board)
		}
		h.gpus = append(h.gpus, newGPU(gpu, board, h.graphics))
	}
	for _, nic := range h.model.NICs {
		board, ok := catalogue.Find(nic.Board)
		if !ok || board.Kind != catalogue.NIC {
			return fmt.Errorf("nic %s: no adapter named %q", nic.Address, nic.Board)
		}
		h.nics = append(h.nics, newNIC(nic, board))
	}
	spread(h.nics)
	return nil
}

func newGPU(gpu topology.GPU, board catalogue.Board, graphics string) *GPU {
	mode := gpu.VGPUMode
	if mode == "" {
		mode = SameSize
	}
	return &GPU{
		Address: gpu.Address, Board: board, NUMA: gpu.NUMA, Parent: gpu.Parent, VGPUMode: mode,
		MIG: gpu.Mode == "mig", MIGNext: gpu.Mode == "mig", GraphicsType: graphics, GraphicsNext: graphics, Passthrough: Passthrough{gpu.Passthrough, gpu.Passthrough, gpu.Label},
	}
}

func (h *host) gpu(address string) *GPU {
	for _, gpu := range h.gpus {
		if gpu.Address == address {
			return gpu
		}
	}
	return nil
}

func (h *host) nic(address string) *NIC {
	for _, nic := range h.nics {
		if nic.Address == address {
			return nic
		}
	}
	return nil
}

// memoryMiB is what the host can reserve for VMs.
func (h *host) memoryMiB() int64 {
	var total int64
	for _, node := range h.model.NUMA {
		total += int64(node.MemoryGiB) * 1024
	}
	return total
}

func (h *host) reservedMiB() int64 {
	var total int64
	for _, mib := range h.memory {
		total += mib
	}
	return total
}
