// Package rack holds a site's hardware at run time: hosts, GPUs, adapters, device groups and who has booked what.
// It decides what fits where and why not. It knows no simulator and no SOAP; the server package turns its refusals
// into vSphere faults.
package rack

import (
	"fmt"
	"sync"

	"vsml.dev/lab/vcenter/topology"
)

// Rack is all hosts of a site. Its methods may be called from any goroutine.
type Rack struct {
	mu    sync.Mutex
	api   version
	order []string
	hosts map[string]*host
}

// New builds the hardware of every cluster.
func New(file topology.File) (*Rack, error) {
	rack := &Rack{api: parseVersion(file.VCenter.APIVersion), hosts: map[string]*host{}}
	for _, cluster := range file.Clusters {
		for _, name := range cluster.Hosts {
			model, ok := file.HostModel(cluster, name)
			if !ok {
				return nil, fmt.Errorf("host %s: no such model", name)
			}
			built, err := newHost(name, model, rack.api)
			if err != nil {
				return nil, fmt.Errorf("host %s: %w", name, err)
			}
			if own, ok := file.HostNamed(name); ok {
				built.fail(own.Faults)
			}
			rack.order = append(rack.order, name)
			rack.hosts[name] = built
		}
	}
	return rack, nil
}

// Hosts are the host names in the topology's order.
func (r *Rack) Hosts() []string {
	return append([]string(nil), r.order...)
}

// with runs the work on a host under the rack's lock; an unknown host is an error.
func (r *Rack) with(name string, work func(*host) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	host, ok := r.hosts[name]
	if !ok {
		return fmt.Errorf("no host named %q", name)
	}
	return work(host)
}
