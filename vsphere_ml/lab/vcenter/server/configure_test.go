package server

import (
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
)

// functionKeys are the keys and unit numbers of a VM's SR-IOV adapters, in the order of its device list.
func (r *rig) functionKeys(machine *object.VirtualMachine) (found [][2]int32) {
	r.Helper()
	for _, device := range r.config(machine).Hardware.Device {
		if card, ok := device.(*types.VirtualSriovEthernetCard); ok {
			found = append(found, [2]int32{card.Key, *card.UnitNumber})
			if card.SriovBacking.VirtualFunctionBacking != nil {
				r.Errorf("adapter %d names its virtual function", card.Key)
			}
		}
	}
	return found
}

// Source: vm-operator, "NIC unit numbers", experiment 14, run on ESXi 8.0.3 with a ConnectX-4 Lx.
func TestSRIOVAdaptersAreKeyedFromAboveWhateverTheClientChose(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	spec := gpuSpec("functions", "grid_a100-40c")
	chosen := sriovCard(13010)
	chosen.UnitNumber = types.NewInt32(40)
	spec.DeviceChange = append(spec.DeviceChange, added(cardOn("vm-mgmt")), added(sriovCard(-200)), added(chosen))
	machine := r.create(spec, atsHost)
	if keys := r.functionKeys(machine); len(keys) != 2 || keys[0] != [2]int32{13031, 65} || keys[1] != [2]int32{13030, 64} {
		t.Fatalf("keys and units %v", keys)
	}
	device := object.VirtualDeviceList(r.config(machine).Hardware.Device).FindByKey(13031)
	if fault := r.done(machine.Reconfigure(r.ctx, types.VirtualMachineConfigSpec{DeviceChange: []types.BaseVirtualDeviceConfigSpec{
		&types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationRemove, Device: device},
	}})); fault != nil {
		t.Fatalf("%T", fault)
	}
	again := types.VirtualMachineConfigSpec{DeviceChange: []types.BaseVirtualDeviceConfigSpec{added(sriovCard(-1))}}
	if fault := r.done(machine.Reconfigure(r.ctx, again)); fault != nil {
		t.Fatalf("%T", fault)
	}
	if keys := r.functionKeys(machine); len(keys) != 2 || keys[1] != [2]int32{13031, 65} {
		t.Errorf("the key that came free was not given again: %v", keys)
	}
	for _, device := range r.config(machine).Hardware.Device {
		if card, ok := device.(*types.VirtualPCIPassthrough); ok && (card.Key != 13000 || *card.UnitNumber != 18) {
			t.Errorf("the vGPU has key %d and unit %d", card.Key, *card.UnitNumber)
		}
	}
}

func TestHotAddOfAVirtualFunctionFails(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	machine := r.adapterVM("busy")
	if fault := r.powerOn(machine); fault != nil {
		t.Fatalf("%T", fault)
	}
	change := types.VirtualMachineConfigSpec{DeviceChange: []types.BaseVirtualDeviceConfigSpec{added(sriovCard(-1))}}
	mustBe(t, r.done(machine.Reconfigure(r.ctx, change)), "GenericVmConfigFault")
}
