package rack

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The driver modules of ConnectX adapters on ESXi. Source: NVIDIA's user manual of the native ESXi driver.
const (
	ModuleCore = "nmlx5_core"
	ModuleRDMA = "nmlx5_rdma"
)

// maxVFs is the parameter of nmlx5_core that says how many virtual functions each port has, in the ports' order.
const maxVFs = "max_vfs"

// ErrNoModule is a kernel module that the host does not have.
var ErrNoModule = errors.New("no such kernel module")

// Module is a driver's option string; Configured is what the driver is loaded with at the next boot.
type Module struct {
	Configured string
	Running    string
}

// newModules are the adapters' drivers, each with the options that the topology gives it.
func (h *host) newModules() map[string]*Module {
	modules := map[string]*Module{}
	if len(h.model.NICs) == 0 {
		return modules
	}
	for _, name := range []string{ModuleCore, ModuleRDMA} {
		options := h.model.Modules[name]
		modules[name] = &Module{Configured: options, Running: options}
	}
	return modules
}

// SetModule replaces the whole option string of a module, as ESXi does: what it does not name is at its default from
// the next boot on, virtual functions too.
func (r *Rack) SetModule(hostName, module, options string) error {
	return r.with(hostName, func(h *host) error {
		found, ok := h.modules[module]
		if !ok {
			return fmt.Errorf("%w: %s", ErrNoModule, module)
		}
		if module == ModuleCore {
			if err := h.requestVFs(options); err != nil {
				return err
			}
			options = without(options, maxVFs)
		}
		found.Configured = options
		return nil
	})
}

func (h *host) requestVFs(options string) error {
	var counts []string
	for _, word := range strings.Fields(options) {
		if list, ok := strings.CutPrefix(word, maxVFs+"="); ok {
			counts = strings.Split(list, ",")
		}
	}
	wanted := make([]int, len(h.nics))
	for i, nic := range h.nics {
		if i < len(counts) {
			wanted[i], _ = strconv.Atoi(counts[i])
		}
		if wanted[i] < 0 || wanted[i] > nic.MaxVFs {
			return fmt.Errorf("%w: %d of %d on %s", ErrRange, wanted[i], nic.MaxVFs, nic.Address)
		}
	}
	for i, nic := range h.nics {
		nic.SRIOV.Enabled, nic.SRIOV.Requested = wanted[i] > 0, wanted[i]
	}
	return nil
}

func without(options, parameter string) string {
	var kept []string
	for _, word := range strings.Fields(options) {
		if name, _, _ := strings.Cut(word, "="); name != parameter {
			kept = append(kept, word)
		}
	}
	return strings.Join(kept, " ")
}

// shownModules are the option strings with the virtual functions in them, whoever asked for these.
func (h *host) shownModules() map[string]Module {
	shown := map[string]Module{}
	for name, module := range h.modules {
		shown[name] = *module
	}
	if core, ok := shown[ModuleCore]; ok {
		core.Configured = joined(core.Configured, h.vfs(func(nic *NIC) int { return nic.SRIOV.Requested }))
		core.Running = joined(core.Running, h.vfs(func(nic *NIC) int { return nic.SRIOV.Active }))
		shown[ModuleCore] = core
	}
	return shown
}

func (h *host) vfs(count func(*NIC) int) string {
	var counts []string
	any := false
	for _, nic := range h.nics {
		counts, any = append(counts, strconv.Itoa(count(nic))), any || count(nic) > 0
	}
	if !any {
		return ""
	}
	return maxVFs + "=" + strings.Join(counts, ",")
}

func joined(options, more string) string { return strings.TrimSpace(options + " " + more) }

// bootModules loads the drivers with what was configured.
func (h *host) bootModules() {
	for _, module := range h.modules {
		module.Running = module.Configured
	}
}
