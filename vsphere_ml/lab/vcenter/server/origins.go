package server

import (
	"sync"

	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

// origins are the templates that VMs were cloned from, at first or second hand: what lies on a disk is cloned with it.
type origins struct {
	mu   sync.Mutex
	from map[types.ManagedObjectReference]hookTemplate
}

func (o *origins) add(machine types.ManagedObjectReference, described topology.Template) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.from == nil {
		o.from = map[types.ManagedObjectReference]hookTemplate{}
	}
	o.from[machine] = hookTemplate{
		CloudInit: described.CloudInit == nil || *described.CloudInit,
		User:      described.User, AuthorizedKeys: described.AuthorizedKeys,
		Image: described.Image,
	}
}

// inherit notes whose disk the machine has a copy of.
func (o *origins) inherit(machine, source types.ManagedObjectReference) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if described, ok := o.from[source]; ok {
		o.from[machine] = described
	}
}

// of is what the machine's template brings along; a VM of no template has cloud-init and nobody to sign in as.
func (o *origins) of(machine types.ManagedObjectReference) hookTemplate {
	o.mu.Lock()
	defer o.mu.Unlock()
	if described, ok := o.from[machine]; ok {
		return described
	}
	return hookTemplate{CloudInit: true}
}

func (o *origins) forget(machine types.ManagedObjectReference) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.from, machine)
}
