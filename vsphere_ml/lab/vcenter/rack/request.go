package rack

import "fmt"

// Request is what a VM needs to be powered on.
type Request struct {
	VM          string
	ReservedMiB int64
	Devices     []Device
	Groups      map[int32]string // group name by instance key
}

// DeviceKind is how a device is backed.
type DeviceKind int

// The kinds of device backing.
const (
	VGPU     DeviceKind = iota // a share of a GPU, by profile
	Fixed                      // DirectPath I/O: the function at an address
	Dynamic                    // Dynamic DirectPath I/O: any function that matches
	SRIOVNIC                   // a virtual function of an adapter
)

// Device is one device of a VM.
type Device struct {
	Key     int32
	Kind    DeviceKind
	Profile string
	Address string // Fixed: the function; SRIOVNIC: the physical function, or "" for any
	Allowed []PCIID
	Label   string // Dynamic: the hardware label asked for, or ""
	Group   int32  // the group instance it belongs to, or 0
}

// PCIID names a model of function; a zero sub-vendor or sub-device matches all.
type PCIID struct {
	Vendor, Device, SubVendor, SubDevice uint16
}

// Assignment is what one device got.
type Assignment struct {
	Host    string
	VM      string
	Key     int32
	Address string
	Profile string
	Kind    DeviceKind
}

// Reason is why a request does not fit a host.
type Reason int

// The reasons.
const (
	UnknownHost       Reason = iota
	NoGraphics               // no GPU with room for the vGPU
	NotSharedDirect          // GPUs would have room, but the host's graphics are not Shared Direct
	UnknownProfile           // no GPU of the host offers the profile
	NoMemory                 // too little memory left unreserved
	MemoryTooLarge           // more than the host has
	NoFunction               // no such PCI function
	NotPassthrough           // the function is not enabled for passthrough
	FunctionInUse            // another VM has it
	NoVirtualFunction        // SR-IOV is off, or all virtual functions are taken
	UnknownGroup             // the host does not offer the device group
	NoGroup                  // all instances of the device group are taken
)

// Refusal says why a request does not fit.
type Refusal struct {
	Reason    Reason
	Host      string
	Key       int32  // the device, or 0
	Subject   string // the profile, address or group
	Requested int64  // MiB, of memory
	Free      int64
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("host %s: reason %d for %s", r.Host, r.Reason, r.Subject)
}
