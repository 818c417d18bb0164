package server

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// A running VM with a function of a host's PCI device is neither moved, suspended nor snapshotted. One with vGPUs is,
// unless unified memory, debuggers or profilers are switched on, which keep it from being moved and suspended.
// Sources: VMware, vSphere Networking, "DirectPath I/O" and "SR-IOV Support"; Broadcom KB 401437; Frank Denneman,
// article of 2023-06-06; NVIDIA AI Enterprise, appendix on C-Series. The faults of migration and snapshot are those by
// which the vSphere API tells of devices; which one a suspension ends in is not documented. A VM that is powered off
// has no state of a device, and is left to the simulator.

// directDevice is the label of a device that the VM has of its host, "" if it has none.
func directDevice(w wish) string {
	for _, device := range w.devices {
		if isPCI(device) && vgpuOf(device) == "" {
			return object.VirtualDeviceList(w.devices).Name(device)
		}
	}
	return ""
}

// tiedDevice is the label of a device that keeps the VM where it is, "" if none does.
func tiedDevice(w wish) string {
	if label := directDevice(w); label != "" {
		return label
	}
	at := slices.IndexFunc(w.devices, func(device types.BaseVirtualDevice) bool { return vgpuOf(device) != "" })
	if at < 0 || !watched(w.extra) {
		return ""
	}
	return object.VirtualDeviceList(w.devices).Name(w.devices[at])
}

// watching are NVIDIA's switches that tie a vGPU to its host, as pciPassthru0.cfg.enable_uvm.
var watching = regexp.MustCompile(`(?i)^pciPassthru\d*\.cfg\.(enable_uvm|enable_debugging|enable_profiling)$`)

func watched(options []types.BaseOptionValue) bool {
	return slices.ContainsFunc(options, func(option types.BaseOptionValue) bool {
		value := option.GetOptionValue()
		on := strings.ToLower(fmt.Sprint(value.Value))
		return watching.MatchString(value.Key) && (on == "1" || on == "true")
	})
}

func unsupported(label string) types.LocalizedMethodFault {
	return localized(&types.DeviceNotSupported{Device: label})
}

// now is the VM's configuration, and whether it runs.
func (v *vm) now(ctx *simulator.Context) (w wish) {
	locked(ctx, v.VirtualMachine, func() {
		if v.Config != nil {
			w = present(v.Config, v.Runtime.PowerState)
		}
	})
	return w
}

// CreateSnapshotTask is CreateSnapshotExTask of older clients.
func (v *vm) CreateSnapshotTask(ctx *simulator.Context, req *types.CreateSnapshot_Task) soap.HasFault {
	task := v.snapshot(ctx, "CreateSnapshot_Task", func(ctx *simulator.Context) types.ManagedObjectReference {
		return v.VirtualMachine.CreateSnapshotTask(ctx, req).(*methods.CreateSnapshot_TaskBody).Res.Returnval
	})
	return &methods.CreateSnapshot_TaskBody{Res: &types.CreateSnapshot_TaskResponse{Returnval: task}}
}

// CreateSnapshotExTask takes a snapshot, with the running VM's memory if asked for it.
func (v *vm) CreateSnapshotExTask(ctx *simulator.Context, req *types.CreateSnapshotEx_Task) soap.HasFault {
	task := v.snapshot(ctx, "CreateSnapshotEx_Task", func(ctx *simulator.Context) types.ManagedObjectReference {
		return v.VirtualMachine.CreateSnapshotExTask(ctx, req).(*methods.CreateSnapshotEx_TaskBody).Res.Returnval
	})
	return &methods.CreateSnapshotEx_TaskBody{Res: &types.CreateSnapshotEx_TaskResponse{Returnval: task}}
}

func (v *vm) snapshot(ctx *simulator.Context, method string, begin func(*simulator.Context) types.ManagedObjectReference) types.ManagedObjectReference {
	return v.guarded(ctx, method, begin, func(now wish) types.BaseMethodFault {
		if label := directDevice(now); label != "" && now.poweredOn {
			return &types.SnapshotIncompatibleDeviceInVm{Fault: unsupported(label)}
		}
		return nil
	})
}

// RelocateVMTask moves the VM; the simulator books nothing on the host it comes to.
func (v *vm) RelocateVMTask(ctx *simulator.Context, req *types.RelocateVM_Task) soap.HasFault {
	begin := func(ctx *simulator.Context) types.ManagedObjectReference {
		return v.VirtualMachine.RelocateVMTask(ctx, req).(*methods.RelocateVM_TaskBody).Res.Returnval
	}
	task := v.guarded(ctx, "RelocateVM_Task", begin, func(now wish) types.BaseMethodFault {
		if label := tiedDevice(now); label != "" && now.poweredOn && v.elsewhere(ctx, req.Spec.Host) {
			return &types.DisallowedMigrationDeviceAttached{Fault: unsupported(label)}
		}
		return nil
	})
	return &methods.RelocateVM_TaskBody{Res: &types.RelocateVM_TaskResponse{Returnval: task}}
}

// elsewhere: a host is named, and it is not the VM's own.
func (v *vm) elsewhere(ctx *simulator.Context, host *types.ManagedObjectReference) (other bool) {
	locked(ctx, v.VirtualMachine, func() {
		other = host != nil && (v.Runtime.Host == nil || *host != *v.Runtime.Host)
	})
	return other
}

// guarded is one of the simulator's own tasks, which the check may refuse.
func (v *vm) guarded(ctx *simulator.Context, method string, begin func(*simulator.Context) types.ManagedObjectReference, check func(wish) types.BaseMethodFault) types.ManagedObjectReference {
	return v.lab.start(ctx, job{Method: method, Entity: v, Name: v.Name,
		Run: func(ctx *simulator.Context, _ *simulator.Task) (types.AnyType, types.BaseMethodFault) {
			if fault := check(v.now(ctx)); fault != nil {
				return nil, fault
			}
			return delegate(ctx, v.VirtualMachine, func() types.ManagedObjectReference { return begin(ctx) })
		}})
}
