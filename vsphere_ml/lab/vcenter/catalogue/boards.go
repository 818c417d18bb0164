package catalogue

// Device identifiers: pci.ids (https://pci-ids.ucw.cz). Sub-device identifiers are those of NVIDIA's own
// boards as commonly listed; they are known, not verified, and only have to be stable and distinct.
// Profile prefixes: "grid_" for A100 and "nvidia_" for H100 are printed by vSphere; for A30 and L40S the
// prefix is known, not verified, so a client must read the host's list and never compose a name.
// MMIO sizes: NVIDIA's table "MMIO space required" of the vGPU for Compute documentation; L40S is not in it and is
// treated as L40.
var boards = []Board{
	gpu("A100-PCIE-40GB", 0x20f1, 0x145f, "GA100 [A100 PCIe 40GB]", 40960, 128, true, a100("grid_a100")),
	gpu("A100-SXM4-40GB", 0x20b0, 0x134f, "GA100 [A100 SXM4 40GB]", 40960, 128, true, a100("grid_a100x")),
	gpu("A100-SXM4-80GB", 0x20b2, 0x1463, "GA100 [A100 SXM4 80GB]", 81920, 256, true, a100d("grid_a100dx")),
	gpu("A100-PCIE-80GB", 0x20b5, 0x1533, "GA100 [A100 PCIe 80GB]", 81920, 256, true, a100d("grid_a100d")),
	gpu("H100-PCIE-80GB", 0x2331, 0x1626, "GH100 [H100 PCIe]", 81920, 256, true, h100("nvidia_h100")),
	gpu("H100-SXM5-80GB", 0x2330, 0x16c1, "GH100 [H100 SXM5 80GB]", 81920, 256, true, h100("nvidia_h100xm")),
	gpu("A30", 0x20b7, 0x1532, "GA100GL [A30 PCIe]", 24576, 64, true, a30("grid_a30")),
	gpu("L40S", 0x26b9, 0x1851, "AD102GL [L40S]", 49152, 128, false, l40s("nvidia_l40s")),
	blackwell(),
	nic("ConnectX-6-Dx", 0x101d, 0x0043, "MT2892 Family [ConnectX-6 Dx]", "NVIDIA-ConnectX-6-Dx-NIC"),
	// The group spelling of ConnectX-7 follows ConnectX-6 Dx; known, not verified.
	nic("ConnectX-7", 0x1021, 0x0026, "MT2910 Family [ConnectX-7]", "NVIDIA-ConnectX-7-NIC"),
	// How device groups spell these two follows the others; known, not verified.
	nic("ConnectX-8", 0x1023, 0x0026, "CX8 Family [ConnectX-8]", "NVIDIA-ConnectX-8-NIC"),
	nic("BlueField-3", 0xa2dc, 0x0051, "MT43244 BlueField-3 integrated ConnectX-7 network controller", "NVIDIA-BlueField-3-NIC"),
}

// blackwell is the RTX PRO 6000 Blackwell Server Edition, with MIG and without NVLink. Linux drivers call its types
// "NVIDIA RTX Pro 6000 Blackwell DC-96C"; that ESXi has them in lower case with underscores is not verified.
func blackwell() Board {
	board := gpu("RTX-PRO-6000-BLACKWELL", 0x2bb5, 0x204e, "GB202GL [RTX PRO 6000 Blackwell Server Edition]", 98304, 256, false,
		rtxPro6000("nvidia_rtx_pro_6000_blackwell_dc"))
	board.MIG = true
	return board
}

// gpu is a board with NVLink and MIG together: of the boards here only L40S has neither.
func gpu(name string, device, sub uint16, text string, mib, mmio int, linked bool, profiles []Profile) Board {
	return Board{
		Name: name, Kind: GPU, VendorID: NVIDIA, DeviceID: device, SubVendorID: NVIDIA, SubDeviceID: sub,
		DeviceName: text, MemoryMiB: mib, MMIOGiB: mmio, NVLink: linked, MIG: linked, SRIOV: true, Profiles: profiles,
	}
}

// nic is an adapter; all ConnectX-6 Dx and ConnectX-7 virtual functions share one device id (pci.ids).
func nic(name string, device, sub uint16, text, group string) Board {
	return Board{
		Name: name, Kind: NIC, VendorID: Mellanox, DeviceID: device, SubVendorID: Mellanox, SubDeviceID: sub,
		DeviceName: text, SRIOV: true, VFDeviceID: 0x101e, GroupName: group,
	}
}
