"""What a guest has for a benchmark, asked in one round trip before anything runs."""

from __future__ import annotations

import re
import shlex
from dataclasses import field, replace
from typing import TYPE_CHECKING

from vsphere_ml.bench.model.engines import Needs
from vsphere_ml.bench.model.job import FOLDER, MPICH, OPEN_MPI, RunIn, Runtime
from vsphere_ml.bench.probe import container as inside
from vsphere_ml.bench.probe import nccl_tests, nvbandwidth, perftest, rdma
from vsphere_ml.core.errors import BenchError, NotPossible
from vsphere_ml.core.nodes import container
from vsphere_ml.core.tools import nvidia_smi
from vsphere_ml.core.units import parse_integer
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vsphere_ml.bench.model.job import Tools
    from vsphere_ml.bench.model.transports import Transport
    from vsphere_ml.bench.probe.container import ContainerInfo
    from vsphere_ml.bench.probe.nccl_tests import AllReducePerf
    from vsphere_ml.bench.probe.perftest import Perftest
    from vsphere_ml.bench.probe.rdma import Port
    from vsphere_ml.core.model.guest import CommandAnswer, Peer

_VERSION = re.compile(r"\b(\d+)\.(\d+)\.(\d+)")
_ADDRESS = re.compile(r"^\d+:\s+(?P<name>[^\s@]+).*?\binet (?P<address>[\d.]+)/", re.MULTILINE)
_DRIVERS = """\
for driver in /sys/class/net/*/device/driver; do
    [ -e "$driver" ] || continue
    name=${driver#/sys/class/net/} to=$(readlink -f "$driver")
    echo "${name%%/*} ${to##*/}"
done
"""
# A class that Horovod's library has when it was built with NCCL alone (horovod/common/ops/nccl_operations.h).
_WITH_NCCL = "NCCLAllreduce"
_DIST = re.compile(r"(?P<name>[^/\n]+)-(?P<version>[^-/\n]+)\.dist-info")
# By NVIDIA's release notes of TensorFlow 23.05, its image has Horovod with NCCL; the public index has no such wheel.
GPU_RUNTIME = (
    '`vsml configure` with the playbook "container" and [guest] settings = { image = '
    '"nvcr.io/nvidia/tensorflow:23.05-tf2-py3" }, then --run-in container; or `vsml runtime build`'
)
# Virtual networks of the guest's own, whatever address they hold.
STRAY = ("lo", "docker", "br-", "veth", "virbr", "cni", "flannel", "podman")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surveyed:
    """What one guest has."""

    node: str
    runtime: bool  # a Python with Horovod
    pytorch: bool = False  # a Python with PyTorch
    jax: bool = False  # a Python with JAX
    python: str = ""  # where it lies
    versions: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)  # interface by address
    mtu: Mapping[str, int] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)  # bits per second, by interface
    macs: Mapping[str, str] = field(default_factory=dict)  # by interface
    drivers: Mapping[str, str] = field(default_factory=dict)  # by interface; a virtual one has none
    mpirun: str = ""
    mpi: str = ""  # whose it is
    mpi_version: tuple[int, ...] = ()
    congestion_control: str = ""  # of TCP
    iperf3: bool = False
    ports: tuple[Port, ...] = ()  # of RDMA devices
    all_reduce_perf: AllReducePerf | None = None
    perftest: Perftest | None = None
    nvbandwidth: str = ""  # where the program lies
    container: ContainerInfo | None = None  # None where none runs, or none was asked for
    peermem: bool = False
    dma_buf: bool = False  # the open kernel module, by which DMA-BUF goes
    ats: bool | None = None  # of all NICs, by lspci; None when it shows nothing
    gpu_to_nic: str = ""  # of the worst placed GPU, by nvidia-smi topo: PIX, PXB, PHB, NODE, SYS
    gpus: int = 0
    horovod_nccl: bool = False  # Horovod was built with NCCL, without which it reduces no GPU's memory
    home: str = ""
    supervised: tuple[str, ...] = ()  # runs that somebody looks after right now


def probes(tools: Tools) -> Mapping[str, str]:
    """Return what to ask."""
    user = shlex.quote(tools.user)
    return {
        "addresses": "ip -o -4 address show",
        "mtu": "grep -H . /sys/class/net/*/mtu",
        "speed": "grep -sH . /sys/class/net/*/speed; :",  # an interface that is down answers with an error
        "macs": "grep -sH . /sys/class/net/*/address; :",
        "drivers": _DRIVERS,
        "iperf3": "command -v iperf3",
        "rdma": rdma.PROBE,
        "peermem": "test -e /sys/module/nvidia_peermem",
        "nvbandwidth": nvbandwidth.PROBE,
        "module": "cat /proc/driver/nvidia/version",
        "ats": "lspci -d 15b3: -vvv | grep ATSCtl",
        "topology": nvidia_smi.TOPOLOGY,
        "gpus": "nvidia-smi --query-gpu=uuid --format=csv,noheader",
        "driver": "nvidia-smi --query-gpu=driver_version --format=csv,noheader",
        "kernel": "uname -r",
        "congestion": "cat /proc/sys/net/ipv4/tcp_congestion_control",
        "home": f"getent passwd {user} | cut -d: -f6",
        "supervised": f"find {FOLDER} -maxdepth 2 -name alive -mmin -1 -printf '%h\\n'",
        **_where_ranks_run(tools),
    }


def _where_ranks_run(tools: Tools) -> dict[str, str]:
    """Return what is asked where ranks run."""
    python, mpirun = shlex.quote(tools.python), shlex.quote(tools.mpirun or "mpirun")
    site = f"{shlex.quote(tools.python.rpartition('/bin/')[0])}/lib/python3*/site-packages"
    asked = {
        "nccl": f"grep -qs {_WITH_NCCL} {site}/horovod/*/mpi_lib*.so",
        "python": f"{python} --version",
        "where": f"command -v {python}",
        "packages": f"{python} -c {shlex.quote(inside.ASK_PACKAGES)}",
        "mpirun": f"command -v {mpirun}",
        "mpi": f"{mpirun} --version",
        "nccl_tests": nccl_tests.probe(tools.all_reduce_perf),
        "perftest": perftest.PROBE,
    }
    if tools.within is RunIn.GUEST:
        return asked
    asked |= {"nccl": f'grep -qs {_WITH_NCCL} "$({python} -c {shlex.quote(inside.ASK_HOROVOD)})"/*/mpi_lib*.so'}
    if tools.within is RunIn.KUBERNETES:  # where pods are asked themselves
        return asked
    return {name: container.command_in_container(command) for name, command in asked.items()} | inside.probes(
        tools.ssh_port
    )


def read(node: str, seen: Mapping[str, CommandAnswer], rdma_device: str = "") -> Surveyed:
    """Return the answers as a value; of RDMA devices only this one, where it is named."""
    packages = {match["name"].lower(): match["version"] for match in _DIST.finditer(seen["packages"].out)}
    mpi, mpi_version = _mpi(seen["mpi"])
    versions = {
        "python": seen["python"].text.removeprefix("Python "),
        "kernel": seen["kernel"].text,
        "driver": seen["driver"].text.partition("\n")[0] if seen["driver"].ok else "",
        mpi.lower().replace(" ", "_"): ".".join(map(str, mpi_version)),
        **{name: packages.get(name, "") for name in inside.PACKAGES},
    }
    within = inside.read(seen)
    return Surveyed(
        node=node,
        runtime=seen["python"].ok and "horovod" in packages,
        pytorch=seen["python"].ok and "torch" in packages,
        jax=seen["python"].ok and "jax" in packages,
        python=seen["where"].text if seen["python"].ok else "",
        versions={name: version for name, version in versions.items() if version},
        addresses={match["address"]: match["name"] for match in _ADDRESS.finditer(seen["addresses"].out)},
        mtu=_by_interface(seen["mtu"].out),
        rates={name: value * 1e6 for name, value in _by_interface(seen["speed"].out).items()},
        macs=_macs(seen["macs"].out),
        drivers=dict(line.split(" ", 1) for line in seen["drivers"].out.splitlines() if " " in line),
        mpirun=seen["mpirun"].text if mpi else "",
        mpi=mpi,
        mpi_version=mpi_version,
        congestion_control=seen["congestion"].text if seen["congestion"].ok else "",
        iperf3=seen["iperf3"].ok,
        ports=rdma.ports_of_device(rdma.read(seen["rdma"].out), rdma_device),
        all_reduce_perf=nccl_tests.parse_probe(seen["nccl_tests"].out),
        perftest=perftest.parse_probe(seen["perftest"].out),
        nvbandwidth=seen["nvbandwidth"].text,
        container=within,
        peermem=seen["peermem"].ok,
        dma_buf="Open Kernel Module" in seen["module"].out,
        ats=_ats(seen["ats"]),
        gpu_to_nic=nvidia_smi.gpu_to_nic(seen["topology"].out),
        horovod_nccl=seen["nccl"].ok,
        gpus=len(seen["gpus"].out.split()) if seen["gpus"].ok else 0,
        home=seen["home"].text,
        supervised=tuple(line.rpartition("/")[2] for line in seen["supervised"].out.split()),
    )


def restrict_ports(each: Surveyed, transport: Transport) -> Surveyed:
    """Return what the guest has for this transport: of several RDMA devices those that it may go by."""
    return replace(each, ports=rdma.ports_of_transport(each.ports, transport)) if transport.spec.rdma else each


def interface(seen: Sequence[Surveyed], nodes: Sequence[Peer], wanted: str = "") -> str:
    """Return the interface that control traffic goes over: that of the nodes' own addresses, or the one asked for.

    Horovod and MPI know one name for all nodes. BenchError `bench.interface` when there is none, or it cannot be meant.
    """
    if wanted:
        missing = [each.node for each in seen if wanted not in each.addresses.values()]
        if missing:
            raise _no_interface(f"{', '.join(missing)}: there is no interface {wanted} with an IPv4 address", seen)
        _check_named(wanted, seen)
        return wanted
    of = {node.name: each.addresses.get(node.address, "") for node, each in zip(nodes, seen, strict=True)}
    names = set(of.values())
    if len(names) != 1 or "" in names:
        text = ", ".join(f"{node}: {name or 'none'}" for node, name in of.items())
        raise _no_interface(f"the nodes' addresses are not on one interface of the same name ({text})", seen)
    name = names.pop()
    if name.startswith(STRAY):
        raise _no_interface(f"the nodes' addresses are on {name}, which leads to no other node", seen)
    return name


def _check_named(name: str, seen: Sequence[Surveyed]) -> None:
    """Raise BenchError for a name that a person gave and that leads from no node to another."""
    if name == "lo" or name.startswith("docker"):
        raise _no_interface(f"{name} leads to no other node", seen)
    nodes: dict[str, list[str]] = {}
    for each in seen:
        nodes.setdefault(_address(each, name), []).append(each.node)
    for address, same in nodes.items():
        if len(same) > 1:
            raise _no_interface(f"{', '.join(same)} all have the address {address} on {name}", seen)


def peers_on_interface(seen: Sequence[Surveyed], nodes: Sequence[Peer], name: str) -> tuple[Peer, ...]:
    """Return the nodes with their addresses on this interface; a node's own address wins where it is on it."""
    return tuple(
        node if each.addresses.get(node.address) == name else replace(node, address=_address(each, name))
        for node, each in zip(nodes, seen, strict=True)
    )


def _address(each: Surveyed, name: str) -> str:
    return next(address for address, interface in each.addresses.items() if interface == name)


def runtime(seen: Sequence[Surveyed], tools: Tools, needs: Needs = Needs.HOROVOD) -> Runtime:
    """Return what the job runs with.

    BenchError `bench.no-runtime`, `bench.no-container` or `bench.container` where a guest does not have it.
    """
    if tools.within is RunIn.CONTAINER:
        inside.check({each.node: each.container for each in seen}, tools)
    missing = [each for each in seen if not _meets(each, needs)]
    if missing:
        raise _no_runtime(missing, tools, needs.value)
    first = seen[0]
    same = all(
        (each.mpirun, each.mpi, each.mpi_version) == (first.mpirun, first.mpi, first.mpi_version) for each in seen
    )
    return Runtime(
        python=first.python or tools.python,
        mpirun=first.mpirun if same else "",
        mpi=first.mpi or OPEN_MPI,
        mpi_version=first.mpi_version if same else (),
        user=tools.user,
        home=first.home or f"/home/{tools.user}",
        within=tools.within,
        ssh_port=tools.ssh_port,
        variables=first.container.variables if first.container else {},
    )


def _meets(each: Surveyed, needs: Needs) -> bool:
    return {
        Needs.NOTHING: True,
        Needs.PYTHON: bool(each.python),
        Needs.HOROVOD: each.runtime,
        Needs.PYTORCH: each.pytorch,
        Needs.PYTORCH_HOROVOD: each.pytorch and each.runtime,
        Needs.JAX: each.jax,
    }[needs]


def cpu_bound(seen: Sequence[Surveyed]) -> Iterator[str]:
    """Yield the nodes that have GPUs and a Horovod that can reduce nothing of theirs."""
    return (each.node for each in seen if each.gpus and each.runtime and not each.horovod_nccl)


def no_gpu_runtime(nodes: Sequence[str], transport: str) -> NotPossible:
    """Return that a launch from GPU memory cannot be made with these nodes' Horovod."""
    return NotPossible(
        f"{', '.join(nodes)}: Horovod there was built without NCCL, and {transport} is from GPU to GPU",
        code="bench.no-gpu-runtime",
        target=nodes[0],
        hint=GPU_RUNTIME,
    )


def _no_runtime(missing: Sequence[Surveyed], tools: Tools, what: str) -> BenchError:
    nodes = [each.node for each in missing]
    hint = '`vsml configure` with the playbook "runtime", or name yours: [guest] settings = { runtime_path = … }'
    if tools.within is RunIn.CONTAINER:
        hint = "name the image's: [guest] settings = { container_python = … }; or another image"
    elif any(each.gpus for each in missing):
        hint = GPU_RUNTIME
    where = "" if tools.within is RunIn.GUEST else f" in container {container.NAME}"
    return BenchError(
        f"{', '.join(nodes)}: {tools.python} is no {what}{where}",
        code="bench.no-runtime",
        target=nodes[0],
        hint=hint,
    )


def _mpi(answer: CommandAnswer) -> tuple[str, tuple[int, ...]]:
    """Return whose launcher it is and its version, from what `mpirun --version` prints. MPICH's launcher is Hydra."""
    families = {"Open MPI": OPEN_MPI, "HYDRA": MPICH}
    family = next((name for word, name in families.items() if word in answer.out), "") if answer.ok else ""
    version = _VERSION.search(answer.out)
    if not family or version is None:
        return "", ()
    return family, tuple(int(part) for part in version.groups())


def _macs(text: str) -> dict[str, str]:
    """Return the address that `grep -H` found of each interface."""
    pairs = (line.partition("/address:") for line in text.splitlines())
    return {path.rpartition("/")[2]: mac.lower() for path, _, mac in pairs if mac}


def _by_interface(text: str) -> dict[str, int]:
    """Return the numbers that `grep -H` found in a file of each interface; -1 is no number."""
    pairs = (line.rpartition(":") for line in text.splitlines())
    numbers = ((path.split("/"), parse_integer(value)) for path, _, value in pairs)
    return {path[4]: number for path, number in numbers if number is not None and len(path) > 5}  # noqa: PLR2004


def _no_interface(why: str, seen: Sequence[Surveyed]) -> BenchError:
    return BenchError(
        why,
        code="bench.interface",
        target=seen[0].node if seen else "",
        hint="--interface NAME",
        details=tuple(f"{each.node}: {_list_addresses(each)}" for each in seen),
    )


def _list_addresses(each: Surveyed) -> str:
    return ", ".join(f"{name} {address}" for address, name in each.addresses.items())


def _ats(answer: CommandAnswer) -> bool | None:
    """Return whether every NIC that shows the capability has it enabled; None where none shows it."""
    lines = answer.text.splitlines()
    return all("Enable+" in line for line in lines) if lines else None
