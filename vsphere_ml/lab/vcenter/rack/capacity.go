package rack

// Capacity is how often one thing can be had of a host.
type Capacity struct {
	Consumed  int // by VMs that hold it now
	Remaining int // as many more could be powered on
	Max       int // as many could be if nobody held anything
}

// Thing is what is counted: a device, or a device group by its name.
type Thing struct {
	Device Device
	Group  string
}

// Capacity counts by booking the thing for one VM after another until the host refuses: now, and with the host's
// bookings put aside. So the count is that of what this rack would really give.
func (r *Rack) Capacity(hostName string, thing Thing) Capacity {
	var found Capacity
	_ = r.with(hostName, func(h *host) error {
		found = Capacity{Consumed: h.consumed(thing), Remaining: h.fits(thing), Max: h.emptied().fits(thing)}
		return nil
	})
	return found
}

// fits books the thing for new VMs until one is refused, and gives all of it back.
func (h *host) fits(thing Thing) int {
	vm := "\x00" // nobody's name, nor its continuations
	for count := 0; ; count++ {
		vm += "+"
		defer h.free(vm)
		if _, refusal := h.book(thing.request(vm)); refusal != nil {
			return count
		}
	}
}

func (t Thing) request(vm string) Request {
	if t.Group != "" {
		return Request{VM: vm, Groups: map[int32]string{1: t.Group}}
	}
	return Request{VM: vm, Devices: []Device{t.Device}}
}

// emptied is the host as if nobody had booked anything.
func (h *host) emptied() *host {
	alone := *h
	alone.uses, alone.memory = map[string][]Use{}, map[string]int64{}
	return &alone
}

// consumed counts what VMs hold of the thing, however they asked for it.
func (h *host) consumed(thing Thing) int {
	count := 0
	for address, uses := range h.uses {
		for _, use := range uses {
			if h.isOne(thing, address, use) {
				count++
			}
		}
	}
	return count / max(1, h.vgpusIn(thing.Group))
}

func (h *host) isOne(thing Thing, address string, use Use) bool {
	switch {
	case thing.Group != "":
		return use.Group == thing.Group && use.Profile != ""
	case thing.Device.Kind == VGPU:
		return use.Profile == thing.Device.Profile
	}
	for _, function := range h.functions() {
		if function.address == address {
			return use.Profile == "" && thing.Device.Allows(function.board) && thing.Device.labelled(function)
		}
	}
	return false
}

// vgpusIn is the number of vGPUs that a VM gets with the group.
func (h *host) vgpusIn(group string) int {
	for _, instance := range h.groups {
		if instance.group.Name == group {
			return len(instance.gpus)
		}
	}
	return 0
}
