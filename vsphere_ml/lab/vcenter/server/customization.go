package server

import (
	"net/netip"
	"regexp"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// customizations are what guests are to be told at their next power-on, by VM. The simulator tells its guests at once,
// and takes an address for reached that nobody has yet (govmomi 0.56.0).
type customizations struct {
	mu      sync.Mutex
	pending map[types.ManagedObjectReference]types.CustomizationSpec
}

func (c *customizations) put(machine types.ManagedObjectReference, spec types.CustomizationSpec) (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, waits := c.pending[machine]; waits {
		return false
	}
	if c.pending == nil {
		c.pending = map[types.ManagedObjectReference]types.CustomizationSpec{}
	}
	c.pending[machine] = spec
	return true
}

// take is what waits for the VM, which then waits no longer.
func (c *customizations) take(machine types.ManagedObjectReference) (types.CustomizationSpec, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	spec, waits := c.pending[machine]
	delete(c.pending, machine)
	return spec, waits
}

// CustomizeVMTask notes what the guest is to be told at its next power-on.
func (v *vm) CustomizeVMTask(ctx *simulator.Context, req *types.CustomizeVM_Task) soap.HasFault {
	spec := req.Spec
	task := v.lab.start(ctx, job{Method: "CustomizeVM_Task", Entity: v, Name: v.Name,
		Run: func(ctx *simulator.Context, _ *simulator.Task) (types.AnyType, types.BaseMethodFault) {
			return nil, v.lab.customize(ctx, v.VirtualMachine, &spec)
		}})
	return &methods.CustomizeVM_TaskBody{Res: &types.CustomizeVM_TaskResponse{Returnval: task}}
}

// customize notes what the guest is to be told, unless it is nothing.
func (l *Lab) customize(ctx *simulator.Context, machine *simulator.VirtualMachine, wanted *types.CustomizationSpec) (fault types.BaseMethodFault) {
	if wanted == nil {
		return nil
	}
	locked(ctx, machine, func() {
		if fault = checkCustomization(machine, wanted); fault != nil {
			return
		}
		if !l.customizations.put(machine.Self, replica(*wanted)) {
			fault = &types.CustomizationPending{}
			return
		}
		l.showCustomization(ctx, machine, types.GuestInfoCustomizationStatusTOOLSDEPLOYPKG_PENDING, "pending")
	})
	return fault
}

// checkCustomization refuses as the API's reference has it for CustomizeVM_Task, NicSettingMismatch,
// UncustomizableGuest (that Sysprep is for Windows alone is known; that the fault is this one is not verified) and
// IpHostnameGeneratorError. Take the VM's lock.
func checkCustomization(machine *simulator.VirtualMachine, wanted *types.CustomizationSpec) types.BaseMethodFault {
	if machine.Runtime.PowerState != types.VirtualMachinePowerStatePoweredOff {
		return &types.InvalidPowerState{
			RequestedState: types.VirtualMachinePowerStatePoweredOff, ExistingState: machine.Runtime.PowerState,
		}
	}
	prep, ok := wanted.Identity.(*types.CustomizationLinuxPrep)
	if !ok {
		return &types.UncustomizableGuest{UncustomizableGuestOS: machine.Config.GuestId}
	}
	if adapters := len(ethernetCards(machine.Config.Hardware.Device)); adapters != len(wanted.NicSettingMap) {
		return &types.NicSettingMismatch{NumberOfNicsInSpec: int32(len(wanted.NicSettingMap)), NumberOfNicsInVM: int32(adapters)}
	}
	if fault := checkName(prep.HostName); fault != nil {
		return fault
	}
	for _, mapping := range wanted.NicSettingMap {
		if fault := checkAdapter(mapping.Adapter); fault != nil {
			return fault
		}
	}
	return nil
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)

func checkName(name types.BaseCustomizationName) types.BaseMethodFault {
	switch n := name.(type) {
	case *types.CustomizationFixedName:
		if !hostName.MatchString(n.Name) {
			return &types.InvalidArgument{InvalidProperty: "spec.identity.hostName.name"}
		}
		return nil
	case *types.CustomizationVirtualMachineName, *types.CustomizationPrefixName:
		return nil
	}
	return &types.IpHostnameGeneratorError{} // nobody can be asked, and no program makes names here
}

func checkAdapter(adapter types.CustomizationIPSettings) types.BaseMethodFault {
	switch ip := adapter.Ip.(type) {
	case *types.CustomizationDhcpIpGenerator:
		return nil
	case *types.CustomizationFixedIp:
		if _, ok := withMask(ip.IpAddress, adapter.SubnetMask); !ok {
			return &types.InvalidArgument{InvalidProperty: "spec.nicSettingMap.adapter"}
		}
		return nil
	}
	return &types.IpHostnameGeneratorError{}
}

// withMask is an address in a network, such as 10.0.0.1/24.
func withMask(address, mask string) (netip.Prefix, bool) {
	ip, errAddress := netip.ParseAddr(address)
	bits, errMask := netip.ParseAddr(mask)
	if errAddress != nil || errMask != nil || !ip.Is4() || !bits.Is4() {
		return netip.Prefix{}, false
	}
	ones := 0
	for _, octet := range bits.AsSlice() {
		for ; octet&0x80 != 0; octet <<= 1 {
			ones++
		}
	}
	return netip.PrefixFrom(ip, ones), true
}

// hostNameOf is the host name that the guest gets.
func hostNameOf(name types.BaseCustomizationName, machine string) string {
	switch n := name.(type) {
	case *types.CustomizationFixedName:
		return n.Name
	case *types.CustomizationPrefixName:
		return n.Base + "-1"
	}
	return machine
}

// customizing tells the hook's program what waits for the VM's guest.
func (e *powerEvent) customizing(spec types.CustomizationSpec) {
	prep := spec.Identity.(*types.CustomizationLinuxPrep)
	e.Customization = &hookCustomization{
		Hostname: hostNameOf(prep.HostName, e.VM), Domain: prep.Domain,
		DNS: spec.GlobalIPSettings.DnsServerList, Search: spec.GlobalIPSettings.DnsSuffixList,
	}
	cards := 0
	for i := range e.NICs {
		if e.NICs[i].Kind == "passthrough" {
			continue // vCenter cannot customize what it handed over whole
		}
		adapter := spec.NicSettingMap[cards].Adapter
		if ip, ok := adapter.Ip.(*types.CustomizationFixedIp); ok {
			address, _ := withMask(ip.IpAddress, adapter.SubnetMask)
			e.NICs[i].Address, e.NICs[i].Gateways = address.String(), adapter.Gateway
		}
		cards++
	}
}

// showCustomization shows how far a guest's customization is; take the VM's lock. The property came with vSphere 7.0 U2.
func (l *Lab) showCustomization(ctx *simulator.Context, machine *simulator.VirtualMachine, status types.GuestInfoCustomizationStatus, waits string) {
	changes := []types.PropertyChange{{Name: "config.tools.pendingCustomization", Val: waits}}
	if !older(apiVersion(l.File), "7.0.2.0") {
		changes = append(changes, types.PropertyChange{Name: "guest.customizationInfo", Val: customizationInfo(machine, status)})
	}
	ctx.Map.Update(ctx, machine, changes)
}

func customizationInfo(machine *simulator.VirtualMachine, status types.GuestInfoCustomizationStatus) *types.GuestInfoCustomizationInfo {
	info := &types.GuestInfoCustomizationInfo{CustomizationStatus: string(status)}
	now := time.Now()
	switch status {
	case types.GuestInfoCustomizationStatusTOOLSDEPLOYPKG_RUNNING:
		info.StartTime = &now
	case types.GuestInfoCustomizationStatusTOOLSDEPLOYPKG_SUCCEEDED, types.GuestInfoCustomizationStatusTOOLSDEPLOYPKG_FAILED:
		info.EndTime = &now
		if before := machine.Guest.CustomizationInfo; before != nil {
			info.StartTime = before.StartTime
		}
	}
	return info
}

// customizationBegins and customizationEnds show a guest's customization in its properties and in vCenter's events.
func (l *Lab) customizationBegins(machine *simulator.VirtualMachine) {
	l.customizationIs(machine, types.GuestInfoCustomizationStatusTOOLSDEPLOYPKG_RUNNING, func(told types.CustomizationEvent) types.BaseEvent {
		return &types.CustomizationStartedEvent{CustomizationEvent: told}
	})
}

func (l *Lab) customizationEnds(machine *simulator.VirtualMachine, err error) {
	if err != nil {
		l.customizationIs(machine, types.GuestInfoCustomizationStatusTOOLSDEPLOYPKG_FAILED, func(told types.CustomizationEvent) types.BaseEvent {
			return &types.CustomizationFailed{CustomizationEvent: told, Reason: err.Error()}
		})
		return
	}
	l.customizationIs(machine, types.GuestInfoCustomizationStatusTOOLSDEPLOYPKG_SUCCEEDED, func(told types.CustomizationEvent) types.BaseEvent {
		return &types.CustomizationSucceeded{CustomizationEvent: told}
	})
}

func (l *Lab) customizationIs(machine *simulator.VirtualMachine, status types.GuestInfoCustomizationStatus, event func(types.CustomizationEvent) types.BaseEvent) {
	ctx := &simulator.Context{Map: l.Context.Map, Session: l.Context.Session}
	var told types.CustomizationEvent
	ctx.WithLock(machine, func() {
		l.showCustomization(ctx, machine, status, "")
		told.Vm = &types.VmEventArgument{EntityEventArgument: types.EntityEventArgument{Name: machine.Name}, Vm: machine.Self}
	})
	l.post(ctx, event(told))
}

// post adds an event to vCenter's.
func (l *Lab) post(ctx *simulator.Context, event types.BaseEvent) {
	events := ctx.Map.EventManager()
	ctx.WithLock(events, func() { events.PostEvent(ctx, &types.PostEvent{This: events.Self, EventToPost: event}) })
}
