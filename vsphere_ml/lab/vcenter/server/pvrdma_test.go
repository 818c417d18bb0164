package server

import (
	"testing"

	"github.com/vmware/govmomi/vim25/types"
)

// pvrdmaCard is a PVRDMA adapter on that network: a distributed port group, or the standard "VM Network".
func (r *rig) pvrdmaCard(network, protocol string) *types.VirtualVmxnet3Vrdma {
	r.Helper()
	found, err := r.find.Network(r.ctx, network)
	if err != nil {
		r.Fatal(err)
	}
	backing, err := found.EthernetCardBackingInfo(r.ctx)
	if err != nil {
		r.Fatal(err)
	}
	card := &types.VirtualVmxnet3Vrdma{DeviceProtocol: protocol}
	card.Key, card.Backing = -1, backing
	return card
}

func pvrdmaSpec(name, version string, card *types.VirtualVmxnet3Vrdma) types.VirtualMachineConfigSpec {
	spec := gpuSpec(name)
	spec.Version, spec.DeviceChange = version, append(spec.DeviceChange, added(card))
	return spec
}

func TestAPVRDMAAdapterIsOnADistributedSwitchOfVirtualHardware13AndSpeaksRoCE(t *testing.T) {
	r := newRig(t, "spectrum-8.0u3", nil)
	for name, c := range map[string]struct{ want, network, version, protocol string }{
		"standard switch":  {"InvalidDeviceBacking", "VM Network", "vmx-20", "rocev2"},
		"old hardware":     {"DeviceUnsupportedForVmVersion", "roce", "vmx-12", "rocev2"},
		"unknown protocol": {"InvalidArgument", "roce", "vmx-20", "iwarp"},
		"oldest hardware":  {"", "roce", "vmx-13", "rocev1"},
		"as it should be":  {"", "roce", "vmx-20", "rocev2"},
	} {
		t.Run(name, func(t *testing.T) {
			made := r.tryCreateIn("pvrdma", pvrdmaSpec(name, c.version, r.pvrdmaCard(c.network, c.protocol)))
			if c.want == "" && made.fault != nil {
				t.Errorf("refused: %T %s", made.fault, made.message)
			}
			if c.want != "" {
				mustBe(t, made.fault, c.want)
			}
		})
	}
}
