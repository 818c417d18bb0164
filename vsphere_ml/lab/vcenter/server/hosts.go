package server

import (
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/vmware/govmomi/simulator"
	simulated "github.com/vmware/govmomi/simulator/esx"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/esxi"
	"vsml.dev/lab/vcenter/rack"
	"vsml.dev/lab/vcenter/topology"
)

// esx is one host with its managers.
type esx struct {
	name     string
	model    topology.Model
	system   *simulator.HostSystem
	cluster  *simulator.ClusterComputeResource
	graphics *graphicsManager
	passthru *passthruSystem
	hardware *assignableHardware
	services *serviceSystem
	access   *accessManager
	address  string       // of its management interface
	ssh      *esxi.Server // nil until its SSH service was first started
	entering atomic.Int32 // tasks that put it into maintenance mode
}

// addHosts puts every host of the topology into its cluster: registered directly, because a task for each takes
// minutes at a thousand hosts.
func (l *Lab) addHosts() error {
	for _, described := range l.File.Clusters {
		owner := l.site.clusters[described.Name]
		for _, name := range described.Hosts {
			model, ok := l.File.HostModel(described, name)
			if !ok {
				return fmt.Errorf("host %q: no such model", name)
			}
			l.addHost(owner, name, model)
		}
		l.dedicate(described, owner)
	}
	return nil
}

func (l *Lab) addHost(owner *simulator.ClusterComputeResource, name string, model topology.Model) {
	ctx := l.Context
	template := simulated.HostSystem
	template.Network = owner.Network[:1:1]
	machine := &esx{name: name, model: model, cluster: owner, system: simulator.NewHostSystem(ctx, template)}
	host := machine.system
	ctx.Map.PutEntity(owner, ctx.Map.NewEntity(host))
	host.Summary.Host, host.Config.Host = &host.Self, host.Self
	l.equip(machine, len(l.site.hosts))
	l.employ(machine)
	owner.Host = append(owner.Host, host.Self)
	addCapacity(owner.Summary.GetComputeResourceSummary(), host)
	l.site.hosts[name] = machine
	l.site.byReference[host.Self] = machine
	if own, ok := l.File.HostNamed(name); ok {
		l.site.reboots.change(name, hostChange{RebootMS: own.RebootMS})
		if own.Profile {
			host.ComplianceCheckResult = l.compliance(host.Self, own.ProfileDiffers)
		}
	}
	l.refresh(ctx, name)
}

// compliance is the host's last check against its host profile. Source: the vSphere API's ComplianceResult.
func (l *Lab) compliance(host types.ManagedObjectReference, differs []string) *types.ComplianceResult {
	found := &types.ComplianceResult{
		Profile:          &types.ManagedObjectReference{Type: "HostProfile", Value: "hostprofile-1"},
		ComplianceStatus: string(types.ComplianceResultStatusCompliant), Entity: &host, CheckTime: types.NewTime(l.Started),
	}
	for _, text := range differs {
		found.ComplianceStatus = string(types.ComplianceResultStatusNonCompliant)
		found.Failure = append(found.Failure, types.ComplianceFailure{
			FailureType: "com.vmware.vim.profile.differs", Message: types.LocalizableMessage{Key: "differs", Message: text},
		})
	}
	return found
}

// equip gives the host its model's hardware and names.
func (l *Lab) equip(machine *esx, number int) {
	host, model, api := machine.system, machine.model, apiVersion(l.File)
	machine.address = loopback(number)
	host.Name, host.Summary.Config.Name = machine.name, machine.name
	host.Hardware = hardwareInfo(l.view(machine))
	host.Summary.Hardware = hardwareSummary(host.Hardware, model)
	host.Runtime.ConnectionState = types.HostSystemConnectionStateConnected
	host.Runtime.PowerState = types.HostSystemPowerStatePoweredOn
	host.Runtime.BootTime = types.NewTime(time.Now().Add(-48 * time.Hour))
	host.Capability = capability(host.Capability, api)
	config := host.Config
	product(&config.Product, model)
	host.Summary.Config.Product = &config.Product
	config.AssignableHardwareConfig = &types.HostAssignableHardwareConfig{}
	config.Network.Pnic = physicalNics(number, model)
	config.Network.Vnic = managementInterface(config.Network.Vnic, machine.address)
	config.Network.RdmaDevice = rdmaDevices(model)
	config.Option = append(config.Option, kernelOptions(l.view(machine))...)
	config.Option = append(config.Option, &types.OptionValue{Key: pvrdmaOption, Value: model.PVRDMAVmknic})
	l.setFirewall(host, model.PVRDMAFirewall)
}

// view is the host's hardware and bookings as they are now.
func (l *Lab) view(machine *esx) rack.View {
	view, _ := l.Rack.Host(machine.name)
	return view
}

// refresh shows the rack's present state in the properties of the host and its managers, to watchers too.
// Call it after every change of a booking or setting, without holding a lock of these objects by another context.
func (l *Lab) refresh(ctx *simulator.Context, name string) {
	machine, ok := l.site.hosts[name]
	if !ok {
		return
	}
	view, api := l.view(machine), apiVersion(l.File)
	profiles := l.Rack.Profiles(name)
	cards, config := graphicsInfo(view, api), graphicsConfig(view, api)
	names, capabilities := profileNames(profiles), sharedCapabilities(profiles)
	functions, bindings := passthruInfos(view, api), bindings(view)
	ctx.Map.AtomicUpdate(ctx, machine.system, []types.PropertyChange{
		{Name: "hardware.pciDevice", Val: pciDevices(view)},
		{Name: "hardware.numaInfo", Val: numaInfo(view)},
		{Name: "config.graphicsInfo", Val: cards},
		{Name: "config.graphicsConfig", Val: config},
		{Name: "config.sharedPassthruGpuTypes", Val: names},
		{Name: "config.sharedGpuCapabilities", Val: capabilities},
		{Name: "config.pciPassthruInfo", Val: functions},
		{Name: "config.assignableHardwareBinding", Val: bindings},
	})
	ctx.Map.AtomicUpdate(ctx, machine.graphics, []types.PropertyChange{
		{Name: "graphicsInfo", Val: cards}, {Name: "graphicsConfig", Val: config},
		{Name: "sharedPassthruGpuTypes", Val: names}, {Name: "sharedGpuCapabilities", Val: capabilities},
	})
	ctx.Map.AtomicUpdate(ctx, machine.passthru, []types.PropertyChange{{Name: "pciPassthruInfo", Val: functions}})
	if machine.hardware != nil {
		ctx.Map.AtomicUpdate(ctx, machine.hardware, []types.PropertyChange{{Name: "binding", Val: bindings}})
	}
	if !reflect.DeepEqual(view, l.view(machine)) {
		l.refresh(ctx, name) // the rack changed meanwhile, and another's refresh may have been overwritten
	}
}

// employ gives the host managers with ids of their own; the simulator's template shares one id among all hosts.
func (l *Lab) employ(machine *esx) {
	dismissAbsent(l.Context, &machine.system.ConfigManager)
	machine.graphics = newGraphicsManager(l, machine)
	machine.passthru = newPassthruSystem(l, machine)
	machine.services = newServiceSystem(l, machine)
	managers := &machine.system.ConfigManager
	managers.GraphicsManager = l.appoint(machine.graphics, &machine.graphics.Self, "HostGraphicsManager", "graphicsManager", machine)
	managers.PciPassthruSystem = l.appoint(machine.passthru, &machine.passthru.Self, "HostPciPassthruSystem", "pciPassthruSystem", machine)
	managers.ServiceSystem = l.appoint(machine.services, &machine.services.Self, "HostServiceSystem", "serviceSystem", machine)
	own, _ := l.File.HostNamed(machine.name)
	machine.access = newAccessManager(machine, own)
	managers.HostAccessManager = l.appoint(machine.access, &machine.access.Self, "HostAccessManager", "hostAccessManager", machine)
	modules := &moduleSystem{lab: l, esx: machine}
	managers.KernelModuleSystem = l.appoint(modules, &modules.Self, "HostKernelModuleSystem", "kernelModuleSystem", machine)
	managers.ImageConfigManager = l.appointImageConfig(machine)
	if older(apiVersion(l.File), "7.0.0.0") {
		return // assignable hardware came with vSphere 7.0
	}
	machine.hardware = newAssignableHardware(l, machine)
	managers.AssignableHardwareManager = l.appoint(machine.hardware, &machine.hardware.Self, "HostAssignableHardwareManager", "assignableHardwareManager", machine)
}

// dismissAbsent unsets the managers that the template names and nobody serves: a client can tell an unset reference
// from a broken one.
func dismissAbsent(ctx *simulator.Context, managers *types.HostConfigManager) {
	fields := reflect.ValueOf(managers).Elem()
	for i := range fields.NumField() {
		reference, ok := fields.Field(i).Interface().(*types.ManagedObjectReference)
		if ok && reference != nil && ctx.Map.Get(*reference) == nil {
			fields.Field(i).SetZero()
		}
	}
}

func (l *Lab) appointImageConfig(machine *esx) *types.ManagedObjectReference {
	manager := &imageConfig{lab: l, machine: machine}
	return l.appoint(manager, &manager.Self, "HostImageConfigManager", "imageConfigManager", machine)
}

func (l *Lab) appoint(manager mo.Reference, self *types.ManagedObjectReference, kind, prefix string, machine *esx) *types.ManagedObjectReference {
	*self = types.ManagedObjectReference{Type: kind, Value: prefix + "-" + machine.system.Self.Value}
	l.Context.Map.Put(manager)
	reference := *self
	return &reference
}

// managementInterface is vmk0 with the host's own address.
func managementInterface(template []types.HostVirtualNic, address string) []types.HostVirtualNic {
	own := slices.Clone(template)
	for i := range own {
		ip := *own[i].Spec.Ip
		ip.Dhcp, ip.IpAddress = false, address
		own[i].Spec.Ip = &ip
	}
	return own
}

func hardwareSummary(hardware *types.HostHardwareInfo, model topology.Model) *types.HostHardwareSummary {
	return &types.HostHardwareSummary{
		Vendor: hardware.SystemInfo.Vendor, Model: hardware.SystemInfo.Model, Uuid: hardware.SystemInfo.Uuid,
		MemorySize: hardware.MemorySize, CpuModel: model.CPUName, CpuMhz: int32(model.CPUMHz),
		NumCpuPkgs: hardware.CpuInfo.NumCpuPackages, NumCpuCores: hardware.CpuInfo.NumCpuCores,
		NumCpuThreads: hardware.CpuInfo.NumCpuThreads, NumNics: int32(len(model.NICs) + 1), NumHBAs: 1,
	}
}

func capability(template *types.HostCapability, api string) *types.HostCapability {
	own := *template
	own.AssignableHardwareSupported = types.NewBool(!older(api, "7.0.0.0"))
	own.DeviceRebindWithoutRebootSupported = types.NewBool(!older(api, "7.0.0.0"))
	return &own
}

// product is what the host says of its ESXi.
func product(about *types.AboutInfo, model topology.Model) {
	about.Version, about.Build = model.ESXiVersion, model.ESXiBuild
	about.FullName = fmt.Sprintf("VMware ESXi %s build-%s", model.ESXiVersion, model.ESXiBuild)
	about.ApiVersion = model.ESXiVersion + ".0"
	about.LicenseProductVersion = model.ESXiVersion
}

// kernelOptions are the boot options that this ESXi version shows as advanced settings too.
func kernelOptions(view rack.View) []types.BaseOptionValue {
	var options []types.BaseOptionValue
	for name, option := range view.Kernel {
		if option.Advanced {
			options = append(options, &types.OptionValue{Key: kernelPrefix + name, Value: option.Configured})
		}
	}
	return options
}

func addCapacity(summary *types.ComputeResourceSummary, host *simulator.HostSystem) {
	hardware := host.Summary.Hardware
	mhz := hardware.CpuMhz * int32(hardware.NumCpuCores)
	summary.TotalCpu += mhz
	summary.EffectiveCpu += mhz
	summary.TotalMemory += hardware.MemorySize
	summary.EffectiveMemory += hardware.MemorySize >> 20 // in MB, unlike totalMemory
	summary.NumCpuCores += hardware.NumCpuCores
	summary.NumCpuThreads += hardware.NumCpuThreads
	summary.NumHosts++
	summary.NumEffectiveHosts++
	summary.OverallStatus = types.ManagedEntityStatusGreen
}
