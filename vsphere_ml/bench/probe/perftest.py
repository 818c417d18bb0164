"""What RDMA gets through between two nodes: perftest's ib_write_bw, from host memory or from a GPU's.

The device, its port and the GID index are named for each end: perftest would take the first device that it finds.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.bench.imports import links
from vsphere_ml.bench.model.job import MARK, RunIn
from vsphere_ml.bench.model.record import LinkLoad
from vsphere_ml.bench.probe.side_by_side import run_side_by_side, split_outputs
from vsphere_ml.core.errors import BenchError, ConfigError
from vsphere_ml.core.nodes.container import command_in_container
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.model.record import LinkResult
    from vsphere_ml.bench.probe.rdma import Rail
    from vsphere_ml.core.model.guest import Peer, Shell

PORT = 24602
ITERATIONS = 1000  # of each size; 8 MiB a thousand times is 0.7 s at 100 Gbit/s
AT_ONCE_BYTES, AT_ONCE_S = 1 << 20, 5  # all nodes at once send as long as each other, whatever each gets through
# What the program's own help names says what it was built with.
PROBE = "command -v ib_write_bw && { ib_write_bw --help 2>&1 | grep -o -- '--use_cuda[a-z_]*'; :; }"
# Memory is locked for the device; root may lift the limit. The server begins to listen when it finds the time.
_SERVE = "ulimit -l unlimited 2>/dev/null; {variables} setsid timeout 90 {command} </dev/null >/dev/null 2>&1 &"
_MEASURE = """\
ulimit -l unlimited 2>/dev/null
for turn in 1 2 3 4 5 6 7 8 9 10; do
    out=$({variables} timeout 80 {command} 2>&1) && break
    sleep 0.5
done
printf '%s' "$out"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Perftest:
    """The program as one guest has it."""

    path: str
    cuda: bool
    dma_buf: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """One end of a link. `gpu` is the GPU whose memory is sent from or written to; None is host memory."""

    node: Peer
    tool: Perftest
    rail: Rail
    within: RunIn
    gpu: int | None = None
    traffic_class: int | None = None  # of the packets; None is the program's own, 0
    dma_buf: bool = False  # by which the GPU's memory is reached; otherwise by nvidia-peermem
    load: LinkLoad = LinkLoad.ALONE
    listens: int = PORT  # TCP port by which both ends of one rail find each other


def parse_probe(text: str) -> Perftest | None:
    """Return what `PROBE` printed; None when there is no such program."""
    path, *options = text.split() or [""]
    if not path.startswith("/"):
        return None
    return Perftest(path=path, cuda="--use_cuda" in options, dma_buf="--use_cuda_dmabuf" in options)


def command(end: End, server: str = "") -> tuple[str, ...]:
    """Return the call: the receiving end's, or with `server` the address that the sending end goes to."""
    port, gid = end.rail.port, end.rail.gid
    option = ("-d", port.device, "-i", str(port.number), "-x", str(gid.index), "-p", str(end.listens))
    # -a: every size from 2 bytes to 8 MiB. -F: whatever the CPU's frequency does.
    alone = end.load is LinkLoad.ALONE
    lasts = ("-a", "-n", str(ITERATIONS)) if alone else ("-s", str(AT_ONCE_BYTES), "-D", str(AT_ONCE_S))
    how = (*lasts, "-q", "1", "-F", "--report_gbits")
    cuda = () if end.gpu is None else (f"--use_cuda={end.gpu}", *(("--use_cuda_dmabuf",) if end.dma_buf else ()))
    # Without RDMA-CM (-R) it is --tclass; --tos has no effect then (perftest, perftest_parameters.c).
    marked = () if end.traffic_class is None else (f"--tclass={end.traffic_class}",)
    return (end.tool.path, *option, *how, *marked, *cuda, *((server,) if server else ()))


def serve(shell: Shell, end: End, run_id: str) -> None:
    """Let the guest receive one measurement."""
    _run(shell, end, _SERVE.format(variables=_variables(end, run_id), command=shlex.join(command(end))), 60)


def measure(shell: Shell, end: End, receiver: End, run_id: str) -> LinkResult:
    """Return what gets through for the largest message; the receiver must be served.

    BenchError `bench.link` when nothing does, or when a GPU's memory was asked for and not used.
    """
    (result,) = measure_at_once(shell, [(end, receiver)], run_id)
    return result


def measure_at_once(shell: Shell, ends: Sequence[tuple[End, End]], run_id: str) -> tuple[LinkResult, ...]:
    """Return what gets through from one guest to these receivers at the same time; errors as `measure`."""
    scripts = [
        _MEASURE.format(
            variables=_variables(end, run_id),
            command=shlex.join(command(end, receiver.node.address)),
        )
        for end, receiver in ends
    ]
    outputs = split_outputs(_run(shell, ends[0][0], run_side_by_side(scripts), 900), len(ends))
    return tuple(parse_link_result(text, *pair) for text, pair in zip(outputs, ends, strict=True))


def parse_link_result(text: str, end: End, receiver: End) -> LinkResult:
    """Return the link that the sending end printed; errors as `measure`."""
    try:
        (link,) = links.perftest(text.splitlines()).links
    except ConfigError as error:
        raise _measure_error(end, receiver, _last_line(text) or error.message) from error
    if link.gpu_memory != (end.gpu is not None):
        raise _measure_error(
            end, receiver, f"it used {'GPU' if link.gpu_memory else 'host'} memory, which was not asked for"
        )
    rates = [each.rail.port.line_rate_bits_per_s for each in (end, receiver)]
    known = [rate for rate in rates if rate is not None]
    slowest = min(known) if len(known) == len(rates) else None
    return replace(
        link,
        sender=end.node.name,
        receiver=receiver.node.name,
        device=end.rail.port.name,
        line_rate_bits_per_s=slowest,
        load=end.load,
    )


def _run(shell: Shell, end: End, script: str, timeout_s: float) -> str:
    return shell.run(command_in_container(script) if end.within is RunIn.CONTAINER else script, timeout_s=timeout_s).out


def _variables(end: End, run_id: str) -> str:
    # As perftest's README has it (GPUDirect usage, 8), for "Couldn't allocate MR".
    scatter = "" if end.gpu is None else " MLX5_SCATTER_TO_CQE=0"
    return f"{MARK}={shlex.quote(run_id)}{scatter}"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip(" -\t")]
    return lines[-1] if lines else ""


def _measure_error(end: End, receiver: End, why: str) -> BenchError:
    ends = f"{end.node.name} to {receiver.node.name}"
    return BenchError(
        f"ib_write_bw from {ends} ({receiver.node.address}, port {PORT}, {end.rail.port.name}) measured nothing: {why}",
        code="bench.link",
        target=ends,
        hint=f"`vsml verify`; `vsml ssh {receiver.node.name} -- show_gids`; look for a firewall between the nodes",
    )
