package server

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// The lab's VMs have no guest behind them. The simulator would start processes and read files of this machine, or drop
// the connection with the VM's lock held; so every operation is answered as for a guest without VMware Tools.
func unavailable() *soap.Fault {
	fault := &types.GuestOperationsUnavailable{}
	return simulator.Fault(sentence(fault), fault)
}

// StartProgramInGuest refuses.
func (*guestProcesses) StartProgramInGuest(*simulator.Context, *types.StartProgramInGuest) soap.HasFault {
	return &methods.StartProgramInGuestBody{Fault_: unavailable()}
}

// ListProcessesInGuest refuses.
func (*guestProcesses) ListProcessesInGuest(*simulator.Context, *types.ListProcessesInGuest) soap.HasFault {
	return &methods.ListProcessesInGuestBody{Fault_: unavailable()}
}

// TerminateProcessInGuest refuses.
func (*guestProcesses) TerminateProcessInGuest(*simulator.Context, *types.TerminateProcessInGuest) soap.HasFault {
	return &methods.TerminateProcessInGuestBody{Fault_: unavailable()}
}

// ReadEnvironmentVariableInGuest refuses.
func (*guestProcesses) ReadEnvironmentVariableInGuest(*simulator.Context, *types.ReadEnvironmentVariableInGuest) soap.HasFault {
	return &methods.ReadEnvironmentVariableInGuestBody{Fault_: unavailable()}
}

// InitiateFileTransferToGuest refuses.
func (*guestFiles) InitiateFileTransferToGuest(*simulator.Context, *types.InitiateFileTransferToGuest) soap.HasFault {
	return &methods.InitiateFileTransferToGuestBody{Fault_: unavailable()}
}

// InitiateFileTransferFromGuest refuses.
func (*guestFiles) InitiateFileTransferFromGuest(*simulator.Context, *types.InitiateFileTransferFromGuest) soap.HasFault {
	return &methods.InitiateFileTransferFromGuestBody{Fault_: unavailable()}
}

// CreateTemporaryFileInGuest refuses.
func (*guestFiles) CreateTemporaryFileInGuest(*simulator.Context, *types.CreateTemporaryFileInGuest) soap.HasFault {
	return &methods.CreateTemporaryFileInGuestBody{Fault_: unavailable()}
}

// CreateTemporaryDirectoryInGuest refuses.
func (*guestFiles) CreateTemporaryDirectoryInGuest(*simulator.Context, *types.CreateTemporaryDirectoryInGuest) soap.HasFault {
	return &methods.CreateTemporaryDirectoryInGuestBody{Fault_: unavailable()}
}

// ListFilesInGuest refuses.
func (*guestFiles) ListFilesInGuest(*simulator.Context, *types.ListFilesInGuest) soap.HasFault {
	return &methods.ListFilesInGuestBody{Fault_: unavailable()}
}

// DeleteFileInGuest refuses.
func (*guestFiles) DeleteFileInGuest(*simulator.Context, *types.DeleteFileInGuest) soap.HasFault {
	return &methods.DeleteFileInGuestBody{Fault_: unavailable()}
}

// DeleteDirectoryInGuest refuses.
func (*guestFiles) DeleteDirectoryInGuest(*simulator.Context, *types.DeleteDirectoryInGuest) soap.HasFault {
	return &methods.DeleteDirectoryInGuestBody{Fault_: unavailable()}
}

// MakeDirectoryInGuest refuses.
func (*guestFiles) MakeDirectoryInGuest(*simulator.Context, *types.MakeDirectoryInGuest) soap.HasFault {
	return &methods.MakeDirectoryInGuestBody{Fault_: unavailable()}
}

// MoveFileInGuest refuses.
func (*guestFiles) MoveFileInGuest(*simulator.Context, *types.MoveFileInGuest) soap.HasFault {
	return &methods.MoveFileInGuestBody{Fault_: unavailable()}
}

// MoveDirectoryInGuest refuses.
func (*guestFiles) MoveDirectoryInGuest(*simulator.Context, *types.MoveDirectoryInGuest) soap.HasFault {
	return &methods.MoveDirectoryInGuestBody{Fault_: unavailable()}
}

// ChangeFileAttributesInGuest refuses.
func (*guestFiles) ChangeFileAttributesInGuest(*simulator.Context, *types.ChangeFileAttributesInGuest) soap.HasFault {
	return &methods.ChangeFileAttributesInGuestBody{Fault_: unavailable()}
}
