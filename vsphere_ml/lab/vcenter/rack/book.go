package rack

import "sort"

// Book gives the VM all it asks for on that host, or nothing. Booking again replaces what the VM had.
func (r *Rack) Book(hostName string, request Request) ([]Assignment, *Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, ok := r.hosts[hostName]
	if !ok {
		return nil, &Refusal{Reason: UnknownHost, Host: hostName, Subject: hostName}
	}
	r.free(request.VM)
	got, refusal := h.book(request)
	if refusal == nil {
		h.noteLast(got)
	}
	return got, refusal
}

// noteLast remembers the GPU from which the next tie is broken; a mere trial does not move it.
func (h *host) noteLast(got []Assignment) {
	for _, each := range got {
		if each.Kind == VGPU {
			h.lastGPU = each.Address
		}
	}
}

// Try says whether the request would fit now, without booking.
func (r *Rack) Try(hostName string, request Request) *Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, ok := r.hosts[hostName]
	if !ok {
		return &Refusal{Reason: UnknownHost, Host: hostName, Subject: hostName}
	}
	request.VM = "\x00" + request.VM // nobody's name, so that undoing frees nothing else
	_, refusal := h.book(request)
	h.free(request.VM)
	return refusal
}

// Free gives back all that a VM has booked.
func (r *Rack) Free(vm string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free(vm)
}

func (r *Rack) free(vm string) {
	for _, h := range r.hosts {
		h.free(vm)
	}
}

func (h *host) free(vm string) {
	delete(h.memory, vm)
	for address, uses := range h.uses {
		var kept []Use
		for _, use := range uses {
			if use.VM != vm {
				kept = append(kept, use)
			}
		}
		if len(kept) == 0 {
			delete(h.uses, address)
		} else {
			h.uses[address] = kept
		}
	}
}

func (h *host) book(request Request) ([]Assignment, *Refusal) {
	booking := &booking{host: h, request: request, done: map[int32]bool{}}
	if refusal := booking.all(); refusal != nil {
		refusal.Host = h.name
		h.free(request.VM)
		return nil, refusal
	}
	return booking.got, nil
}

// booking is one VM's request while it is being met.
type booking struct {
	host    *host
	request Request
	got     []Assignment
	done    map[int32]bool // devices that a group has met
}

// all meets the pickiest first: groups, then fixed functions, then what any function can meet, and large vGPUs
// before small ones.
func (b *booking) all() *Refusal {
	if refusal := b.reserveMemory(); refusal != nil {
		return refusal
	}
	for _, key := range sortedKeys(b.request.Groups) {
		if refusal := b.group(key, b.request.Groups[key]); refusal != nil {
			return refusal
		}
	}
	for _, kind := range []DeviceKind{Fixed, SRIOVNIC, Dynamic, VGPU} {
		for _, device := range b.remaining(kind) {
			if refusal := b.device(device); refusal != nil {
				return refusal
			}
		}
	}
	return nil
}

func (b *booking) device(device Device) *Refusal {
	switch device.Kind {
	case Fixed:
		return b.fixed(device)
	case SRIOVNIC:
		return b.virtualFunction(device)
	case Dynamic:
		return b.dynamic(device)
	}
	return b.vgpu(device)
}

func (b *booking) remaining(kind DeviceKind) []Device {
	var devices []Device
	for _, device := range b.request.Devices {
		if device.Kind == kind && !b.done[device.Key] {
			devices = append(devices, device)
		}
	}
	if kind == VGPU {
		sort.SliceStable(devices, func(i, j int) bool {
			return framebuffer(devices[i].Profile) > framebuffer(devices[j].Profile)
		})
	}
	return devices
}

func (b *booking) reserveMemory() *Refusal {
	h, wanted := b.host, b.request.ReservedMiB
	free := h.memoryMiB() - h.reservedMiB()
	switch {
	case wanted > h.memoryMiB():
		return &Refusal{Reason: MemoryTooLarge, Requested: wanted, Free: free, Subject: "memory"}
	case wanted > free:
		return &Refusal{Reason: NoMemory, Requested: wanted, Free: free, Subject: "memory"}
	case wanted > 0:
		h.memory[b.request.VM] = wanted
	}
	return nil
}

func (b *booking) take(device Device, address string) {
	h := b.host
	use := Use{VM: b.request.VM, Key: device.Key, Profile: device.Profile, Group: b.request.Groups[device.Group]}
	h.uses[address] = append(h.uses[address], use)
	b.got = append(b.got, Assignment{h.name, b.request.VM, device.Key, address, device.Profile, device.Kind})
}

func sortedKeys(groups map[int32]string) []int32 {
	var keys []int32
	for key := range groups {
		keys = append(keys, key)
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i] < keys[j] })
	return keys
}
