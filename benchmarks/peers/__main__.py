"""One provision of 8 VMs as a whole command, by vsml and by each of three other tools that make such VMs.

    make bench-peers

Each command meets a lab of its own, where a clone takes two seconds and a power-on one; all take turns, five rounds. A
VM has 8 CPUs, 64 GiB of reserved memory, one A100 with its MMIO space, no fast NIC and no guest; afterwards eight such
VMs must run. A verdict is vsml's time over the peer's, the median of the rounds, with the GPU that the peer can give:
*vGPU* is the profile A100-40C, *DirectPath* a GPU by its PCI address. Installing and `tofu init` are not timed.

vsml reads the site, checks the file against it, places each VM on a host, a GPU and its NUMA node, plans, takes a lock,
marks the VMs as its own, clones, equips and powers on, reads each VM back before its power-on, and the site at the end.
The file asks for neither ATS nor anti-affinity. Of that,

*vhpc-toolkit* (1.0.3, the last on PyPI), by its cluster file, clones all VMs, then gives all of them the vGPU and
reserved memory, then powers all of them on. The file names hosts and profile; nothing is planned or read back, NUMA
nodes are another command, there is no anti-affinity and no ATS, failed tasks end with 0, no certificate is verified.
It is helped twice. Its vGPU step sets no MMIO keys, so the template has them before the clock starts. It ends with a
wait for each guest's address, five minutes at most; here are no guests, so that wait is left out. Its package names no
dependencies and has no program: those are as in its repository.

*Ansible* (community.vmware): each VM is a host of the inventory and waits for no other (`strategy: free`, a fork for
each VM, pipelining); one module clones, one adds the vGPU, one powers on. The playbook names hosts and profile; each
module compares before it changes, and returns facts. There is no plan of the whole, NUMA nodes are a raw setting,
anti-affinity is another module, there is no ATS, and nothing is read back before power-on.

*OpenTofu* with Terraform's vSphere provider, `apply -parallelism=8`, reads what the file names, plans, clones, equips,
powers on, and reads each VM back into its state. The file names hosts and PCI addresses; NUMA nodes are a raw setting,
anti-affinity is another resource, there is no ATS, and nothing is read back before power-on. The provider is 1.26.0,
which knows neither vGPUs nor the memory lock (`tests/peers/test_terraform.py` says why it is that one), and gives a VM
that it clones no PCI device: the next apply does, with the VM powered off and on again
(https://github.com/vmware/terraform-provider-vsphere/issues/1137, mended in 2.x). So it is timed with two applies, and
with one for VMs without GPUs, which is the least that a newer provider could take.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyVim.connect import Disconnect
from pyVmomi import vim

from benchmarks.bare_provision import CPUS, EXTRA, MEMORY_MIB
from benchmarks.commands import Command, Verdict, cluster_file, on_fresh_lab, spread
from benchmarks.peers import tools
from benchmarks.peers.tools import NUMBER, Peer
from benchmarks.provision import HERE, VSML, connect_bare, machine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.lab.state import Lab

ROUNDS, LIMIT = 5, 1.0
BOARD = 'board = "A100-PCIE-40GB"\n'  # of sixteen.toml
# The newest hardware version: the provider holds the cluster's default to be each VM's own, and refuses to lower it.
DIRECTPATH = {BOARD: f"{BOARD}passthrough = true\n", "hardware_version = 20\n": "hardware_version = 21\n"}
PROFILE = 'profile = "A100-40C"'  # of sixteen-cluster.toml


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One way to give a VM its GPU, and the peers that can do it."""

    name: str
    topology: Mapping[str, str]  # what sixteen.toml says otherwise
    wanted: str  # of the cluster file
    peers: Mapping[str, Peer]


def main() -> int:
    print(machine())
    verdicts = [verdict for gpu in gpus() for verdict in compare(gpu)]
    print()
    for each in verdicts:
        print(each)
    return 0 if all(each.holds for each in verdicts) else 1


def gpus() -> list[Gpu]:
    """List both ways with their peers, which are installed first where they are not."""
    vgpu = {"vhpc-toolkit": tools.vhpc_toolkit(), "Ansible": tools.ansible()}
    directpath = {
        "OpenTofu applied twice": tools.opentofu(gpus=1, applies=2),
        "OpenTofu without GPUs": tools.opentofu(gpus=0, applies=1),
    }
    device = 'kind = "passthrough", device = "A100"'
    return [
        Gpu(name="vGPU", topology={}, wanted=PROFILE, peers=vgpu),
        Gpu(name="DirectPath", topology=DIRECTPATH, wanted=device, peers=directpath),
    ]


def compare(gpu: Gpu) -> list[Verdict]:
    """Time vsml and the peers in turn; the second figure is the number of calls to vCenter."""
    print(f"\nprovision of {NUMBER} VMs with one GPU each by {gpu.name}, whole commands")
    peers = {"vsml": Peer(partial(ours, gpu)), **gpu.peers}
    with tempfile.TemporaryDirectory() as folder:
        topology = topology_file(Path(folder), gpu)
        rows = [one_round(peers, topology) for _ in range(ROUNDS)]
    for name in peers:
        print(f"  {name}: {spread([row[name][0] for row in rows])}")
    return [verdict(gpu.name, name, rows) for name in gpu.peers]


def topology_file(folder: Path, gpu: Gpu) -> str:
    text = (HERE / "sixteen.toml").read_text()
    for old, new in gpu.topology.items():
        text = text.replace(old, new)
    file = folder / "sixteen.toml"
    file.write_text(text)
    return str(file)


def one_round(peers: Mapping[str, Peer], topology: str) -> dict[str, tuple[float, int]]:
    row = {name: on_fresh_lab(each.prepare, topology, partial(check, each.gpus)) for name, each in peers.items()}
    print("   ".join(f"  {name} {seconds:.2f} s, {made} calls" for name, (seconds, made) in row.items()), flush=True)
    return row


def verdict(gpu: str, peer: str, rows: Sequence[Mapping[str, tuple[float, int]]]) -> Verdict:
    ratio = statistics.median(row["vsml"][0] / row[peer][0] for row in rows)
    return Verdict(what=f"{NUMBER} VMs by {gpu}, vsml over {peer}", value=ratio, limit=LIMIT, unit=" ×")


def ours(gpu: Gpu, folder: Path, _lab: Lab) -> Command:
    file = Path(cluster_file(folder, NUMBER))
    file.write_text(file.read_text().replace(PROFILE, gpu.wanted))
    return Command([str(VSML), "provision", str(file), "--yes"])


def check(gpus: int, lab: Lab) -> None:
    """Raise SystemExit unless all VMs run as they were asked for: a tool may end well and have made something else."""
    instance = connect_bare(lab)
    content = instance.RetrieveContent()
    view = content.viewManager.CreateContainerView(content.rootFolder, [vim.VirtualMachine], True)
    ready = [vm.name for vm in view.view if vm.runtime.powerState == "poweredOn" and is_equipped(vm.config, gpus)]
    Disconnect(instance)
    if len(ready) != NUMBER:
        raise SystemExit(f"{len(ready)} of {NUMBER} VMs run with what they should have: {ready}")


def is_equipped(config: Any, gpus: int) -> bool:
    hardware, extra = config.hardware, {each.key: each.value for each in config.extraConfig}
    devices = [each for each in hardware.device if isinstance(each, vim.vm.device.VirtualPCIPassthrough)]
    size = (hardware.numCPU, hardware.memoryMB, config.memoryAllocation.reservation)
    return size == (CPUS, MEMORY_MIB, MEMORY_MIB) and len(devices) == gpus and set(EXTRA) <= set(extra)


if __name__ == "__main__":
    sys.exit(main())
