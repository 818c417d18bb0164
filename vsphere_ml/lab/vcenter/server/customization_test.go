package server

import (
	"reflect"
	"testing"

	"github.com/vmware/govmomi/event"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

func linuxPrep(name string, adapters ...types.BaseCustomizationIpGenerator) *types.CustomizationSpec {
	spec := &types.CustomizationSpec{
		Identity:         &types.CustomizationLinuxPrep{HostName: &types.CustomizationFixedName{Name: name}, Domain: "lab.test"},
		GlobalIPSettings: types.CustomizationGlobalIPSettings{DnsServerList: []string{"192.0.2.53"}},
	}
	for _, ip := range adapters {
		spec.NicSettingMap = append(spec.NicSettingMap, types.CustomizationAdapterMapping{Adapter: types.CustomizationIPSettings{
			Ip: ip, SubnetMask: "255.255.254.0", Gateway: []string{"192.0.2.1"},
		}})
	}
	return spec
}

func fixed(address string) types.BaseCustomizationIpGenerator {
	return &types.CustomizationFixedIp{IpAddress: address}
}

func (r *rig) cloned(name string, wanted *types.CustomizationSpec) *object.VirtualMachine {
	r.Helper()
	pool := r.pool()
	return r.clone(quadTemplate, name, types.VirtualMachineCloneSpec{
		Location: types.VirtualMachineRelocateSpec{Pool: &pool}, Customization: wanted,
	})
}

func (r *rig) customizing(machine *object.VirtualMachine) string {
	r.Helper()
	if info := machineProperties(r.T, machine, "guest").Guest.CustomizationInfo; info != nil {
		return info.CustomizationStatus
	}
	return ""
}

func TestCustomizationIsRefusedAsTheReferenceHasIt(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	pool := r.pool()
	dhcp := &types.CustomizationDhcpIpGenerator{}
	unnamed := linuxPrep("n", dhcp)
	unnamed.Identity.(*types.CustomizationLinuxPrep).HostName = &types.CustomizationUnknownName{}
	windows := linuxPrep("n", dhcp)
	windows.Identity = &types.CustomizationSysprep{UserData: types.CustomizationUserData{ComputerName: &types.CustomizationFixedName{Name: "n"}}}
	for name, wanted := range map[string]struct {
		spec  *types.CustomizationSpec
		fault string
	}{
		"no adapter":    {linuxPrep("n"), "NicSettingMismatch"},
		"two adapters":  {linuxPrep("n", dhcp, dhcp), "NicSettingMismatch"},
		"Windows":       {windows, "UncustomizableGuest"},
		"no name":       {unnamed, "IpHostnameGeneratorError"},
		"no address":    {linuxPrep("n", &types.CustomizationUnknownIpGenerator{}), "IpHostnameGeneratorError"},
		"a bad name":    {linuxPrep("n_1", dhcp), "InvalidArgument"},
		"a bad address": {linuxPrep("n", fixed("192.0.2.300")), "InvalidArgument"},
	} {
		made := r.tryClone(quadTemplate, "refused", types.VirtualMachineCloneSpec{
			Location: types.VirtualMachineRelocateSpec{Pool: &pool}, Customization: wanted.spec,
		})
		t.Run(name, func(t *testing.T) { mustBe(t, made.fault, wanted.fault) })
	}
	if _, err := r.find.VirtualMachine(r.ctx, "refused"); err == nil {
		t.Error("a refused clone was left behind")
	}
}

func TestOneCustomizationWaitsAtATimeAndForAVMThatIsOff(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	dhcp := &types.CustomizationDhcpIpGenerator{}
	machine := r.cloned("n", linuxPrep("n", dhcp))
	if got := r.customizing(machine); got != "TOOLSDEPLOYPKG_PENDING" {
		t.Errorf("the customization is %q", got)
	}
	mustBe(t, r.done(machine.Customize(r.ctx, *linuxPrep("n", dhcp))), "CustomizationPending")
	if fault := r.powerOn(machine); fault != nil {
		t.Fatalf("%T", fault)
	}
	mustBe(t, r.done(machine.Customize(r.ctx, *linuxPrep("n", dhcp))), "InvalidPowerState")
	r.until("success", func() bool { return r.customizing(machine) == "TOOLSDEPLOYPKG_SUCCEEDED" })
}

func TestTheGuestIsToldOnceAndItsReportEndsTheCustomization(t *testing.T) {
	r, events := hookRig(t, `read -r line; echo "$line" >>$events; echo '{"guest_ip": "192.0.2.7", "hostname": "n-1"}'`)
	machine := r.cloned("n", linuxPrep("n-1", fixed("192.0.2.7")))
	if fault := r.powerOn(machine); fault != nil {
		t.Fatalf("%T", fault)
	}
	r.until("success", func() bool { return r.customizing(machine) == "TOOLSDEPLOYPKG_SUCCEEDED" })
	_, first := eventsIn(t, events)
	if c := first.Customization; c == nil || c.Hostname != "n-1" || c.Domain != "lab.test" || c.DNS[0] != "192.0.2.53" {
		t.Errorf("the guest was told %+v", c)
	}
	if nic := first.NICs[0]; nic.Address != "192.0.2.7/23" || nic.Gateways[0] != "192.0.2.1" {
		t.Errorf("the adapter was told %+v", nic)
	}
	if kinds := r.eventKinds(machine); !kinds["CustomizationStartedEvent"] || !kinds["CustomizationSucceeded"] {
		t.Errorf("vCenter tells of %v", kinds)
	}
	r.done(machine.PowerOff(r.ctx))
	r.powerOn(machine)
	r.until("three events", func() bool { names, _ := eventsIn(t, events); return len(names) == 3 })
	if _, last := eventsIn(t, events); last.Customization != nil {
		t.Error("the guest was told twice")
	}
}

func (r *rig) eventKinds(machine *object.VirtualMachine) map[string]bool {
	r.Helper()
	manager := event.NewManager(r.client)
	found, err := manager.QueryEvents(r.ctx, types.EventFilterSpec{
		Entity: &types.EventFilterSpecByEntity{Entity: machine.Reference(), Recursion: types.EventFilterSpecRecursionOptionSelf},
	})
	if err != nil {
		r.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, each := range found {
		kinds[reflect.TypeOf(each).Elem().Name()] = true
	}
	return kinds
}

func TestAGuestThatFailsFailsItsCustomization(t *testing.T) {
	r, _ := hookRig(t, "exit 1")
	machine := r.cloned("n", linuxPrep("n", fixed("192.0.2.7")))
	if fault := r.powerOn(machine); fault != nil {
		t.Fatalf("%T", fault)
	}
	r.until("failure", func() bool { return r.customizing(machine) == "TOOLSDEPLOYPKG_FAILED" })
	if got := machineProperties(t, machine, "guest").Guest.IpAddress; got != "" {
		t.Errorf("a guest that failed has the address %s", got)
	}
}

func TestAGuestHasWhatItsTemplatesDiskHas(t *testing.T) {
	r, events := hookRig(t, `read -r line; echo "$line" >>$events`)
	off := false
	r.lab.origins.add(r.vm(quadTemplate).Reference(), topology.Template{CloudInit: &off, User: "admin", AuthorizedKeys: []string{"ssh-ed25519 AAAA"}})
	if fault := r.powerOn(r.cloned("n", nil)); fault != nil {
		t.Fatalf("%T", fault)
	}
	r.until("an event", func() bool { names, _ := eventsIn(t, events); return len(names) == 1 })
	if _, told := eventsIn(t, events); told.Template.CloudInit || told.Template.User != "admin" || len(told.Template.AuthorizedKeys) != 1 {
		t.Errorf("the guest has %+v", told.Template)
	}
}
