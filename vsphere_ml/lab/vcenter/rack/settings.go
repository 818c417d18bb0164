package rack

import (
	"errors"
	"fmt"
)

// What the host's settings can be refused for.
var (
	ErrNoFunction = errors.New("no such PCI function")
	ErrInUse      = errors.New("the PCI function is in use")
	ErrRange      = errors.New("more virtual functions than the firmware allows")
	ErrNoSRIOV    = errors.New("the PCI function has no SR-IOV")
	ErrNoMIG      = errors.New("the GPU has no MIG")
)

// SetGraphics configures the host's default graphics type and policy, for all GPUs; "" leaves one as it is. A type counts
// once X.Org or the host was restarted.
func (r *Rack) SetGraphics(hostName, graphics, policy string) error {
	return r.with(hostName, func(h *host) error {
		if policy != "" {
			h.policy = policy
		}
		if graphics == "" {
			return nil
		}
		h.graphics = graphics
		for _, gpu := range h.gpus {
			gpu.GraphicsNext = graphics
		}
		return nil
	})
}

// SetGPU configures one GPU's graphics type and vGPU mode; "" leaves one as it is.
func (r *Rack) SetGPU(hostName, address, graphics, mode string) error {
	return r.with(hostName, func(h *host) error {
		gpu := h.gpu(address)
		if gpu == nil {
			return fmt.Errorf("%w: %s", ErrNoFunction, address)
		}
		if mode != "" && mode != gpu.VGPUMode && len(h.uses[address]) > 0 {
			return fmt.Errorf("%w: %s", ErrInUse, address)
		}
		if graphics != "" {
			gpu.GraphicsNext = graphics
		}
		if mode != "" {
			gpu.VGPUMode = mode
		}
		return nil
	})
}

// SetPassthrough configures a function for DirectPath I/O, in force at once or from the next boot. A nil label
// leaves the label.
func (r *Rack) SetPassthrough(hostName, address string, enabled, now bool, label *string) error {
	return r.with(hostName, func(h *host) error {
		setting := h.passthroughOf(address)
		if setting == nil {
			return fmt.Errorf("%w: %s", ErrNoFunction, address)
		}
		if now && enabled != setting.Active && h.inUse(address) {
			return fmt.Errorf("%w: %s", ErrInUse, address)
		}
		setting.Enabled = enabled
		if now {
			setting.Active = enabled
		}
		if label != nil {
			setting.Label = *label
		}
		return nil
	})
}

func (h *host) passthroughOf(address string) *Passthrough {
	if gpu := h.gpu(address); gpu != nil {
		return &gpu.Passthrough
	}
	if nic := h.nic(address); nic != nil {
		return &nic.Passthrough
	}
	return nil
}

// SetSRIOV configures an adapter's virtual functions, in force at once or from the next boot.
func (r *Rack) SetSRIOV(hostName, address string, enabled bool, count int, now bool) error {
	return r.with(hostName, func(h *host) error {
		nic := h.nic(address)
		switch {
		case nic == nil && h.gpu(address) != nil:
			return fmt.Errorf("%w: %s", ErrNoSRIOV, address)
		case nic == nil:
			return fmt.Errorf("%w: %s", ErrNoFunction, address)
		case count < 0 || count > nic.MaxVFs:
			return fmt.Errorf("%w: %d of %d on %s", ErrRange, count, nic.MaxVFs, address)
		case now && h.inUse(address):
			return fmt.Errorf("%w: %s", ErrInUse, address)
		}
		nic.SRIOV.Enabled, nic.SRIOV.Requested = enabled, count
		if now {
			nic.SRIOV.apply()
		}
		return nil
	})
}
