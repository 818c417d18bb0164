package rack

import (
	"fmt"
	"slices"

	"vsml.dev/lab/vcenter/topology"
)

// Fail makes the host fail in these ways and no others; see topology.HostFaults.
func (r *Rack) Fail(hostName string, faults []string) error {
	for _, fault := range faults {
		if !slices.Contains(topology.HostFaults, fault) {
			return fmt.Errorf("there is no fault %q: known are %v", fault, topology.HostFaults)
		}
	}
	return r.with(hostName, func(h *host) error {
		h.fail(faults)
		return nil
	})
}

// Fails tells whether the host fails in this way.
func (v View) Fails(fault string) bool { return slices.Contains(v.Faults, fault) }

func (h *host) fail(faults []string) { h.faults = slices.Clone(faults) }

func (h *host) fails(fault string) bool { return slices.Contains(h.faults, fault) }
