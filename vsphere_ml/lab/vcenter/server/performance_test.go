package server

import (
	"testing"
	"time"

	perf "github.com/vmware/govmomi/performance"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
)

func TestReadyAndCoStopAreWhatTheLabIsTold(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	machine, err := r.find.VirtualMachine(r.ctx, "etl-7")
	if err != nil {
		t.Fatal(err)
	}
	r.lab.waits.set("etl-7", func(w *waiting) { w.Ready, w.CoStop = 3000, 200 })
	counters, err := perf.NewManager(r.client).CounterInfoByName(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now().Add(-95 * time.Second)
	response, err := methods.QueryPerf(r.ctx, r.client, &types.QueryPerf{
		This: *r.client.ServiceContent.PerfManager,
		QuerySpec: []types.PerfQuerySpec{{
			Entity: machine.Reference(), StartTime: &start, IntervalId: 20,
			MetricId: []types.PerfMetricId{
				{CounterId: counters["cpu.ready.summation"].Key}, {CounterId: counters["cpu.costop.summation"].Key},
			},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	answer := response.Returnval[0].(*types.PerfEntityMetric)
	if count := len(answer.SampleInfo); count != 4 && count != 5 {
		t.Fatalf("%d samples of 95 s", count)
	}
	for at, sample := range answer.SampleInfo {
		if !sample.Timestamp.After(start) || sample.Timestamp.Unix()%20 != 0 || at > 0 && !sample.Timestamp.After(answer.SampleInfo[at-1].Timestamp) {
			t.Fatalf("sample %d at %s", at, sample.Timestamp)
		}
	}
	for at, want := range []int64{3000, 200} {
		series := answer.Value[at].(*types.PerfMetricIntSeries)
		if len(series.Value) != len(answer.SampleInfo) || series.Value[0] != want {
			t.Fatalf("series %d: %v", at, series.Value)
		}
	}
}

func TestSamplesEndWhereTheyAreAskedTo(t *testing.T) {
	now := time.Unix(1000, 0)
	ends := sampleEnds(types.PerfQuerySpec{StartTime: moment(900), EndTime: moment(960), MaxSample: 2}, now)
	if len(ends) != 2 || ends[0].Unix() != 940 || ends[1].Unix() != 960 {
		t.Fatalf("%v", ends)
	}
	if kept := sampleEnds(types.PerfQuerySpec{}, now); len(kept) != keptSamples {
		t.Fatalf("%d samples are kept", len(kept))
	}
}

func moment(seconds int64) *time.Time {
	found := time.Unix(seconds, 0)
	return &found
}
