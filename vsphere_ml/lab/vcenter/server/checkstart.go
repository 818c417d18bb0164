package server

import (
	"strconv"

	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/catalogue"
	"vsml.dev/lab/vcenter/rack"
)

// defaultMMIOGiB is the 64-bit MMIO space of a VM that does not ask for another (source: VMware KB 2142307).
const defaultMMIOGiB = 32

// checkStart says why a VM so configured does not start on the host, apart from what the host has left.
func (l *Lab) checkStart(w wish, host *esx) types.BaseMethodFault {
	request := requestOf("", w)
	// A reconfiguration takes any number (vmware/pyvmomi-community-samples#627); the start does not. The words are
	// those of vmware/terraform-provider-vcd#634.
	if w.cores > 1 && w.cpus%w.cores != 0 {
		return vmFault("The virtual machine cannot support %d CPUs using %d cores per socket. CPU count must be a multiple of cores per socket.", w.cpus, w.cores)
	}
	if fault := checkLatency(w, host); fault != nil {
		return fault
	}
	if len(request.Devices) == 0 {
		return nil
	}
	if missing := w.memoryMB - w.reservedMB(); missing > 0 {
		return vmFault("Invalid memory setting: memory reservation (sched.mem.min) should be equal to memsize(%d).", w.memoryMB)
	}
	if fault := checkVGPUs(w, apiVersion(l.File)); fault != nil {
		return fault
	}
	return l.checkMMIO(w, request, host)
}

// checkLatency: the words are ESXi's own.
func checkLatency(w wish, host *esx) types.BaseMethodFault {
	if w.latency == nil || w.latency.Level != types.LatencySensitivitySensitivityLevelHigh {
		return nil
	}
	if w.reservedMB() < w.memoryMB {
		return vmFault("Invalid memory setting: memory reservation (sched.mem.min) should be equal to memsize(%d).", w.memoryMB)
	}
	needed, reserved := int64(w.cpus)*int64(host.model.CPUMHz), int64(0)
	if w.cpu != nil && w.cpu.Reservation != nil {
		reserved = *w.cpu.Reservation
	}
	if reserved < needed {
		return vmFault("Invalid CPU reservation for the latency-sensitive VM, (sched.cpu.min) should be at least %d MHz.", needed)
	}
	return nil
}

// checkVGPUs holds NVIDIA's rules for the vGPUs of one VM (source: NVIDIA vGPU for Compute documentation): EFI; on
// vSphere 7 several only if each has its GPU's full framebuffer, and no more than 4; on vSphere 8 no more than 8
// (16 from 8.0 U3 on: known, not verified); all of one board type.
func checkVGPUs(w wish, api string) types.BaseMethodFault {
	var profiles []string
	for _, device := range w.devices {
		if profile := vgpuOf(device); profile != "" {
			profiles = append(profiles, profile)
		}
	}
	if len(profiles) == 0 {
		return nil
	}
	if w.firmware != string(types.GuestOsDescriptorFirmwareTypeEfi) {
		return vmFault("vGPU '%s' requires a virtual machine with EFI firmware.", profiles[0])
	}
	if len(profiles) > mostVGPUs(api) {
		return vmFault("The virtual machine has %d vGPUs; this release supports %d.", len(profiles), mostVGPUs(api))
	}
	return checkTogether(profiles, api)
}

func mostVGPUs(api string) int {
	switch {
	case older(api, "8.0.0.0"):
		return 4
	case older(api, "8.0.3.0"):
		return 8
	}
	return 16
}

func checkTogether(profiles []string, api string) types.BaseMethodFault {
	if len(profiles) < 2 {
		return nil
	}
	_, first, _ := catalogue.ProfileNamed(profiles[0])
	for _, name := range profiles {
		profile, board, _ := catalogue.ProfileNamed(name)
		if board.Name != first.Name {
			return vmFault("vGPUs '%s' and '%s' are of different boards and cannot be in one virtual machine.", profiles[0], name)
		}
		if older(api, "8.0.0.0") && (profile.MIG || !profile.FullFramebuffer) {
			return vmFault("vGPU '%s' cannot be one of several in a virtual machine: it is not a full-framebuffer profile.", name)
		}
	}
	return nil
}

// checkMMIO: the VM's 64-bit MMIO space must hold the space of each of its GPUs. Source: NVIDIA's table of MMIO sizes.
func (l *Lab) checkMMIO(w wish, request rack.Request, host *esx) types.BaseMethodFault {
	needed := 0
	view, _ := l.Rack.Host(host.name)
	for _, device := range request.Devices {
		needed += mmioOf(device, view)
	}
	space := defaultMMIOGiB
	if text := extraConfig(w.extra, "pciPassthru.64bitMMIOSizeGB"); text != "" {
		space, _ = strconv.Atoi(text)
	}
	if needed > 0 && extraConfig(w.extra, "pciPassthru.use64bitMMIO") == "" || space < needed {
		return vmFault("Module 'DevicePowerOn' power on failed. The PCI devices need %d GB of 64-bit MMIO space; the virtual machine has %d GB.", needed, space)
	}
	return nil
}

func mmioOf(device rack.Device, view rack.View) int {
	if device.Kind == rack.VGPU {
		_, board, _ := catalogue.ProfileNamed(device.Profile)
		return board.MMIOGiB
	}
	for _, gpu := range view.GPUs {
		if device.Kind == rack.Fixed && gpu.Address == device.Address || device.Kind == rack.Dynamic && device.Allows(gpu.Board) {
			return gpu.Board.MMIOGiB
		}
	}
	return 0
}
