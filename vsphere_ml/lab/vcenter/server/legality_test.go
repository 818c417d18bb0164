package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/rack"
	"vsml.dev/lab/vcenter/topology"
)

// on makes the site that of an earlier or later release, its hosts included.
func on(api, esxi string, hardware int) func(*topology.File) {
	return func(f *topology.File) {
		f.VCenter.APIVersion = api
		for i := range f.Models {
			f.Models[i].ESXiVersion, f.Models[i].MaxHardwareVersion = esxi, hardware
		}
		for i := range f.VMs {
			f.VMs[i].HardwareVersion = 0
		}
	}
}

func many(profile string, count int) []string {
	return strings.Split(strings.TrimSuffix(strings.Repeat(profile+" ", count), " "), " ")
}

// The board of one GPU of each host is another's, so that both have something to offer.
func TestVGPUsOfOneVMAreOfOneBoard(t *testing.T) {
	r := newRig(t, "quad-8.0u3", func(f *topology.File) {
		f.VMs = nil
		f.Models[0].GPUs[3].Board = "A30"
	})
	refused := r.result(r.create(gpuSpec("mixed", "grid_a100-40c", "grid_a30-24c"), "esx-01.lab.test").PowerOn(r.ctx))
	mustBe(t, refused.fault, "GenericVmConfigFault")
	if !strings.Contains(refused.message, "different boards") {
		t.Errorf("sentence %q", refused.message)
	}
	if fault := r.powerOn(r.create(gpuSpec("sizes", "grid_a100-40c", "grid_a100-20c"), "esx-01.lab.test")); fault != nil {
		t.Errorf("two sizes of one board were refused: %T", fault)
	}
}

func TestHowManyVGPUsAVMMayHaveDependsOnTheRelease(t *testing.T) {
	for _, one := range []struct {
		api, esxi, profile string
		hardware, most     int
	}{
		{"7.0.3.0", "7.0.3", "grid_a100-40c", 19, 4},
		{"8.0.2.0", "8.0.2", "grid_a100-10c", 21, 8},
	} {
		r := newRig(t, "quad-8.0u3", func(f *topology.File) { on(one.api, one.esxi, one.hardware)(f); f.VMs = nil })
		spec := func(name string, count int) types.VirtualMachineConfigSpec {
			s := gpuSpec(name, many(one.profile, count)...)
			s.Version = "vmx-19"
			return s
		}
		refused := r.result(r.create(spec("more", one.most+1), "esx-01.lab.test").PowerOn(r.ctx))
		mustBe(t, refused.fault, "GenericVmConfigFault")
		if !strings.Contains(refused.message, "this release supports") {
			t.Errorf("%s: sentence %q", one.api, refused.message)
		}
		enough := spec("enough", one.most)
		enough.ExtraConfig = append(enough.ExtraConfig[:1:1], &types.OptionValue{Key: "pciPassthru.64bitMMIOSizeGB", Value: "2048"})
		if fault := r.powerOn(r.create(enough, "esx-01.lab.test")); fault != nil {
			t.Errorf("%s: %d vGPUs were refused: %T", one.api, one.most, fault)
		}
	}
}

func TestHowManyPCIDevicesAVMMayHaveDependsOnItsHardware(t *testing.T) {
	for _, one := range []struct {
		api, version string
		most         int
	}{
		{"8.0.3.0", "vmx-19", 16},
		{"8.0.0.1", "vmx-20", 32},
		{"8.0.1.0", "vmx-20", 64},
		{"8.0.3.0", "vmx-21", 128},
	} {
		r := newRig(t, "quad-8.0u3", func(f *topology.File) { f.VCenter.APIVersion = one.api; f.VMs = nil })
		for count, want := range map[int]string{one.most: "", one.most + 1: "TooManyDevices"} {
			spec := gpuSpec(fmt.Sprint("devices-", count), many("grid_a100-4c", count)...)
			spec.Version = one.version
			made := r.tryCreate(spec, "")
			switch {
			case want != "":
				mustBe(t, made.fault, want)
			case made.fault != nil:
				t.Errorf("%s on %s: %d devices were refused: %T", one.version, one.api, count, made.fault)
			}
		}
	}
}

func TestTheNewerMIGTypesCameWith80U3(t *testing.T) {
	mig := func(f *topology.File) {
		f.VMs = nil
		for i := range f.Models[0].GPUs {
			f.Models[0].GPUs[i].Mode = "mig"
		}
	}
	older := newRig(t, "quad-8.0u3", func(f *topology.File) { on("8.0.2.0", "8.0.2", 21)(f); mig(f) })
	newer := newRig(t, "quad-8.0u3", mig)
	for _, profile := range []string{"grid_a100-1-10c", "grid_a100-1-5cme"} {
		mustBe(t, older.tryCreate(gpuSpec("new", profile), "").fault, "InvalidDeviceBacking")
		if fault := newer.powerOn(newer.create(gpuSpec(profile, profile), "esx-01.lab.test")); fault != nil {
			t.Errorf("8.0 U3 refused %s: %T", profile, fault)
		}
	}
	if fault := older.powerOn(older.create(gpuSpec("old", "grid_a100-1-5c"), "esx-01.lab.test")); fault != nil {
		t.Errorf("8.0 U2 refused a type that it has: %T", fault)
	}
}

// An NVSwitch is programmed from 8.0 U1 on for Ampere, from 8.0 U2 on for Hopper; bridges need no programming.
func TestNVSwitchGroupsComeWithTheirRelease(t *testing.T) {
	groups := func(esxi string) string {
		api := esxi + ".1"
		file := newRig(t, "spectrum-8.0u3", func(f *topology.File) {
			hardware := map[string]int{"8.0.0": 20, "8.0.1": 20}[esxi]
			if hardware == 0 {
				hardware = 21
			}
			on(api, esxi, hardware)(f)
			f.VMs = nil
		})
		var names []string
		for _, host := range []string{"hgx-a100-01.lab.test", "hgx-h100-01.lab.test", "pairs-01.lab.test"} {
			for _, group := range file.lab.Rack.Groups(host) {
				names = append(names, group.Name)
			}
		}
		return strings.Join(names, " ")
	}
	for esxi, want := range map[string][3]bool{
		"8.0.0": {false, false, true}, "8.0.1": {true, false, true}, "8.0.2": {true, true, true},
	} {
		offered := groups(esxi)
		for i, name := range []string{"Nvidia:8@grid_a100x-40c%NVLink", "Nvidia:8@nvidia_h100xm-80c%NVLink", "Nvidia:2@grid_a100-40c%NVLink"} {
			if strings.Contains(offered, name) != want[i] {
				t.Errorf("ESXi %s: %s is among the groups: %v, want %v", esxi, name, !want[i], want[i])
			}
		}
	}
}

// A GPU in MIG mode, or one that is handed through, breaks the NVLink groups that it would be of.
func TestNVLinkJoinsNoMIGAndNoPassedThroughGPU(t *testing.T) {
	for name, change := range map[string]func(*topology.GPU){
		"MIG":         func(g *topology.GPU) { g.Mode = "mig" },
		"passthrough": func(g *topology.GPU) { g.Passthrough = true },
	} {
		r := newRig(t, "spectrum-8.0u3", func(f *topology.File) {
			for i := range f.Models {
				if f.Models[i].Name == "xe8545" {
					change(&f.Models[i].GPUs[0])
				}
			}
		})
		left := func(group string) int {
			return r.lab.Rack.Capacity("hgx-a100-01.lab.test", rack.Thing{Group: group}).Remaining
		}
		if eight, four, two := left("Nvidia:8@grid_a100x-40c%NVLink"), left("Nvidia:4@grid_a100x-40c%NVLink"), left("Nvidia:2@grid_a100x-40c%NVLink"); eight != 0 || four != 1 || two != 3 {
			t.Errorf("%s: %d eights, %d fours and %d pairs are left, want 0, 1 and 3", name, eight, four, two)
		}
	}
}
