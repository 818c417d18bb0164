"""From a file of unknown origin to a run: which tool wrote it, and what the person has to add."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from vsphere_ml.bench.imports import iperf3, links, nccl_tests, training
from vsphere_ml.bench.imports.log import too_large
from vsphere_ml.bench.imports.parsed import ImportOptions, differs, joined_runs_error
from vsphere_ml.bench.imports.unread import refuse_unread, refuse_unread_document
from vsphere_ml.bench.imports.wrapped import wrapper_error
from vsphere_ml.bench.model.record import Cluster, Configuration, Environment, Link, Outcome, Place, Run, Steps, Verdict
from vsphere_ml.bench.predict.models import MODELS
from vsphere_ml.bench.proof import channels, paths
from vsphere_ml.bench.records.long_runs import MOST_TIMES
from vsphere_ml.bench.records.validate import check
from vsphere_ml.core.codec import Mismatch
from vsphere_ml.core.diagnostics import Diagnostic, mistake
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vsphere_ml.bench.imports.log import Log
    from vsphere_ml.bench.imports.parsed import ParsedLog
    from vsphere_ml.bench.model.record import LinkResult

_Lines: TypeAlias = "Sequence[str]"
_TEXTS: tuple[tuple[Callable[[_Lines], bool], Callable[[_Lines, ImportOptions], ParsedLog]], ...] = (
    (nccl_tests.is_text, nccl_tests.text),
    (training.is_horovod, training.horovod),
    (training.is_tf_cnn, training.tf_cnn),
    (links.is_osu, links.osu),
    (links.is_perftest, links.perftest),
    (iperf3.is_text, iperf3.text),
)
_DOCUMENTS: tuple[tuple[Callable[[Any], bool], Callable[[Any, ImportOptions], ParsedLog]], ...] = (
    (nccl_tests.is_json, nccl_tests.json),
    (iperf3.is_json, iperf3.json),
)
_NOT_FOUND = frozenset({"import.unknown", "import.empty", "import.joined"})
KNOWN = "nccl-tests, Horovod's synthetic benchmarks, tf_cnn_benchmarks, iperf3, osu_allreduce, perftest's ib_*_bw"


def parse(log: Log, given: ImportOptions) -> ParsedLog:
    """Return what a log holds, whichever tool wrote it. Raises ConfigError when none of the known ones did."""
    if log.document is None and (error := wrapper_error(log.lines, log.name, titles_only=True)) is not None:
        raise error
    try:
        return _parse(log, given)
    except ConfigError as error:
        if error.code not in _NOT_FOUND or (cause := wrapper_error(log.lines, log.name)) is None:
            raise
        raise cause from error


def _parse(log: Log, given: ImportOptions) -> ParsedLog:
    try:
        if log.document is not None:
            for knows, read in _DOCUMENTS:
                if knows(log.document):
                    return read(log.document, given)
            refuse_unread_document(log.document)
            raise _unknown_output_error(log.name, ())
        readers = [read for knows_text, read in _TEXTS if knows_text(log.lines)]
        if len(readers) > 1:
            raise joined_runs_error(log.name, "several tools wrote it")
        if readers:
            return readers[0](log.lines, given)
        refuse_unread(log.lines)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, OverflowError) as error:
        problem = mistake(log.name, None, _describe(error))
        raise _unknown_output_error(log.name, (problem,)) from error
    raise _unread(log)


def _describe(error: Exception) -> str:
    """Return what is wrong in a document, without Python's names for it."""
    if isinstance(error, KeyError):
        return f"{str(error)[:200]} is missing"
    if isinstance(error, ValueError):
        return str(error)[:200]
    return "a value is of another kind than the tool writes"


def _unread(log: Log) -> ConfigError:
    """Return why no tool wrote this; of a text that begins as JSON, what keeps it from being one document."""
    text = "\n".join(log.lines)
    if log.document is not None or not text.startswith("{"):
        return _unknown_output_error(log.name, ())
    try:
        json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError) as error:
        why = error.msg if isinstance(error, json.JSONDecodeError) else "what is in it is too large"
        problem = mistake(log.name, None, f"it begins as JSON, and is cut or broken: {why}")
        return _unknown_output_error(log.name, (problem,))
    return joined_runs_error(log.name, "a JSON document has more text after it")


def run(parsed: ParsedLog, given: ImportOptions, *, log: Log, seen: str) -> Run:
    """Return the run of what was parsed. `seen` is the file's time, which stands for the run's.

    Raises ConfigError `import.unknown-size` when nobody says how many ranks and nodes there were.
    """
    asked = _configuration(parsed, given)
    _refuse_lost_ranks(parsed, log)
    went = channels.of_nccl(log.nccl)
    nodes = paths.JobNodes.of_devices(asked.nodes, {each.rank: each.hostname for each in parsed.devices})
    by = paths.of_import(given.transport, went, nodes, log.nccl)
    wrong = [*parsed.wrong, *([f"{by.name}: {by.evidence}"] if by is not None and by.verdict is Verdict.NO else [])]
    made = Run(
        run_id=f"import-{log.digest[:12]}",
        launch=given.launch,
        source=parsed.tool,
        started=seen,
        ended=seen,
        outcome=Outcome.INVALID if wrong else Outcome.COMPLETE,
        reason="; ".join(wrong),
        configuration=asked,
        cluster=Cluster(name=given.cluster) if given.cluster else None,
        environment=Environment(versions=parsed.versions, variables=parsed.variables, command=parsed.command),
        link=given.link,
        placement=_placement(parsed),
        steps=None if wrong else _steps(parsed, asked.ranks),
        sweep=() if wrong else parsed.sweep,
        link_results=tuple(_with_line_rate(each, given.link) for each in parsed.links),
        proofs=(by,) if by is not None else (),
        paths=went,
        diagnostics=parsed.diagnostics,
    )
    return _validate_run(made, parsed.tool)


def _refuse_lost_ranks(parsed: ParsedLog, log: Log) -> None:
    """Raise ConfigError where NCCL made a communicator of more ranks than the tool lists."""
    largest = channels.find_largest_communicator(log.nccl)
    if parsed.devices and parsed.ranks is not None and largest > parsed.ranks:
        why = f"NCCL made a communicator of {largest} ranks, and {parsed.ranks} are listed"
        raise differs(parsed.tool, why, f"--ranks {largest}, if lines are lost")


def _size(parsed: ParsedLog, given: ImportOptions) -> tuple[int, int]:
    """Return the numbers of nodes and ranks."""
    ranks = given.ranks or parsed.ranks
    nodes = given.nodes or _count_hosts(parsed) or (2 if parsed.links else 1 if ranks == 1 else None)
    if ranks is None or nodes is None:
        raise ConfigError(
            f"{parsed.tool} does not say on how many {'ranks' if ranks is None else 'nodes'} it ran",
            code="import.unknown-size",
            target=parsed.tool,
            hint="--ranks N" if ranks is None else "--nodes N",
        )
    if nodes > ranks:
        raise differs(parsed.tool, f"{ranks} ranks are not on {nodes} nodes", "check --nodes and --ranks")
    return nodes, ranks


def _count_hosts(parsed: ParsedLog) -> int:
    """Return on how many hosts the ranks are. Raises ConfigError where a GPU comes twice: clones share names."""
    gpus = [(each.hostname, each.index, each.address) for each in parsed.devices if each.address]
    (host, index, address), count = next(iter(Counter(gpus).most_common(1)), (("", None, ""), 0))
    if count > 1:
        raise ConfigError(
            f"{parsed.tool} lists device {index} [{address}] of {host} {count} times: nodes may share that name",
            code="import.unknown-size",
            target=parsed.tool,
            hint="--nodes N",
        )
    return len({each.hostname for each in parsed.devices})


def _placement(parsed: ParsedLog) -> tuple[Place, ...]:
    return tuple(
        Place(rank=each.rank, local_rank=0, node=each.hostname, hostname=each.hostname, device=each.name)
        for each in parsed.devices
    )


def _with_line_rate(measured: LinkResult, link: Link) -> LinkResult:
    """Return what was measured over RDMA with the port's rate, so that it is held against the MTU the tool printed."""
    return (
        measured
        if measured.rdma_mtu_bytes is None
        else replace(measured, line_rate_bits_per_s=link.line_rate_bits_per_s)
    )


def _configuration(parsed: ParsedLog, given: ImportOptions) -> Configuration:
    nodes, ranks = _size(parsed, given)
    known = MODELS.get(parsed.model)
    asked = Configuration(workload=parsed.workload, nodes=nodes, ranks=ranks, launcher="import", backend=parsed.tool)
    return replace(
        asked,
        transport=given.transport,
        model=parsed.model,
        batch=parsed.batch,
        gradients=parsed.gradients or given.gradients,
        parameters=given.parameters or (known.parameters if known else None),
        options=parsed.options,
    )


def _steps(parsed: ParsedLog, ranks: int) -> Steps | None:
    if not parsed.step_s:
        return None
    if ranks * len(parsed.step_s) > MOST_TIMES:
        raise too_large(parsed.tool, f"in it for {ranks} ranks", "check --ranks")
    return Steps(step_s=(parsed.step_s,) * ranks, samples_per_step=parsed.batch, averaged=parsed.averaged)


def _validate_run(made: Run, tool: str) -> Run:
    try:
        check(made)
    except Mismatch as error:
        problem = mistake(tool, None, error.message, key=".".join(map(str, error.path)))
        raise _unknown_output_error(tool, (problem,)) from error
    return made


def _unknown_output_error(file: str, problems: tuple[Diagnostic, ...]) -> ConfigError:
    return ConfigError(
        f"{file} is no output that is known" if not problems else f"{file} cannot be read",
        problems=problems,
        code="import.unknown",
        target=file,
        hint=f"known are {KNOWN}",
    )
