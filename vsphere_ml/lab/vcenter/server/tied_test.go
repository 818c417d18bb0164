package server

import (
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
)

func with(name string, device types.BaseVirtualDevice) types.VirtualMachineConfigSpec {
	spec := gpuSpec(name)
	spec.DeviceChange = append(spec.DeviceChange, added(device))
	return spec
}

func functionOn(backing types.BaseVirtualDeviceBackingInfo) *types.VirtualSriovEthernetCard {
	card := &types.VirtualSriovEthernetCard{}
	card.Key, card.Backing = -1, backing
	return card
}

func TestARunningVMWithAHostsDeviceIsNeitherMovedNorSuspendedNorSnapshotted(t *testing.T) {
	r := newRig(t, "spectrum-8.0u3", nil)
	watched := gpuSpec("watched", "grid_a100-40c")
	watched.ExtraConfig = append(watched.ExtraConfig, &types.OptionValue{Key: "pciPassthru0.cfg.enable_uvm", Value: "1"})
	const snapshot, moved, suspended = "SnapshotIncompatibleDeviceInVm", "DisallowedMigrationDeviceAttached", "NotSupported"
	for _, c := range []struct {
		cluster                    string
		spec                       types.VirtualMachineConfigSpec
		snapshot, moved, suspended string
	}{
		{"direct", with("fixed", fixedDevice(-1, "0000:3b:00.0")), snapshot, moved, suspended},
		{"direct", with("dynamic", dynamicDevice()), snapshot, moved, suspended},
		{"pairs", with("function", functionOn(r.pvrdmaCard("roce", "").Backing)), snapshot, moved, suspended},
		{"pairs", watched, "", moved, suspended},
		{"pairs", gpuSpec("vgpu", "grid_a100-40c"), "", "", ""},
	} {
		t.Run(c.spec.Name, func(t *testing.T) {
			machine := r.started(c.cluster, c.spec)
			r.mustEnd("a snapshot", c.snapshot, func() (*object.Task, error) {
				return machine.CreateSnapshot(r.ctx, "s", "", true, false)
			})
			host := r.host(c.cluster + "-02.lab.test").Reference()
			r.mustEnd("a move", c.moved, func() (*object.Task, error) {
				return machine.Relocate(r.ctx, types.VirtualMachineRelocateSpec{Host: &host}, types.VirtualMachineMovePriorityDefaultPriority)
			})
			r.mustEnd("a suspension", c.suspended, func() (*object.Task, error) { return machine.Suspend(r.ctx) })
			if c.suspended != "" {
				_ = r.done(machine.PowerOff(r.ctx))
			}
			r.mustEnd("a snapshot of the stopped VM", "", func() (*object.Task, error) {
				return machine.CreateSnapshot(r.ctx, "t", "", false, false)
			})
		})
	}
}

// started runs the VM on the cluster's first host.
func (r *rig) started(cluster string, spec types.VirtualMachineConfigSpec) *object.VirtualMachine {
	r.Helper()
	on := r.host(cluster + "-01.lab.test")
	made := r.result(r.folder().CreateVM(r.ctx, spec, object.NewResourcePool(r.client, r.poolOf(cluster)), on))
	if made.fault != nil {
		r.Fatalf("%s was refused: %T %s", spec.Name, made.fault, made.message)
	}
	machine := object.NewVirtualMachine(r.client, made.value.(types.ManagedObjectReference))
	if fault := r.powerOn(machine); fault != nil {
		r.Fatalf("%s does not start: %T", spec.Name, fault)
	}
	return machine
}

func (r *rig) mustEnd(what, want string, begin func() (*object.Task, error)) {
	r.Helper()
	ended := r.result(begin())
	if want == "" && ended.fault != nil {
		r.Errorf("%s was refused: %T %s", what, ended.fault, ended.message)
	}
	if want != "" && (ended.fault == nil || kind(ended.fault) != want) {
		r.Errorf("%s ended in %T, want %s", what, ended.fault, want)
	}
}
