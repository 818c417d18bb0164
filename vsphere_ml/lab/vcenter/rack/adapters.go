package rack

import "slices"

// Adapter is what a VM has of a host's adapters with one of its devices: a whole function, or a virtual one of it.
type Adapter struct {
	NIC   NIC
	Whole bool
}

// Adapter is the one behind the VM's device; false when that device is no adapter.
func (v View) Adapter(vm string, key int32) (Adapter, bool) {
	for _, booked := range v.Booked(vm) {
		if booked.Key != key {
			continue
		}
		for _, nic := range v.NICs {
			if booked.Address == nic.Address || slices.Contains(nic.VFAddresses(), booked.Address) {
				return Adapter{NIC: nic, Whole: booked.Address == nic.Address}, true
			}
		}
	}
	return Adapter{}, false
}

// GPU is the one behind the VM's device, whole or a vGPU of it; false when that device is no GPU.
func (v View) GPU(vm string, key int32) (GPU, bool) {
	for _, booked := range v.Booked(vm) {
		for _, gpu := range v.GPUs {
			if booked.Key == key && booked.Address == gpu.Address {
				return gpu, true
			}
		}
	}
	return GPU{}, false
}

// DeviceID is the PCI device that a guest sees.
func (a Adapter) DeviceID() uint16 {
	if a.Whole {
		return a.NIC.Board.DeviceID
	}
	return a.NIC.Board.VFDeviceID
}

// TranslatesFor tells whether ATS is in force for the adapter: by the host's kernel and by the firmware, both as of the
// last boot. A host without the kernel option has no ATS.
func (v View) TranslatesFor(adapter Adapter) bool {
	return v.Kernel["atsSupport"].Runtime && adapter.NIC.ATS() && !v.Fails("no-ats")
}
