package server

import (
	"reflect"
	"slices"
	"testing"

	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

func TestAGuestIsToldOfTheGPUsThatItsVMHas(t *testing.T) {
	pair := "Nvidia:2@grid_a100-40c%NVLink"
	direct := func(device types.BaseVirtualDevice) func(*types.VirtualMachineConfigSpec) {
		return func(s *types.VirtualMachineConfigSpec) { s.DeviceChange = append(s.DeviceChange, added(device)) }
	}
	for name, one := range map[string]struct {
		host, profile  string
		change         func(*types.VirtualMachineConfigSpec)
		count, nvlinks int
	}{
		"MIG":     {"mig-01.lab.test", "grid_a100-3-20c", func(s *types.VirtualMachineConfigSpec) { *s = gpuSpec(s.Name, "grid_a100-3-20c", "grid_a100-3-20c") }, 2, 0},
		"fixed":   {"direct-01.lab.test", "", direct(fixedDevice(-1, "0000:3b:00.0")), 1, 0},
		"dynamic": {"direct-01.lab.test", "", direct(dynamicDevice()), 1, 0},
		"linked": {"pairs-01.lab.test", "grid_a100-40c", func(s *types.VirtualMachineConfigSpec) {
			*s = gpuSpec(s.Name, "grid_a100-40c", "grid_a100-40c")
			s.DeviceGroups = groups(pair)
			for i := range s.DeviceChange {
				device := s.DeviceChange[i].GetVirtualDeviceConfigSpec().Device.GetVirtualDevice()
				device.DeviceGroupInfo = &types.VirtualDeviceDeviceGroupInfo{GroupInstanceKey: -1, SequenceId: int32(i)}
			}
		}, 2, 12},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "spectrum-8.0u3", func(f *topology.File) {
				f.Clusters = slices.DeleteFunc(f.Clusters, func(c topology.Cluster) bool { return !slices.Contains(c.Hosts, one.host) })
				f.Clusters[0].Name = "gpu"
			})
			spec := gpuSpec(name)
			one.change(&spec)
			machine := r.create(spec, one.host)
			if fault := r.powerOn(machine); fault != nil {
				t.Fatalf("%T", fault)
			}
			told := r.lab.describe(r.lab.Context, machineOf(r.lab.Context, machine.Reference()), "power-on")
			want := hookGPU{Profile: one.profile, Board: "A100-PCIE-40GB", ID: "10de:20f1", Name: "GA100 [A100 PCIe 40GB]"}
			if len(told.GPUs) != one.count || !reflect.DeepEqual(told.GPUs[0], want) || told.NVLinks != one.nvlinks {
				t.Errorf("told %+v and %d NVLinks, want %d of %+v and %d", told.GPUs, told.NVLinks, one.count, want, one.nvlinks)
			}
			if len(told.NICs) != 0 {
				t.Errorf("a GPU is told as an adapter: %+v", told.NICs)
			}
		})
	}
}
