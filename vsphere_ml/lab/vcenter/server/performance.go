package server

import (
	"strconv"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// Real-time samples are 20 s long, end at full multiples of that, and are kept for an hour (vSphere Web Services API,
// PerformanceManager: "real-time" data of a provider, refreshRate 20).
const (
	sampleSeconds = 20
	keptSamples   = 180
)

// waiting is what a VM's CPUs wait for in each sample, in milliseconds, summed over its virtual CPUs.
type waiting struct{ Ready, CoStop int64 }

// waits has what VMs wait for, by name. A VM that is not there waits 20 ms of a sample for each virtual CPU, one
// thousandth, and a tenth of that for its others.
type waits struct {
	mu   sync.Mutex
	made map[string]waiting
}

func (w *waits) of(vm string, cpus int32) waiting {
	w.mu.Lock()
	defer w.mu.Unlock()
	if made, ok := w.made[vm]; ok {
		return made
	}
	return waiting{Ready: 20 * int64(cpus), CoStop: 2 * int64(cpus)}
}

func (w *waits) set(vm string, change func(*waiting)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.made == nil {
		w.made = map[string]waiting{}
	}
	made := w.made[vm]
	change(&made)
	w.made[vm] = made
}

// performance is vCenter's PerformanceManager. The simulator answers with noise over figures of its own, in samples that
// begin anywhere and run backwards (govmomi 0.56.0); of VMs in real time the lab answers itself.
type performance struct {
	mo.PerformanceManager
	simulated *simulator.PerformanceManager
	lab       *Lab
}

func (l *Lab) addPerformance() error {
	reference := l.Context.Map.Get(serviceInstance).(*simulator.ServiceInstance).Content.PerfManager
	simulated := l.Context.Map.Get(*reference).(*simulator.PerformanceManager)
	l.Context.Map.Put(&performance{PerformanceManager: simulated.PerformanceManager, simulated: simulated, lab: l})
	return nil
}

// QueryPerfCounter describes counters by their numbers.
func (p *performance) QueryPerfCounter(ctx *simulator.Context, req *types.QueryPerfCounter) soap.HasFault {
	return p.simulated.QueryPerfCounter(ctx, req)
}

// QueryPerfProviderSummary tells how often an entity is sampled.
func (p *performance) QueryPerfProviderSummary(ctx *simulator.Context, req *types.QueryPerfProviderSummary) soap.HasFault {
	return p.simulated.QueryPerfProviderSummary(ctx, req)
}

// QueryAvailablePerfMetric tells which counters an entity has.
func (p *performance) QueryAvailablePerfMetric(ctx *simulator.Context, req *types.QueryAvailablePerfMetric) soap.HasFault {
	return p.simulated.QueryAvailablePerfMetric(ctx, req)
}

// QueryPerf answers one question after another, in their order. A VM that is gone is left out: "only metrics for
// entities that can be resolved" are returned.
func (p *performance) QueryPerf(ctx *simulator.Context, req *types.QueryPerf) soap.HasFault {
	body := &methods.QueryPerfBody{Res: &types.QueryPerfResponse{}}
	for _, question := range req.QuerySpec {
		if question.Entity.Type != "VirtualMachine" || question.IntervalId != sampleSeconds {
			other := p.simulated.QueryPerf(ctx, &types.QueryPerf{This: req.This, QuerySpec: []types.PerfQuerySpec{question}})
			if other.Fault() != nil {
				return other
			}
			body.Res.Returnval = append(body.Res.Returnval, other.(*methods.QueryPerfBody).Res.Returnval...)
			continue
		}
		if machine := machineOf(ctx, question.Entity); machine != nil {
			body.Res.Returnval = append(body.Res.Returnval, p.ofVM(ctx, machine, question))
		}
	}
	return body
}

func (p *performance) ofVM(ctx *simulator.Context, machine *simulator.VirtualMachine, question types.PerfQuerySpec) *types.PerfEntityMetric {
	answer := &types.PerfEntityMetric{PerfEntityMetricBase: types.PerfEntityMetricBase{Entity: question.Entity}}
	var name string
	var cpus int32
	on := false
	locked(ctx, machine, func() {
		name, cpus = machine.Name, machine.Summary.Config.NumCpu
		on = machine.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn
	})
	if !on {
		return answer
	}
	ends := sampleEnds(question, time.Now())
	for _, end := range ends {
		answer.SampleInfo = append(answer.SampleInfo, types.PerfSampleInfo{Timestamp: end, Interval: sampleSeconds})
	}
	waited := p.lab.waits.of(name, cpus)
	for _, metric := range question.MetricId {
		for instance, share := range instances(metric.Instance, cpus) {
			if value, ok := p.value(metric.CounterId, waited); ok {
				series := &types.PerfMetricIntSeries{Value: make([]int64, len(ends))}
				series.Id = types.PerfMetricId{CounterId: metric.CounterId, Instance: instance}
				for at := range ends {
					series.Value[at] = max(value/share, 1) // the encoder leaves a zero in a list out (govmomi 0.56.0)
				}
				answer.Value = append(answer.Value, series)
			}
		}
	}
	return answer
}

// value is what the lab says of a counter; of others it says nothing.
func (p *performance) value(counter int32, waited waiting) (int64, bool) {
	for _, known := range p.PerfCounter {
		if known.Key != counter || known.GroupInfo.GetElementDescription().Key != "cpu" || known.RollupType != types.PerfSummaryTypeSummation {
			continue
		}
		switch known.NameInfo.GetElementDescription().Key {
		case "ready":
			return waited.Ready, true
		case "costop":
			return waited.CoStop, true
		}
	}
	return 0, false
}

// instances are the series that an instance's name stands for, each with what the VM's sum is divided by: the sum
// itself is "", "*" is it and every virtual CPU.
func instances(name string, cpus int32) map[string]int64 {
	if name != "*" {
		share := int64(1)
		if name != "" {
			share = int64(max(cpus, 1))
		}
		return map[string]int64{name: share}
	}
	found := map[string]int64{"": 1}
	for cpu := range cpus {
		found[strconv.Itoa(int(cpu))] = int64(cpus)
	}
	return found
}

// sampleEnds are the samples after the start, the one at the end included, the oldest first; with maxSample the last ones.
func sampleEnds(question types.PerfQuerySpec, now time.Time) []time.Time {
	end, start := now, now.Add(-keptSamples*sampleSeconds*time.Second)
	if question.EndTime != nil && question.EndTime.Before(end) {
		end = *question.EndTime
	}
	if question.StartTime != nil && question.StartTime.After(start) {
		start = *question.StartTime
	}
	var found []time.Time
	for at := start.Truncate(sampleSeconds * time.Second).Add(sampleSeconds * time.Second); !at.After(end); at = at.Add(sampleSeconds * time.Second) {
		found = append(found, at.UTC())
	}
	if most := int(question.MaxSample); most > 0 && len(found) > most {
		found = found[len(found)-most:]
	}
	return found
}
