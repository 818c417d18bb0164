"""nccl-tests' all_reduce_perf: where it lies, what this build of it can do, and how it is called.

It is built by whoever has the GPUs, and its options differ from year to year (`-a` since 2021, `-J` since 2025, `-I`
since 2026), so its own help is asked. What it prints is read by `imports.nccl_tests`.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.bench.imports import nccl_tests as imports
from vsphere_ml.bench.imports.parsed import ImportOptions
from vsphere_ml.bench.imports.parsed import first_group as found_in
from vsphere_ml.bench.imports.prefixes import strip_prefixes
from vsphere_ml.bench.model.job import RunIn
from vsphere_ml.core import json_text
from vsphere_ml.core.diagnostics import Diagnostic
from vsphere_ml.core.errors import BenchError, ConfigError, NotPossible
from vsphere_ml.core.hints import CommandLine, Hint
from vsphere_ml.core.nodes.container import NAME
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.bench.imports.parsed import ParsedLog
    from vsphere_ml.bench.model.job import Runtime
    from vsphere_ml.bench.model.rank_log import RankLog

RESULT = "nccl-tests.json"  # in the job's folder
BUILD = (
    "git clone https://github.com/NVIDIA/nccl-tests /opt/nccl-tests && "
    "make -C /opt/nccl-tests MPI=1 MPI_HOME={mpi} CUDA_HOME=/usr/local/cuda"
)
_DEBIANS_MPI = "/usr/lib/x86_64-linux-gnu/openmpi"  # where its headers and libraries lie together
# NVIDIA's images have both on PATH, and only the first of them speaks MPI.
_PLACES = (
    "all_reduce_perf_mpi",
    "all_reduce_perf",
    "/opt/nccl-tests/build/all_reduce_perf",
    "/opt/nccl_tests/build/all_reduce_perf",
    "/usr/local/nccl-tests/build/all_reduce_perf",
    "/root/nccl-tests/build/all_reduce_perf",
)
_OURS = ImportOptions(collective="all_reduce")
# The first one that is linked with MPI wins; without any, the first one that is there. Its help needs no GPU.
_PROBE = """\
found=
for each in {places}; do
    path=$(command -v "$each") || continue
    case $(ldd "$path" 2>/dev/null) in *libmpi*) found=$path; break ;; esac
    found=${{found:-$path}}
done
[ -n "$found" ] || exit 1
echo "$found"
ldd "$found" 2>/dev/null | grep -m 1 -o 'libmpi[^ ]*' || echo without MPI
"$found" -h 2>&1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllReducePerf:
    """The program as one guest has it."""

    path: str
    over_mpi: bool
    options: frozenset[str]  # long names: average, output_file, per_iter_timing


def probe(path: str) -> str:
    """Return the question for the program: at `path`, or in the usual places when that is empty."""
    places = (path,) if path else _PLACES
    return _PROBE.format(places=" ".join(map(shlex.quote, places)))


def parse_probe(text: str) -> AllReducePerf | None:
    """Return what the guest answered; None when it has no such program."""
    path, _, rest = text.partition("\n")
    linked, _, usage = rest.partition("\n")
    if not path.startswith("/"):
        return None
    known = (each for each in ("average", "output_file", "per_iter_timing") if f"--{each}" in usage)
    return AllReducePerf(path=path, over_mpi=linked.startswith("libmpi"), options=frozenset(known))


def same_program(of: Mapping[str, AllReducePerf | None], runtime: Runtime) -> AllReducePerf:
    """Return the program that all nodes have where ranks run.

    NotPossible `bench.no-nccl-tests` where it is missing, lies elsewhere than in the others, or was built without MPI.
    """
    missing = [node for node, each in of.items() if each is None]
    if missing:
        raise _missing_error(missing, f"no all_reduce_perf of nccl-tests is in the {runtime.within}", runtime)
    have = {node: each for node, each in of.items() if each is not None}
    alone = [node for node, each in have.items() if not each.over_mpi]
    if alone:
        path = have[alone[0]].path
        raise _missing_error(alone, f"{path} was built without MPI=1, and would run on each rank alone", runtime)
    if len(set(have.values())) > 1:
        why = "the nodes have different builds of all_reduce_perf, or at different paths"
        raise _missing_error(list(have), why, runtime)
    return next(iter(have.values()))


def enough_gpus(of: Mapping[str, int], ranks: int) -> None:
    """Raise NotPossible `bench.too-few-gpus` where a node has fewer GPUs than ranks."""
    short = [f"{node}: {gpus}" for node, gpus in of.items() if gpus < ranks]
    if short:
        raise NotPossible(
            f"NCCL wants a GPU for each of {ranks} ranks a node, and there are fewer ({', '.join(short)})",
            code="bench.too-few-gpus",
            target=short[0].partition(":")[0],
            hint="--ranks-per-node with as many as a node has; `vsml verify` if the driver does not see them",
        )


def options(tests: AllReducePerf, asked: Mapping[str, str], folder: str) -> tuple[str, ...]:
    """Return the options for one rank a GPU; `asked` has the smallest and largest message and the iterations.

    The time of a message is that of its slowest rank where this build prints it.
    """
    sizes = ("-b", asked["smallest"], "-e", asked["largest"], "-f", "2")
    plain = (*sizes, "-n", asked["iterations"], "-g", "1", "-c", "1")
    slowest = ("-a", "3") if "average" in tests.options else ()
    every = ("-I", "1") if "per_iter_timing" in tests.options else ()
    file = ("-J", f"{folder}/{RESULT}") if "output_file" in tests.options else ()
    return (*plain, *slowest, *every, *file)


def parse_result(log: str, result: str, ranks: int) -> ParsedLog:
    """Return what one launch measured: from the file of `-J` where there is one, else from the table in the log.

    BenchError `bench.no-samples` when it printed nothing, or not of one job of so many ranks.
    """
    try:
        parsed = imports.json(json_text.parse(result), _OURS) if result else imports.text(_bare_lines(log), _OURS)
    except (ValueError, KeyError, TypeError, OverflowError, AttributeError, ConfigError) as error:
        raise _nothing(f"unexpected output of all_reduce_perf: {error}") from error
    if {each.rank for each in parsed.devices} != set(range(ranks)):
        counted = ", ".join(str(each.rank) for each in parsed.devices) or "none"
        raise _nothing(f"all_reduce_perf reported ranks {counted}, but {ranks} were started as one job")
    return replace(parsed, diagnostics=(*parsed.diagnostics, *_left_out(log)))


def _bare_lines(log: str) -> list[str]:
    return [strip_prefixes(line) for line in log.splitlines()]


def _left_out(log: str) -> tuple[Diagnostic, ...]:
    """Return that large messages were left out: the program needs three times their size of a GPU's memory."""
    largest = found_in(r"^# Reducing maxBytes to (\d+) due to memory limitation", _bare_lines(log))
    if not largest:
        return ()
    message = f"not measured: messages over {largest} bytes, for which the GPUs' memory is too small"
    return (
        Diagnostic(code="bench.not-measured", target="all_reduce_perf", message=message, hint="--nccl-sizes FROM:TO"),
    )


def with_measurements(logs: Sequence[RankLog], measured: ParsedLog) -> tuple[RankLog, ...]:
    """Return the ranks with what the program measured for them all; each names the GPU it used."""
    index = {each.rank: each.index for each in measured.devices}
    sweep = [(point.size_bytes, point.time_s) for point in measured.sweep]
    iterations = {point.size_bytes: point.iterations_s for point in measured.sweep if point.iterations_s}
    return tuple(
        replace(
            each,
            sweep=sweep,
            iterations_s=iterations,
            wrong=list(measured.wrong) if each.rank == 0 else [],
            model={"device": f"GPU:{index[each.rank]}", "versions": measured.versions} if each.rank in index else {},
            ended=True,
        )
        for each in logs
    )


def _nothing(why: str) -> BenchError:
    return BenchError(why, code="bench.no-samples", target="all_reduce_perf", hint="see its log in the record")


def _missing_error(nodes: Sequence[str], why: str, runtime: Runtime) -> NotPossible:
    build = BUILD.format(mpi=runtime.mpi_prefix or _DEBIANS_MPI)
    where = f"docker exec {NAME} sh -c '{build}'" if runtime.within is RunIn.CONTAINER else build
    return NotPossible(
        f"{', '.join(nodes)}: {why}",
        code="bench.no-nccl-tests",
        target=nodes[0],
        hint=Hint(CommandLine(f'vsml run --sudo -- "{where}"'), "; or name one: [guest] settings = { nccl_tests = … }"),
    )
