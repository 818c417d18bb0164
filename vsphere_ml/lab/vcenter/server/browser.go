package server

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	simulated "github.com/vmware/govmomi/simulator/esx"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/rack"
)

// machines are the hosts the browser stands for, or the one asked for; nil when that one is not among them.
func (b *browser) machines(ctx *simulator.Context, only *types.ManagedObjectReference) []*esx {
	var found []*esx
	for _, owner := range b.lab.site.clusters {
		if owner.EnvironmentBrowser == nil || *owner.EnvironmentBrowser != b.Self {
			continue
		}
		ctx.WithLock(owner, func() {
			for _, reference := range owner.Host {
				if machine := b.lab.site.byReference[reference]; machine != nil && (only == nil || *only == reference) {
					found = append(found, machine)
				}
			}
		})
	}
	return found
}

// QueryConfigTarget says what VMs on the host, or on any host of the cluster, could use.
func (b *browser) QueryConfigTarget(ctx *simulator.Context, request *types.QueryConfigTarget) soap.HasFault {
	machines := b.machines(ctx, request.Host)
	if len(machines) == 0 && request.Host != nil {
		return &methods.QueryConfigTargetBody{Fault_: simulator.Fault("", &types.ManagedObjectNotFound{Obj: *request.Host})}
	}
	answer := b.EnvironmentBrowser.QueryConfigTarget(ctx, request).(*methods.QueryConfigTargetBody)
	target := answer.Res.Returnval
	target.NumCpus, target.NumCpuCores, target.NumNumaNodes = 0, 0, 0
	target.AutoVmotion = types.NewBool(true)
	for _, machine := range machines {
		b.lab.offer(target, machine)
	}
	return answer
}

// offer adds what the host has to a target.
func (l *Lab) offer(target *types.ConfigTarget, machine *esx) {
	view := l.view(machine)
	cpu := hardwareInfo(view).CpuInfo
	target.NumCpus = max(target.NumCpus, int32(cpu.NumCpuPackages))
	target.NumCpuCores = max(target.NumCpuCores, int32(cpu.NumCpuCores))
	target.NumNumaNodes = max(target.NumNumaNodes, int32(len(view.Model.NUMA)))
	target.MaxCpusPerHost = max(target.MaxCpusPerHost, int32(cpu.NumCpuThreads))
	target.SupportedMaxMemMB = max(target.SupportedMaxMemMB, int32(view.MemoryMiB))
	target.MaxMemMBOptimalPerf = target.SupportedMaxMemMB
	target.PciPassthrough = append(target.PciPassthrough, passthroughTargets(machine, view)...)
	target.Sriov = append(target.Sriov, sriovTargets(machine, view)...)
	target.DynamicPassthrough = union(target.DynamicPassthrough, dynamicPassthrough(view))
	profiles := l.Rack.Profiles(machine.name)
	target.SharedGpuPassthroughTypes = union(target.SharedGpuPassthroughTypes, sharedTargets(profileNames(profiles)))
	if !older(apiVersion(l.File), "7.0.3.0") {
		target.VgpuDeviceInfo = union(target.VgpuDeviceInfo, vgpuDevices(view))
		target.VgpuProfileInfo = union(target.VgpuProfileInfo, vgpuProfiles(profiles))
	}
	target.VendorDeviceGroupInfo = union(target.VendorDeviceGroupInfo, l.deviceGroups(machine))
}

// targetInfo is any entry of a config target.
type targetInfo interface {
	types.VirtualMachineDynamicPassthroughInfo | types.VirtualMachinePciSharedGpuPassthroughInfo |
		types.VirtualMachineVgpuDeviceInfo | types.VirtualMachineVgpuProfileInfo | types.VirtualMachineVendorDeviceGroupInfo
}

// union adds what is not listed yet, told by its name.
func union[T targetInfo](listed, more []T) []T {
	for _, entry := range more {
		if !slices.ContainsFunc(listed, func(old T) bool { return nameOf(old) == nameOf(entry) }) {
			listed = append(listed, entry)
		}
	}
	return listed
}

func nameOf(entry any) string {
	switch e := entry.(type) {
	case types.VirtualMachineDynamicPassthroughInfo:
		return e.Name + "\x00" + e.CustomLabel
	case types.VirtualMachinePciSharedGpuPassthroughInfo:
		return e.Name
	case types.VirtualMachineVgpuDeviceInfo:
		return e.Name
	case types.VirtualMachineVgpuProfileInfo:
		return e.Name
	case types.VirtualMachineVendorDeviceGroupInfo:
		return e.Name
	}
	return ""
}

func sharedTargets(names []string) []types.VirtualMachinePciSharedGpuPassthroughInfo {
	var infos []types.VirtualMachinePciSharedGpuPassthroughInfo
	for _, name := range names {
		infos = append(infos, types.VirtualMachinePciSharedGpuPassthroughInfo{
			VirtualMachineTargetInfo: types.VirtualMachineTargetInfo{Name: name}, Vgpu: name,
		})
	}
	return infos
}

// passthroughTargets are the functions enabled for DirectPath I/O.
func passthroughTargets(machine *esx, view rack.View) []types.BaseVirtualMachinePciPassthroughInfo {
	var targets []types.BaseVirtualMachinePciPassthroughInfo
	add := func(device types.HostPciDevice, set rack.Passthrough) {
		if set.Active {
			info := passthroughTarget(machine, device)
			targets = append(targets, &info)
		}
	}
	for _, gpu := range view.GPUs {
		add(gpuDevice(gpu), gpu.Passthrough)
	}
	for _, nic := range view.NICs {
		add(nicDevice(nic), nic.Passthrough)
	}
	return targets
}

func passthroughTarget(machine *esx, device types.HostPciDevice) types.VirtualMachinePciPassthroughInfo {
	return types.VirtualMachinePciPassthroughInfo{
		VirtualMachineTargetInfo: types.VirtualMachineTargetInfo{Name: device.Id},
		PciDevice:                device, SystemId: stableUUID(machine.name),
	}
}

// sriovTargets are the physical functions with SR-IOV in force.
func sriovTargets(machine *esx, view rack.View) []types.VirtualMachineSriovInfo {
	var targets []types.VirtualMachineSriovInfo
	for _, nic := range view.NICs {
		if nic.SRIOV.Active > 0 && !nic.Passthrough.Active {
			targets = append(targets, types.VirtualMachineSriovInfo{
				VirtualMachinePciPassthroughInfo: passthroughTarget(machine, nicDevice(nic)), Pnic: nic.VMNic,
			})
		}
	}
	return targets
}

// oldestHardware is the oldest virtual hardware version the lab's hosts offer.
const oldestHardware = 10

// describeHardwareVersions is the list of hardware versions and the hosts that run each.
func (b *browser) describeHardwareVersions(ctx *simulator.Context) []types.VirtualMachineConfigOptionDescriptor {
	machines := b.machines(ctx, nil)
	newest := 0
	for _, machine := range machines {
		newest = max(newest, machine.model.MaxHardwareVersion)
	}
	var descriptors []types.VirtualMachineConfigOptionDescriptor
	for _, version := range types.GetHardwareVersions() {
		if int(version) < oldestHardware || int(version) > newest {
			continue
		}
		descriptor := types.VirtualMachineConfigOptionDescriptor{
			Key: version.String(), Description: "Virtual hardware version " + version.String()[len("vmx-"):],
			CreateSupported: true, RunSupported: true, UpgradeSupported: true, DefaultConfigOption: int(version) == newest,
		}
		for _, machine := range machines {
			if machine.model.MaxHardwareVersion >= int(version) {
				descriptor.Host = append(descriptor.Host, machine.system.Self)
			}
		}
		descriptors = append(descriptors, descriptor)
	}
	return descriptors
}

// QueryConfigOptionDescriptor lists the hardware versions.
func (b *browser) QueryConfigOptionDescriptor(ctx *simulator.Context, _ *types.QueryConfigOptionDescriptor) soap.HasFault {
	return &methods.QueryConfigOptionDescriptorBody{Res: &types.QueryConfigOptionDescriptorResponse{
		Returnval: b.describeHardwareVersions(ctx),
	}}
}

// QueryConfigOption is QueryConfigOptionEx by its older name.
func (b *browser) QueryConfigOption(ctx *simulator.Context, request *types.QueryConfigOption) soap.HasFault {
	option, fault := b.option(ctx, request.Key, request.Host, nil)
	if fault != nil {
		return &methods.QueryConfigOptionBody{Fault_: simulator.Fault("", fault)}
	}
	return &methods.QueryConfigOptionBody{Res: &types.QueryConfigOptionResponse{Returnval: option}}
}

// QueryConfigOptionEx describes one hardware version, the newest unless one is named.
func (b *browser) QueryConfigOptionEx(ctx *simulator.Context, request *types.QueryConfigOptionEx) soap.HasFault {
	spec := request.Spec
	if spec == nil {
		spec = &types.EnvironmentBrowserConfigOptionQuerySpec{}
	}
	option, fault := b.option(ctx, spec.Key, spec.Host, spec.GuestId)
	if fault != nil {
		return &methods.QueryConfigOptionExBody{Fault_: simulator.Fault("", fault)}
	}
	return &methods.QueryConfigOptionExBody{Res: &types.QueryConfigOptionExResponse{Returnval: option}}
}

func (b *browser) option(ctx *simulator.Context, key string, only *types.ManagedObjectReference, guests []string) (*types.VirtualMachineConfigOption, types.BaseMethodFault) {
	machines := b.machines(ctx, only)
	if len(machines) == 0 {
		return nil, nil // a cluster without hosts has no options
	}
	descriptors := b.describeHardwareVersions(ctx)
	wanted := func(d types.VirtualMachineConfigOptionDescriptor) bool {
		return d.Key == key && (only == nil || slices.Contains(d.Host, *only))
	}
	if key == "" {
		key = types.HardwareVersion(machines[0].model.MaxHardwareVersion).String()
	}
	if !slices.ContainsFunc(descriptors, wanted) {
		return nil, &types.InvalidArgument{InvalidProperty: "key"}
	}
	var profiles []string
	for _, machine := range machines {
		for _, name := range profileNames(b.lab.Rack.Profiles(machine.name)) {
			if !slices.Contains(profiles, name) {
				profiles = append(profiles, name)
			}
		}
	}
	return configOption(key, guests, hardwareOptions(profiles, apiVersion(b.lab.File))), nil
}

// configOption fills what the API requires of the type; the simulator leaves it empty, and pyvmomi refuses that.
// Terraform's provider compares hwVersion with a VM's version, and upgrades the VM where it is lower.
func configOption(key string, guests []string, hardware types.VirtualHardwareOption) *types.VirtualMachineConfigOption {
	hardware.HwVersion = int32(hardwareVersion(key))
	return &types.VirtualMachineConfigOption{
		Version: key, Description: "Virtual hardware version " + key[len("vmx-"):],
		GuestOSDescriptor:    guestDescriptors(guests),
		HardwareOptions:      hardware,
		Capabilities:         types.VirtualMachineCapability{SecureBootSupported: types.NewBool(true)},
		DefaultDevice:        simulated.VirtualDevice,
		SupportedMonitorType: []string{"release", "stats", "debug"},
	}
}
