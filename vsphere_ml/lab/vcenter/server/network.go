package server

import (
	"fmt"

	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/catalogue"
	"vsml.dev/lab/vcenter/topology"
)

// physicalNics are vmnic0 for management, which every host has, and the model's adapters.
func physicalNics(host int, model topology.Model) []types.PhysicalNic {
	nics := []types.PhysicalNic{physicalNic("vmnic0", "0000:04:00.0", "ntg3", 1000, stationMAC(host, 0))}
	for i, nic := range model.NICs {
		device := physicalNic(nic.VMNic, nic.Address, "nmlx5_core", speedMb(nic), stationMAC(host, i+1))
		device.RdmaDevice = nic.RDMA
		nics = append(nics, device)
	}
	return nics
}

func physicalNic(name, address, driver string, speed int32, mac string) types.PhysicalNic {
	return types.PhysicalNic{
		Key: nicKey(name), Device: name, Pci: address, Driver: driver, Mac: mac,
		LinkSpeed:              &types.PhysicalNicLinkInfo{SpeedMb: speed, Duplex: true},
		ValidLinkSpecification: []types.PhysicalNicLinkInfo{{SpeedMb: speed, Duplex: true}},
		Spec:                   types.PhysicalNicSpec{Ip: &types.HostIpConfig{}, LinkSpeed: &types.PhysicalNicLinkInfo{SpeedMb: speed, Duplex: true}},
		AutoNegotiateSupported: types.NewBool(true),
	}
}

func nicKey(name string) string { return "key-vim.host.PhysicalNic-" + name }

func speedMb(nic topology.NIC) int32 { return int32(max(nic.SpeedGbps, 1)) * 1000 }

// stationMAC is stable per host and port, in the range for locally administered addresses.
func stationMAC(host, port int) string {
	return fmt.Sprintf("02:00:%02x:%02x:00:%02x", host>>8&0xff, host&0xff, port)
}

// rdmaDevices are the RDMA sides of the model's adapters.
func rdmaDevices(model topology.Model) []types.HostRdmaDevice {
	var devices []types.HostRdmaDevice
	for _, nic := range model.NICs {
		if nic.RDMA == "" {
			continue
		}
		board, _ := catalogue.Find(nic.Board)
		devices = append(devices, types.HostRdmaDevice{
			Key: "key-vim.host.RdmaDevice-" + nic.RDMA, Device: nic.RDMA, Driver: "nmlx5_rdma", Description: board.DeviceName,
			Backing:        &types.HostRdmaDevicePnicBacking{PairedUplink: nicKey(nic.VMNic)},
			ConnectionInfo: types.HostRdmaDeviceConnectionInfo{State: "active", Mtu: 4096, SpeedInMbps: speedMb(nic)},
			Capability:     types.HostRdmaDeviceCapability{RoceV1Capable: true, RoceV2Capable: true},
		})
	}
	return devices
}
