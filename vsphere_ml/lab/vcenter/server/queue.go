package server

import (
	"slices"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// clonePlaces are the full clones that each host takes part in, of those that it may (topology.Model.FullClones).
// A clone that finds no place on its source's host or on its own is queued, as vCenter queues it.
type clonePlaces struct {
	mu    sync.Mutex
	taken map[*esx]int
	freed chan struct{} // closed when places are given back
}

// take takes a place on each of the hosts, or none; when it took none, what is closed as soon as it may try again.
func (p *clonePlaces) take(hosts []*esx) (bool, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken == nil {
		p.taken, p.freed = map[*esx]int{}, make(chan struct{})
	}
	full := func(host *esx) bool { return p.taken[host] >= host.model.FullClones }
	if slices.ContainsFunc(hosts, full) {
		return false, p.freed
	}
	for _, host := range hosts {
		p.taken[host]++
	}
	return true, nil
}

func (p *clonePlaces) giveBack(hosts []*esx) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, host := range hosts {
		p.taken[host]--
	}
	close(p.freed)
	p.freed = make(chan struct{})
}

// cloneHosts are the hosts that a full clone needs a place on: the source's and its own, where they are limited.
func (l *Lab) cloneHosts(source *vm, spec *types.VirtualMachineCloneSpec) []*esx {
	if linked(spec) {
		return nil
	}
	var hosts []*esx
	for _, reference := range []*types.ManagedObjectReference{source.Runtime.Host, spec.Location.Host} {
		host := l.esxOf(reference)
		if host != nil && host.model.FullClones > 0 && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// queue waits until a queued task has its places, and lets it run; false when it was cancelled meanwhile.
func (l *Lab) queue(ctx *simulator.Context, task *simulator.Task, work job) bool {
	for {
		took, freed := l.clones.take(work.Hosts)
		if took {
			break
		}
		select {
		case <-freed:
		case <-time.After(progressEvery): // to see whether it was cancelled
		}
		if finished(ctx, task) {
			return false
		}
	}
	ctx.Map.AtomicUpdate(ctx, task, begun())
	return true
}

// begun is what changes of a task when it starts to run.
func begun() []types.PropertyChange {
	return []types.PropertyChange{
		{Name: "info.startTime", Val: time.Now()},
		{Name: "info.state", Val: types.TaskInfoStateRunning},
		{Name: "info.progress", Val: int32(0)},
	}
}
