package rack

import (
	"fmt"
	"strings"
)

// SetMIG switches a GPU's MIG mode, as nvidia-smi does; pending tells that it counts from the host's next boot only. That
// is so for Ampere and not for Hopper (NVIDIA AI Enterprise, appendix on C-series).
func (r *Rack) SetMIG(hostName, address string, on bool) (pending bool, err error) {
	err = r.with(hostName, func(h *host) error {
		gpu := h.gpu(address)
		switch {
		case gpu == nil || gpu.Passthrough.Active:
			return fmt.Errorf("%w: %s", ErrNoFunction, address)
		case !gpu.Board.MIG:
			return fmt.Errorf("%w: %s", ErrNoMIG, address)
		case on != gpu.MIG && len(h.uses[address]) > 0:
			return fmt.Errorf("%w: %s", ErrInUse, address)
		}
		gpu.MIGNext = on
		if pending = on != gpu.MIG && gpu.ampere(); !pending {
			gpu.MIG = on
		}
		return nil
	})
	return pending, err
}

// ampere tells Ampere boards by their names: of those with MIG here, all that begin with A.
func (g *GPU) ampere() bool { return strings.HasPrefix(g.Board.Name, "A") }

// RestartXorg puts the configured graphics types in force on GPUs that no VM uses.
func (r *Rack) RestartXorg(hostName string) error {
	return r.with(hostName, func(h *host) error {
		for _, gpu := range h.gpus {
			if len(h.uses[gpu.Address]) == 0 {
				gpu.GraphicsType = gpu.GraphicsNext
			}
		}
		return nil
	})
}

// bootGPUs puts in force what was configured.
func (h *host) bootGPUs() {
	for _, gpu := range h.gpus {
		gpu.Passthrough.Active = gpu.Passthrough.Enabled
		gpu.GraphicsType, gpu.MIG = gpu.GraphicsNext, gpu.MIGNext
	}
}
