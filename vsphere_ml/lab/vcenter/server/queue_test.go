package server

import (
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

// queueRig is a lab whose hosts take part in one full clone at a time, each of which lasts until it is let go.
func queueRig(t *testing.T) *rig {
	r := newRig(t, "quad-8.0u3", func(file *topology.File) {
		for i := range file.Models {
			file.Models[i].FullClones = 1
		}
	})
	r.delayClones(3_600_000)
	return r
}

func (r *rig) delayClones(ms int) {
	if err := r.lab.delays.set(map[string]int{"CloneVM_Task": ms}); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) beginClone(name string) *object.Task {
	r.Helper()
	pool := r.pool()
	spec := types.VirtualMachineCloneSpec{Location: types.VirtualMachineRelocateSpec{Pool: &pool}}
	task, err := r.vm(quadTemplate).Clone(r.ctx, r.folder(), name, spec)
	if err != nil {
		r.Fatal(err)
	}
	return task
}

func TestFullClonesBeyondAHostsLimitAreQueued(t *testing.T) {
	r := queueRig(t)
	first, second := r.beginClone("first"), r.beginClone("second")
	if info := taskInfo(t, first); info.State != types.TaskInfoStateRunning {
		t.Errorf("the first clone is %s", info.State)
	}
	if info := taskInfo(t, second); info.State != types.TaskInfoStateQueued || info.StartTime != nil {
		t.Errorf("the second clone is %s, started %v", info.State, info.StartTime)
	}
	r.delayClones(0)
	one, err := first.WaitForResult(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	two, err := second.WaitForResult(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if two.StartTime.Before(*one.CompleteTime) {
		t.Errorf("the second began at %v, the first ended at %v", two.StartTime, one.CompleteTime)
	}
}

func TestAQueuedCloneThatIsCancelledLeavesItsTurn(t *testing.T) {
	r := queueRig(t)
	first, second, third := r.beginClone("first"), r.beginClone("second"), r.beginClone("third")
	if err := second.Cancel(r.ctx); err != nil {
		t.Fatal(err)
	}
	r.delayClones(0)
	for _, task := range []*object.Task{first, third} {
		if _, err := task.WaitForResult(r.ctx); err != nil {
			t.Error(err)
		}
	}
	if info := taskInfo(t, second); info.State != types.TaskInfoStateError || info.StartTime != nil {
		t.Errorf("the cancelled clone is %s, started %v", info.State, info.StartTime)
	}
}
