package server

import (
	"testing"

	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

// oneGPU leaves each host one GPU, in the modes given.
func oneGPU(mode, vgpuMode string) func(*topology.File) {
	return func(f *topology.File) {
		f.VMs = nil
		f.Models[0].GPUs = f.Models[0].GPUs[:1]
		f.Models[0].GPUs[0].Mode, f.Models[0].GPUs[0].VGPUMode = mode, vgpuMode
	}
}

func (r *rig) start(name, profile string) types.BaseMethodFault {
	r.Helper()
	return r.powerOn(r.create(gpuSpec(name, profile), "esx-01.lab.test"))
}

func TestTimeSlicedSizesMixOnlyWhereTheGPUIsSetForIt(t *testing.T) {
	same := newRig(t, "quad-8.0u3", oneGPU("", ""))
	for name, profile := range map[string]string{"one": "grid_a100-10c", "two": "grid_a100-10c"} {
		if fault := same.start(name, profile); fault != nil {
			t.Fatalf("the same size was refused: %T", fault)
		}
	}
	mustBe(t, same.start("other", "grid_a100-20c"), "InsufficientGraphicsResourcesFault")

	mixed := newRig(t, "quad-8.0u3", oneGPU("", "mixedSize"))
	for name, profile := range map[string]string{"ten": "grid_a100-10c", "twenty": "grid_a100-20c"} {
		if fault := mixed.start(name, profile); fault != nil {
			t.Errorf("%s was refused on a GPU set for mixed sizes: %T", profile, fault)
		}
	}
}

// A time-sliced vGPU finds no room on a GPU in MIG mode, however empty, nor the other way round.
func TestMIGAndTimeSlicedShareNoGPU(t *testing.T) {
	r := newRig(t, "quad-8.0u3", func(f *topology.File) {
		f.VMs = nil
		f.Models[0].GPUs = f.Models[0].GPUs[:2]
		f.Models[0].GPUs[0].Mode = "mig"
	})
	for name, profile := range map[string]string{"mig": "grid_a100-3-20c", "sliced": "grid_a100-20c"} {
		if fault := r.start(name, profile); fault != nil {
			t.Fatalf("%s: %T", profile, fault)
		}
	}
	if fault := r.start("sliced too", "grid_a100-20c"); fault != nil {
		t.Fatalf("%T", fault)
	}
	mustBe(t, r.start("third half", "grid_a100-20c"), "InsufficientGraphicsResourcesFault")
	if fault := r.start("mig too", "grid_a100-3-20c"); fault != nil {
		t.Errorf("the GPU in MIG mode has room, yet %T", fault)
	}

	only := newRig(t, "quad-8.0u3", oneGPU("mig", ""))
	mustBe(t, only.tryCreate(gpuSpec("sliced", "grid_a100-20c"), "esx-01.lab.test").fault, "InvalidDeviceBacking")
}
