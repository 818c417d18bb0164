package server

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

// proxyPorts are those that a host keeps for a distributed switch.
const proxyPorts = 9216

// addProxy shows the switch in the host's own network, with the adapters that link it. One that is handed through has
// left the host's network, and links nothing. Source: the vSphere API's HostProxySwitch; the key's form is that of
// the simulator's other keys.
func addProxy(made *simulator.DistributedVirtualSwitch, machine *esx, like topology.Switch) {
	linking := slices.DeleteFunc(uplinks(machine, like), func(nic topology.NIC) bool { return nic.Passthrough })
	proxy := types.HostProxySwitch{
		DvsUuid: made.Uuid, DvsName: made.Name, Key: "key-vim.host.HostProxySwitch-" + made.Name,
		NumPorts: proxyPorts, ConfigNumPorts: proxyPorts, NumPortsAvailable: proxyPorts - int32(len(linking)),
		Spec: types.HostProxySwitchSpec{Backing: pnicBacking(linking)},
	}
	for _, nic := range linking {
		proxy.Pnic = append(proxy.Pnic, nicKey(nic.VMNic))
	}
	network := machine.system.Config.Network
	network.ProxySwitch = append(network.ProxySwitch, proxy)
}
