package rack

import "vsml.dev/lab/vcenter/catalogue"

// fixed takes the function at the address: a whole GPU, or an adapter's physical function.
func (b *booking) fixed(device Device) *Refusal {
	h := b.host
	refused := func(reason Reason) *Refusal {
		return &Refusal{Reason: reason, Key: device.Key, Subject: device.Address}
	}
	passthrough, ok := h.passthrough(device.Address)
	switch {
	case !ok:
		return refused(NoFunction)
	case !passthrough.Active:
		return refused(NotPassthrough)
	case h.inUse(device.Address):
		return refused(FunctionInUse)
	}
	b.take(device, device.Address)
	return nil
}

// passthrough is the setting of the function at an address. A virtual function can always be passed through.
func (h *host) passthrough(address string) (Passthrough, bool) {
	if gpu := h.gpu(address); gpu != nil {
		return gpu.Passthrough, true
	}
	for _, nic := range h.nics {
		if nic.Address == address {
			return nic.Passthrough, true
		}
		for _, function := range nic.VFAddresses() {
			if function == address {
				return Passthrough{Enabled: true, Active: !nic.Passthrough.Active}, true
			}
		}
	}
	return Passthrough{}, false
}

// inUse counts the virtual functions of an adapter as uses of it.
func (h *host) inUse(address string) bool {
	if len(h.uses[address]) > 0 {
		return true
	}
	nic := h.nic(address)
	if nic == nil {
		return false
	}
	for _, function := range nic.VFAddresses() {
		if len(h.uses[function]) > 0 {
			return true
		}
	}
	return false
}

// dynamic takes the first free function of an allowed model, and of the asked label.
func (b *booking) dynamic(device Device) *Refusal {
	h, reason := b.host, NoFunction
	for _, one := range h.functions() {
		switch {
		case !device.Allows(one.board):
		case !device.labelled(one):
		case !one.passthrough.Active:
			reason = max(reason, NotPassthrough)
		case h.inUse(one.address):
			reason = FunctionInUse
		default:
			b.take(device, one.address)
			return nil
		}
	}
	return &Refusal{Reason: reason, Key: device.Key, Subject: device.Label}
}

// function is a physical function, whatever the board.
type function struct {
	address     string
	board       catalogue.Board
	passthrough Passthrough
}

func (h *host) functions() []function {
	var all []function
	for _, gpu := range h.gpus {
		all = append(all, function{gpu.Address, gpu.Board, gpu.Passthrough})
	}
	for _, nic := range h.nics {
		all = append(all, function{nic.Address, nic.Board, nic.Passthrough})
	}
	return all
}

// Allows tells whether a function of that board will do.
func (d Device) Allows(board catalogue.Board) bool {
	for _, id := range d.Allowed {
		if id.Vendor == board.VendorID && id.Device == board.DeviceID &&
			(id.SubVendor == 0 || id.SubVendor == board.SubVendorID) &&
			(id.SubDevice == 0 || id.SubDevice == board.SubDeviceID) {
			return true
		}
	}
	return false
}

// labelled tells whether the function carries the asked label; a device that asks for none takes any.
func (d Device) labelled(one function) bool {
	return d.Label == "" || d.Label == one.passthrough.Label
}

// virtualFunction takes a free virtual function of the asked adapter, or of any.
func (b *booking) virtualFunction(device Device) *Refusal {
	h := b.host
	for _, nic := range h.nics {
		if device.Address != "" && device.Address != nic.Address {
			continue
		}
		if address := h.freeVF(nic); address != "" {
			b.take(device, address)
			return nil
		}
	}
	reason := NoVirtualFunction
	if device.Address != "" && h.nic(device.Address) == nil {
		reason = NoFunction
	}
	return &Refusal{Reason: reason, Key: device.Key, Subject: device.Address}
}

// group takes all devices of one instance together, so that they share its switch or its NVLink.
func (b *booking) group(key int32, name string) *Refusal {
	known := false
	for _, instance := range b.byLoad() {
		if instance.group.Name != name {
			continue
		}
		known = true
		if b.host.isFree(instance) {
			b.takeGroup(key, instance)
			return nil
		}
	}
	if known {
		return &Refusal{Reason: NoGroup, Subject: name}
	}
	return &Refusal{Reason: UnknownGroup, Subject: name}
}

// byLoad orders the instances by their first GPU's load, under the host's policy.
func (b *booking) byLoad() []instance {
	var ordered []instance
	for _, gpu := range b.host.byLoad() {
		for _, instance := range b.host.groups {
			if instance.gpus[0] == gpu {
				ordered = append(ordered, instance)
			}
		}
	}
	return ordered
}

func (h *host) isFree(one instance) bool {
	for i, gpu := range one.gpus {
		profile, ok := gpu.Board.Profile(one.group.Components[i].Profile)
		if !ok || !gpu.shared() || !h.knows(profile.Name) || !h.hasRoom(gpu, profile) {
			return false
		}
	}
	return one.nic == nil || h.freeVF(one.nic) != ""
}

// takeGroup books the whole instance. A component for which the VM has no device is taken under key 0.
func (b *booking) takeGroup(key int32, one instance) {
	for i, gpu := range one.gpus {
		device := b.member(key, func(d Device) bool { return d.Kind == VGPU || d.matches(gpu.Board) })
		device.Kind, device.Group, device.Profile = VGPU, key, one.group.Components[i].Profile
		b.take(device, gpu.Address)
	}
	if one.nic != nil {
		device := b.member(key, func(d Device) bool { return d.Kind != VGPU })
		device.Kind, device.Group, device.Profile = SRIOVNIC, key, ""
		b.take(device, b.host.freeVF(one.nic))
	}
}

func (d Device) matches(board catalogue.Board) bool {
	return d.Kind == Dynamic && d.Allows(board)
}

// member is the VM's next device of that group instance.
func (b *booking) member(key int32, is func(Device) bool) Device {
	for _, device := range b.request.Devices {
		if device.Group == key && !b.done[device.Key] && is(device) {
			b.done[device.Key] = true
			return device
		}
	}
	return Device{}
}
