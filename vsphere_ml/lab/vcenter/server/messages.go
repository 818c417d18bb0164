package server

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/rack"
)

// sentences is what vCenter says of each kind of fault. The kinds of fault are those of the vSphere API; which one a
// real vCenter picks for a refusal, and its exact words, are known from use and not verified here, save those that
// name a source.
var sentences = map[string]string{
	"AlreadyUpgraded":                     "The virtual machine's hardware is already up-to-date.",
	"AlreadyUpgradedFault":                "The virtual machine's hardware is already up-to-date.",
	"CannotAccessNetwork":                 "Cannot access network.",
	"ConcurrentAccess":                    "Cannot complete operation due to concurrent modification by another operation.",
	"GuestOperationsUnavailable":          "The guest operations agent could not be contacted.",
	"HostNotConnected":                    "Unable to communicate with the remote host, since it is disconnected.",
	"HostNotReachable":                    "Unable to communicate with the remote host, either due to network errors or because the host is not responding.",
	"InsufficientFailoverResourcesFault":  "Insufficient resources to satisfy configured failover level for vSphere HA.",
	"InsufficientGraphicsResourcesFault":  "The amount of graphics resource available in the parent resource pool is insufficient for the operation.",
	"InsufficientHostMemoryCapacityFault": "The host does not have sufficient memory resources to satisfy the reservation.",
	"InsufficientMemoryResourcesFault":    "The amount of memory resource available in the parent resource pool is insufficient for the operation.",
	"InvalidFolder":                       "The operation is not supported on the folder.",
	"InvalidLogin":                        "Cannot complete login due to an incorrect user name or password.",
	"InvalidState":                        "The operation is not allowed in the current state.",
	"ManagedObjectNotFound":               "The object has already been deleted or has not been completely created.",
	"NoCompatibleHost":                    "No host is compatible with the virtual machine.",
	"NoDiskSpace":                         "There is not enough space on the datastore.",
	"NoPermission":                        "Permission to perform this operation was denied.",
	"NotAuthenticated":                    "The session is not authenticated.",
	"NotFound":                            "The object or item referred to could not be found.",
	"NotSupported":                        "The operation is not supported on the object.",
	"RequestCanceled":                     "The task was canceled by a user.",
	"ResourceInUse":                       "The resource is in use.",
	"RuleViolation":                       "The virtual machine violates an affinity or anti-affinity rule of the cluster.",
	"Timedout":                            "Operation timed out.",
	"ToolsUnavailable":                    "The operation cannot be completed because VMware Tools is not running in this virtual machine.",
	"TooManyDevices":                      "The virtual machine has too many devices of this kind.",
}

// sentence is the localized message of a fault, as a client shows it to people.
func sentence(fault types.BaseMethodFault) string {
	switch f := fault.(type) {
	case nil:
		return ""
	case *types.DuplicateName:
		return fmt.Sprintf("The name '%s' already exists.", f.Name)
	case *types.InvalidArgument:
		return "A specified parameter was not correct: " + f.InvalidProperty
	case *types.InvalidPowerState:
		return fmt.Sprintf("The attempted operation cannot be performed in the current state (%s).", powerStateName(f.ExistingState))
	case *types.GenericVmConfigFault:
		return f.Reason
	case *types.InvalidVmConfig:
		return "Invalid virtual machine configuration: " + f.Property
	case *types.InvalidDeviceSpec:
		return fmt.Sprintf("Invalid configuration for device '%d'.", f.DeviceIndex)
	case *types.InvalidDeviceBacking:
		return fmt.Sprintf("Incompatible device backing specified for device '%d'.", f.DeviceIndex)
	case *types.DeviceBackingNotSupported:
		return fmt.Sprintf("Device '%s' uses backing '%s', which is not supported.", f.Device, f.Backing)
	case *types.DeviceNotSupported:
		return fmt.Sprintf("Device '%s' is not supported here.", f.Device)
	case *types.DisallowedMigrationDeviceAttached:
		return "The virtual machine is using a device that prevents migration. " + f.Fault.LocalizedMessage
	case *types.SnapshotIncompatibleDeviceInVm:
		return "The virtual machine is using a device that prevents snapshots. " + f.Fault.LocalizedMessage
	case *types.DeviceUnsupportedForVmVersion:
		return fmt.Sprintf("The device '%d' needs virtual machine version '%s'; the virtual machine has '%s'.", f.DeviceIndex, f.ExpectedVersion, f.CurrentVersion)
	case *types.VirtualHardwareVersionNotSupported:
		return fmt.Sprintf("The virtual machine's hardware version is not supported on the host '%s'.", f.HostName)
	case *types.InvalidDatastorePath:
		return fmt.Sprintf("Invalid datastore path '%s'.", f.DatastorePath)
	case *types.NicSettingMismatch:
		return fmt.Sprintf("The number of network adapter settings in the customization specification (%d) does not match the number "+
			"of network adapters in the virtual machine (%d).", f.NumberOfNicsInSpec, f.NumberOfNicsInVM)
	case *types.UncustomizableGuest:
		return fmt.Sprintf("Customization of the guest operating system '%s' is not supported in this configuration.", f.UncustomizableGuestOS)
	case *types.InvalidName:
		return fmt.Sprintf("The name '%s' is invalid.", f.Name)
	case *types.SystemError:
		return "A general system error occurred: " + f.Reason
	}
	return plainSentence(reflect.TypeOf(fault).Elem().Name())
}

// plainSentence reads an unlisted kind's name as words, so that no client ever shows an empty message.
func plainSentence(kind string) string {
	if text, ok := sentences[kind]; ok {
		return text
	}
	var words strings.Builder
	for i, letter := range strings.TrimSuffix(kind, "Fault") {
		if i > 0 && letter >= 'A' && letter <= 'Z' {
			words.WriteByte(' ')
			letter += 'a' - 'A'
		}
		words.WriteRune(letter)
	}
	return words.String() + "."
}

func powerStateName(state types.VirtualMachinePowerState) string {
	names := map[types.VirtualMachinePowerState]string{
		types.VirtualMachinePowerStatePoweredOn: "Powered on", types.VirtualMachinePowerStatePoweredOff: "Powered off",
		types.VirtualMachinePowerStateSuspended: "Suspended",
	}
	return names[state]
}

func localized(fault types.BaseMethodFault) types.LocalizedMethodFault {
	return types.LocalizedMethodFault{Fault: fault, LocalizedMessage: sentence(fault)}
}

// vmFault is a refusal to start a VM as it is configured.
func vmFault(format string, values ...any) types.BaseMethodFault {
	return &types.GenericVmConfigFault{Reason: fmt.Sprintf(format, values...)}
}

// vgpuPluginError is the message by which ESXi says that a vGPU could not start: graphics not Shared Direct, memory not
// fully reserved, or SR-IOV off in the BIOS (source: Frank Denneman, vGPU troubleshooting).
const vgpuPluginError = "Could not initialize plugin 'libnvidia-vgx.so' for vGPU '%s'."

// refusalFault is the vSphere fault for what the rack refused.
func (l *Lab) refusalFault(ctx *simulator.Context, refusal *rack.Refusal) types.BaseMethodFault {
	const mib = int64(1) << 20
	device := fmt.Sprintf("PCI device (key %d)", refusal.Key)
	switch refusal.Reason {
	case rack.NoGraphics, rack.NoGroup:
		return &types.InsufficientGraphicsResourcesFault{}
	case rack.NotSharedDirect:
		return vmFault(vgpuPluginError, refusal.Subject)
	case rack.UnknownProfile:
		fault := &types.DeviceBackingNotSupported{Backing: refusal.Subject}
		fault.Device = device
		return fault
	case rack.UnknownGroup:
		return vmFault("Device group '%s' is not available on host '%s'.", refusal.Subject, refusal.Host)
	case rack.NoMemory:
		return &types.InsufficientMemoryResourcesFault{Unreserved: refusal.Free * mib, Requested: refusal.Requested * mib}
	case rack.MemoryTooLarge:
		fault := &types.InsufficientHostMemoryCapacityFault{Unreserved: refusal.Free * mib, Requested: refusal.Requested * mib}
		if machine, ok := l.site.hosts[refusal.Host]; ok {
			fault.Host = &machine.system.Self
		}
		return fault
	case rack.NoFunction:
		return vmFault("Module 'DevicePowerOn' power on failed. PCI passthrough device '%s' was not found on the host.", refusal.Subject)
	case rack.NotPassthrough:
		return vmFault("Module 'DevicePowerOn' power on failed. PCI passthrough is not enabled for device '%s'.", refusal.Subject)
	case rack.FunctionInUse:
		return vmFault("Module 'DevicePowerOn' power on failed. PCI passthrough device '%s' is already in use.", refusal.Subject)
	case rack.NoVirtualFunction:
		return vmFault("Module 'DevicePowerOn' power on failed. No SR-IOV virtual function of '%s' is free.", refusal.Subject)
	}
	return &types.HostNotConnected{}
}
