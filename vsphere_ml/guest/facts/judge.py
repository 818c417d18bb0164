"""Reads what a guest's programs print, and says what it means. Pure: an answer in, verdict and evidence out."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.order import count, fold_names
from vsphere_ml.core.tools import nvidia_smi
from vsphere_ml.core.units import parse_integer
from vsphere_ml.guest.steps.gpu import driver
from vsphere_ml.guest.steps.gpu import gpudirect as direct
from vsphere_ml.guest.steps.gpu import licence as licences
from vsphere_ml.guest.steps.network import rdma

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.core.model.guest import GuestFacts
    from vsphere_ml.guest.steps.network.roce import NetplanRoce
    from vsphere_ml.guest.steps.system.dataset import Dataset


Judgement: TypeAlias = "tuple[Severity, str]"

NEAR = ("NV", "PIX", "PXB", "PHB")
_PATH_MTUS = (4096, 2048, 1024, 512, 256)
# GRH, UDP, BTH, XRC, AtomicETH and ICRC, as Linux counts them (include/rdma/ib_addr.h, iboe_get_mtu).
_ROCE_HEADERS = 40 + 8 + 12 + 4 + 28 + 4


def gpus(answer: CommandAnswer, facts: GuestFacts) -> Judgement:
    """Judge the names of the guest's GPUs: `GRID A100-40C` for the profile `grid_a100-40c`. Whole GPUs are counted."""
    if not answer.ok:
        return _silent(answer, "nvidia-smi")
    names = answer.text.splitlines()
    wanted = facts.profile.rpartition("_")[2].casefold()
    right = [name for name in names if not wanted or name.casefold().split()[-1:] == [wanted]]
    seen = ", ".join(names) or "none"
    return _when(
        len(right) == facts.gpus == len(names), seen, f"{seen}; wanted {facts.gpus} × {facts.profile or 'whole GPUs'}"
    )


def branch(answer: CommandAnswer, facts: GuestFacts) -> Judgement:
    if not answer.ok:
        return _silent(answer, "nvidia-smi")
    there = answer.text.partition("\n")[0]
    if facts.vgpu_manager is None:
        return Severity.UNKNOWN, f"driver {there}; the host's vGPU manager could not be read"
    both = f"driver {there}, vGPU manager {facts.vgpu_manager}"
    return _when(driver.runs_under(there, facts.vgpu_manager), both, f"{both}: this driver does not run under it")


def licence(answer: CommandAnswer, _facts: GuestFacts) -> Judgement:
    if not answer.text:
        return Severity.UNKNOWN, "the driver says nothing of a licence"
    return _when(licences.is_licensed(answer), licences.state(answer))


def ecc(answer: CommandAnswer, _facts: GuestFacts) -> Judgement:
    if not answer.ok:
        return _silent(answer, "nvidia-smi")
    rows = [[cell.strip() for cell in line.split(",")] for line in answer.text.splitlines()]
    shown = "; ".join(f"ECC {', '.join(row)} uncorrected" for row in rows)
    if any(parse_integer(row[-1]) for row in rows):
        return Severity.ERROR, shown
    return (Severity.OK if rows and all(row[0] == "Enabled" for row in rows) else Severity.UNKNOWN), shown or "no GPU"


def clocks(answer: CommandAnswer, _facts: GuestFacts) -> Judgement:
    """Report the clocks. A GPU at rest runs slowly, so only their absence says anything."""
    if not answer.ok:
        return _silent(answer, "nvidia-smi")
    found = all("N/A" not in line and "MHz" in line for line in answer.text.splitlines())
    shown = "; ".join(line.replace(", ", " of ") for line in answer.text.splitlines())
    return (Severity.OK if found and shown else Severity.UNKNOWN), shown or "no GPU"


def distance(answer: CommandAnswer, _facts: GuestFacts) -> Judgement:
    """Judge nvidia-smi's matrix. A guest's PCI topology is virtual, so far apart there need not be so on the host."""
    found = [link for link in nvidia_smi.parse_topology(answer.out) if link.to_nic]
    if not found:
        return Severity.UNKNOWN, "nvidia-smi names no NIC beside the GPUs"
    shown = _list_paths(found)
    near = {link.gpu for link in found if link.kind.startswith(NEAR)}
    if near == {link.gpu for link in found}:
        return Severity.OK, shown
    return Severity.UNKNOWN, f"{shown}; this is the VM's own topology, compare it with the host's"


def nvlink(answer: CommandAnswer, facts: GuestFacts) -> Judgement:
    """Judge whether nvidia-smi's matrix has NVLink (`NV12`) between any two GPUs."""
    if not answer.ok:
        return _silent(answer, "nvidia-smi")
    links = nvidia_smi.parse_topology(answer.out)
    order = {gpu: at for at, gpu in enumerate(dict.fromkeys(link.gpu for link in links))}
    found = [link for link in links if order[link.gpu] < order.get(link.other, -1)]
    shown = _list_paths(found) or "nvidia-smi shows no two GPUs"
    pairs = facts.gpus * (facts.gpus - 1) // 2
    joined = len(found) == pairs and all(link.kind.startswith("NV") for link in found)
    return _when(joined, shown, f"{shown}; wanted NVLink between all {facts.gpus} GPUs")


def gpudirect(answer: CommandAnswer, _facts: GuestFacts) -> Judgement:
    lines = answer.text.splitlines()
    loaded = any(line.startswith("nvidia_peermem ") for line in lines)
    said = [line for line in lines if not line.startswith("nvidia_peermem ")]
    if len(said) < 2:  # noqa: PLR2004 - kernel and licence
        return Severity.UNKNOWN, "there is no NVIDIA kernel module"
    method = direct.gpudirect_method({"kernel": CommandAnswer(0, said[0]), "licence": CommandAnswer(0, said[1])})
    if method.dma_buf:
        return Severity.OK, f"DMA-BUF: {method.reason}"
    return _when(loaded, f"nvidia-peermem: {method.reason}", f"nvidia-peermem is not loaded; {method.reason}")


def container(answer: CommandAnswer, facts: GuestFacts) -> Judgement:
    if not answer.ok:
        return Severity.ERROR, _last_line(answer) or "no answer"
    seen = sum(line.startswith("GPU ") for line in answer.text.splitlines())
    return _when(seen == facts.gpus, f"{seen} of {count(facts.gpus, 'GPU')}")


def ats(answer: CommandAnswer, _facts: GuestFacts) -> Judgement:
    """Judge what lspci shows. Without ATS a VM's GPUDirect RDMA works below its best (NCCL's troubleshooting guide)."""
    if "not found" in answer.err:
        return Severity.UNKNOWN, _last_line(answer)
    lines = [line.strip() for line in answer.text.splitlines()]
    if lines and all("Enable+" in line for line in lines):
        return Severity.OK, "; ".join(lines)
    shown = "; ".join(lines) or "no NIC shows the capability"
    return Severity.WARNING, f"{shown}: not enabled, so GPUDirect RDMA does not reach its best"


def rdma_device(answer: CommandAnswer, _facts: GuestFacts, *, mtu: int) -> Judgement:
    """Judge state and path MTU of the RDMA devices; one that is as it should be is enough.

    ibv_devinfo fails for one device that it cannot open, and lists the others (rdma-core, devinfo.c).
    """
    wanted = _path_mtu(mtu)
    ports = list(_ports(answer.out))
    if not answer.ok and not ports:
        return _silent(answer, "ibv_devinfo")
    shown = "; ".join(f"{device} {state}, path MTU {active}" for device, state, active in ports)
    right = any(state == "PORT_ACTIVE" and active == str(wanted) for _, state, active in ports)
    return _when(right, shown, f"{shown or 'no device'}; wanted PORT_ACTIVE with path MTU {wanted}")


def roce_interface(
    answer: CommandAnswer, facts: GuestFacts, *, roce: NetplanRoce, nic: GuestFacts | None = None
) -> Judgement:
    """Judge MTU and address of a fast NIC's interface; `nic` is what is known of one after the first."""
    link = rdma.link(answer)
    if not link.name:
        return Severity.ERROR, _last_line(answer) or "there is no RoCE interface"
    shown = f"{link.name}, MTU {link.mtu}, {', '.join(link.addresses) or 'no IPv4 address'}"
    wrong = roce.wrong(link, nic or facts)
    return _when(wrong is None, shown, f"{shown}; {wrong}")


def gid(answer: CommandAnswer, facts: GuestFacts) -> Judgement:
    best = rdma.best(answer, facts)
    if best is None:
        return Severity.ERROR, "there is no GID of RoCE v2 with an IPv4 address"
    own = (rdma.own_address(facts) or best.address).partition("/")[0]
    shown = f"index {best.index} of {best.device} on {best.interface}, RoCE v2, {best.address}"
    return _when(best.address == own, shown, f"{shown}; the node's own address is {own}")


def memlock(answer: CommandAnswer, _facts: GuestFacts) -> Judgement:
    limit = answer.text
    return _when(limit == "unlimited", limit) if limit else (Severity.UNKNOWN, "no answer")


def time(answer: CommandAnswer, _facts: GuestFacts) -> Judgement:
    lines = answer.text.splitlines()
    clock = lines[-1] if lines else "no answer"
    return _when(lines[:1] == ["yes"], clock, f"{clock}; the clock does not follow network time")


def mesh(answer: CommandAnswer, facts: GuestFacts) -> Judgement:
    reached = {line.rpartition(" reached")[0] for line in answer.text.splitlines()}
    lost = [peer.name for peer in facts.peers if peer.name not in reached]
    return _when(not lost, f"{count(len(facts.peers), 'node')} reached", f"not reached: {', '.join(fold_names(lost))}")


def dataset(answer: CommandAnswer, _facts: GuestFacts, *, dataset: Dataset) -> Judgement:
    """Judge what file system a dataset's folder is of, and whether what it must have is in it."""
    kind, _, source = answer.text.partition(" ")
    shown = f"{dataset.contains or dataset.path} on {kind or 'no file system'} {source.strip()}".rstrip()
    if dataset.nfs and source.strip() != dataset.nfs:
        return Severity.ERROR, f"{dataset.path} is not mounted from {dataset.nfs}"
    return _when(answer.ok, shown, f"there is no {dataset.contains or 'such folder'} in {dataset.path}")


def _path_mtu(mtu: int) -> int:
    """Return the largest RDMA path MTU that fits an interface's MTU beside RoCE's headers, in bytes."""
    return next(each for each in (*_PATH_MTUS, 0) if each + _ROCE_HEADERS <= mtu)


def _ports(text: str) -> Iterator[tuple[str, str, str]]:
    """Read ibv_devinfo's ports: device, state, active MTU."""
    device = state = ""
    for line in text.splitlines():
        key, _, value = line.strip().partition(":")
        first = value.split()[:1]
        if key == "hca_id":
            device = value.strip()
        elif key == "state" and first:
            state = first[0]
        elif key == "active_mtu" and first:
            yield device, state, first[0]


def _list_paths(candidates: Sequence[nvidia_smi.GpuLink]) -> str:
    return ", ".join(f"{link.gpu} to {link.other}: {link.kind}" for link in candidates)


def _silent(answer: CommandAnswer, program: str) -> Judgement:
    # nvidia-smi says on its standard output why it fails; advice may follow in further lines.
    return Severity.ERROR, answer.text.partition("\n")[0] or _last_line(answer) or f"{program} does not answer"


def _last_line(answer: CommandAnswer) -> str:
    lines = (answer.text or answer.err.strip()).splitlines()
    return lines[-1].strip() if lines else ""


def _when(right: bool, shown: str, wrong: str = "") -> Judgement:  # noqa: FBT001 - what is judged
    return (Severity.OK, shown) if right else (Severity.ERROR, wrong or shown)
