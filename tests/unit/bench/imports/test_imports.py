from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.counted import checked, counted
from vsphere_ml.bench.analysis.compare import compare
from vsphere_ml.bench.analysis.explain import explain
from vsphere_ml.bench.analysis.study import study
from vsphere_ml.bench.gate.gate import gate
from vsphere_ml.bench.gate.thresholds import Threshold, ThresholdLimits
from vsphere_ml.bench.imports import log, reading
from vsphere_ml.bench.imports.files import import_logs, one
from vsphere_ml.bench.imports.parsed import ImportOptions
from vsphere_ml.bench.model.record import Link, Outcome, Run, Verdict
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.network.sweeps import sizes
from vsphere_ml.bench.report.report_content import story
from vsphere_ml.bench.report.tables import links
from vsphere_ml.bench.stats.verdicts import ComparisonResult
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.bench.imports.parsed import ParsedLog

FOLDER = Path(__file__).parents[3] / "cases" / "imports"
NOON = "2026-01-31T12:00:00Z"


def read(name: str, wanted: ImportOptions = ImportOptions()) -> Run:  # noqa: B008
    return imported_from((FOLDER / name).read_bytes(), wanted)


def imported_from(content: bytes, wanted: ImportOptions = ImportOptions()) -> Run:  # noqa: B008
    return one(log.read([content], "log"), wanted, NOON)


def parse(content: bytes, wanted: ImportOptions = ImportOptions(ranks=2, nodes=2)) -> ParsedLog:  # noqa: B008
    return reading.parse(log.read([content], "log"), wanted)


@pytest.mark.parametrize(
    ("name", "tool", "wanted"),
    [
        ("nccl-tests.txt", "nccl-tests", ImportOptions()),
        ("nccl-tests-2019.txt", "nccl-tests", ImportOptions()),
        ("nccl-tests.json", "nccl-tests", ImportOptions()),
        ("osu.txt", "osu_allreduce", ImportOptions(ranks=2, nodes=2)),
        ("osu-full.txt", "osu_allreduce", ImportOptions(ranks=2, nodes=2)),
    ],
)
def test_a_gigabyte_a_second_is_one_whichever_tool_printed_it(name: str, tool: str, wanted: ImportOptions) -> None:
    made = read(name, wanted)
    assert (made.source, made.configuration.ranks, made.configuration.nodes) == (tool, 2, 2)
    text = sizes(made.sweep, 2)
    assert [size.size_bytes for size in text] == [1 << 20, 4 << 20, 16 << 20, 64 << 20]
    assert [size.best_bus_bytes_per_s for size in text] == pytest.approx([1e9] * 4, rel=0.001)


def test_every_iteration_is_kept_where_the_tool_did() -> None:
    assert [len(point.iterations_s) for point in read("nccl-tests.json").sweep] == [3, 3, 3, 3]
    assert [len(point.time_s) for point in read("nccl-tests.json").sweep] == [1, 1, 1, 1]
    assert read("nccl-tests.json").diagnostics == ()
    assert [each.code for each in read("nccl-tests.txt").diagnostics] == ["import.mean-times"]


def test_where_ranks_ran_and_with_what_comes_along() -> None:
    for name in ("nccl-tests.txt", "nccl-tests.json"):
        made = read(name)
        assert [(place.rank, place.node, place.device) for place in made.placement] == [
            (0, "node-0", "GRID A100-40C"),
            (1, "node-1", "GRID A100-40C"),
        ]
        assert made.environment.versions == {"nccl": "2.28.9"}


def test_the_environment_in_a_file_stays_there_but_for_nccls_own() -> None:
    made = read("nccl-tests.json")
    assert made.environment.variables == {"NCCL_DEBUG": "INFO"}
    assert "hunter2" not in repr(made)


def test_horovods_iterations_become_step_times() -> None:
    made = read("horovod.txt", ImportOptions(nodes=2))
    assert made.steps is not None
    assert made.steps.step_s[0][1] == pytest.approx(0.1)
    assert (made.configuration.model, made.configuration.parameters) == ("resnet50", 25_600_000)
    estimate = study((made,)).scalings[0].point.samples_per_s
    assert estimate is not None
    assert estimate.value == pytest.approx(640, rel=0.01)
    assert [each.code for each in made.diagnostics] == ["import.one-rank"]


def test_the_total_of_tf_cnn_benchmarks_is_over_all_ranks() -> None:
    made = read("tf-cnn.txt", ImportOptions(nodes=2))
    assert made.configuration.ranks == 2
    estimate = study((made,)).scalings[0].point.samples_per_s
    assert estimate is not None
    assert estimate.value == pytest.approx(640)
    assert estimate.half_width is None


def test_iperf3_is_what_the_receiver_got() -> None:
    document = json.loads((FOLDER / "iperf3.json").read_text())
    made = read("iperf3.json")
    assert made.link_results[0].bytes_per_s == document["end"]["sum_received"]["bits_per_second"] / 8
    document["start"]["test_start"]["reverse"] = 1
    document["start"]["connected"][0] |= {"local_host": "a", "remote_host": "b"}
    turned = imported_from(json.dumps(document).encode())
    assert (turned.link_results[0].sender, turned.link_results[0].receiver) == ("b", "a")


def test_perftest_is_its_largest_message() -> None:
    (link,) = read("ib-write-bw.txt").link_results
    assert (link.message_bytes, link.gpu_memory) == (8388608, True)
    assert link.bytes_per_s == pytest.approx(92.39e9 / 8)
    text = (FOLDER / "ib-write-bw.txt").read_text()
    for unit in ("MiB/sec", "MB/sec"):  # both are 2^20, in every version of perftest
        other = re.sub(r"\d+\.\d{6}", "0.0", text.replace("Gb/sec", unit))  # the rate of messages tells the unit
        assert parse(other.encode()).links[0].bytes_per_s == pytest.approx(92.39 * 1048576)
    with pytest.raises(ConfigError) as caught:
        parse(text.replace("Gb/sec", "furlongs").encode())
    assert caught.value.code == "import.unit"


def test_an_old_log_gets_its_bracket() -> None:
    link = Link(line_rate_bits_per_s=100e9, mtu_bytes=9000)
    wanted = ImportOptions(nodes=2, transport=Transport.ROCE, link=link)
    single = (FOLDER / "horovod.txt").read_bytes().replace(b"Number of GPUs: 2", b"Number of GPUs: 1")
    single = single.replace(b"on 2 GPU(s): 637.6", b"on 1 GPU(s): 318.8")
    alone = imported_from(single, replace(wanted, nodes=1))
    both = study((alone, read("horovod.txt", wanted))).scalings[1]
    assert both.efficiency is not None
    assert both.bounds is not None
    assert both.bounds.floor < both.efficiency.value


def test_launches_of_one_configuration_are_numbered_and_compared() -> None:
    content = (FOLDER / "nccl-tests.txt").read_bytes()
    slower = content.replace(b" 67108.9    1.00    1.00", b" 80000.0    0.84    0.84")
    slower = slower.replace(b" 16777.0    1.00    1.00", b" 20000.0    0.84    0.84")
    again = slower.replace(b" 80000.0    0.84    0.84", b" 80100.0    0.84    0.84")
    first = import_logs([("a", [content], NOON), ("b", [content + b"\n"], NOON)], ImportOptions())
    same = import_logs([("c", [slower], NOON), ("d", [slower + b"\n"], NOON)], ImportOptions())
    second = import_logs([("c", [slower], NOON), ("d", [again], NOON)], ImportOptions())
    assert [made.launch for made in first] == [1, 2]
    assert compare(first, same).rows[0].answer is ComparisonResult.NOISY  # equal figures on a side are no certainty
    assert compare(first, second).rows[0].answer is ComparisonResult.SLOWER


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "import.unknown"),
        (b"hello", "import.unknown"),
        (b"{}", "import.unknown"),
        (b"\xff\xfe\x00", "import.unknown"),
        ((FOLDER / "nccl-tests.txt").read_bytes().replace(b"all_reduce_perf", b"alltoall_perf"), "import.differs"),
        ((FOLDER / "nccl-tests.json").read_bytes().replace(b"all_reduce_perf", b"alltoall_perf"), "import.differs"),
        ((FOLDER / "osu.txt").read_bytes().replace(b"Allreduce", b"Alltoall"), "import.collective"),
        (b"# out-of-place busbw root\n", "import.empty"),
        (b"# OSU MPI Allreduce Latency Test v1\n", "import.empty"),
        (b"Iter #0: 0.0 img/sec per GPU\n", "import.empty"),
        (b"total images/sec: 3\n", "import.empty"),
        (b'{"start": {"test_start": {}}, "error": "no route to host"}', "import.empty"),
        (b'{"start": {"test_start": {}}, "end": {}}', "import.empty"),
        (b'{"nccl_version": 1, "results": [{"size": "x"}]}', "import.unknown"),
        (b'{"nccl_version": 1, "results": 7}', "import.unknown"),
    ],
)
def test_what_is_no_result_is_refused_in_words(content: bytes, code: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(content)
    assert caught.value.code == code
    assert caught.value.hint


def test_what_no_log_says_has_to_be_given(golden: Golden) -> None:
    with pytest.raises(ConfigError) as caught:
        read("osu.txt")
    assert (caught.value.code, caught.value.target) == ("import.unknown-size", "osu_allreduce")
    golden(caught.value)
    with pytest.raises(ConfigError) as caught:
        read("horovod.txt")
    assert caught.value.code == "import.unknown-size"
    golden(caught.value)


NAMES = sorted(each.name for each in FOLDER.iterdir() if each.suffix in {".txt", ".json"})


@counted
@given(st.sampled_from(NAMES), st.data())
def test_a_log_with_anything_in_it_is_read_or_refused(name: str, data: Any) -> None:
    content = (FOLDER / name).read_bytes()
    at = data.draw(st.integers(0, len(content)))
    other = data.draw(st.binary(max_size=8))
    cut = data.draw(st.integers(0, 40))
    broken = content[:at] + other + content[at + cut :]
    try:
        imported_from(broken, ImportOptions(nodes=2, ranks=2))
        checked()
    except ConfigError as error:
        assert error.code.startswith("import.")  # noqa: PT017 - most are still read


@pytest.mark.parametrize(
    ("name", "transport", "mtu"),
    [("iperf3.json", Transport.TCP, "MTU 1500"), ("ib-write-bw.txt", Transport.ROCE, "1024")],
)
def test_an_old_log_of_a_link_is_held_against_its_rate_by_report_explain_and_gate_alike(
    name: str, transport: Transport, mtu: str, golden: Golden
) -> None:
    made = read(name, ImportOptions(transport=transport, link=Link(line_rate_bits_per_s=400e9)))
    seen = study((made,))
    (row,) = links(seen).rows
    share = row[-1].partition(" %")[0]
    assert 0 < float(share) < 90
    assert mtu in row[-1]
    (verdict,) = story(seen).verdicts
    golden(verdict)
    (slow,) = (each for each in explain(seen) if each.code == "bench.slow-link")
    assert f"{share} % of the" in slow.message
    asked = [Threshold(limits=ThresholdLimits(of_bound=0.9))]
    failed = [each for each in gate((made,), None, asked) if each.severity is Severity.ERROR]
    golden([each.message for each in failed])


@pytest.mark.parametrize(
    ("carrier", "transport", "outcome", "verdict"),
    [
        ("NET/IB/0/GDRDMA", Transport.GPUDIRECT, Outcome.COMPLETE, Verdict.YES),
        ("NET/IB/0", Transport.GPUDIRECT, Outcome.INVALID, Verdict.NO),
        ("NET/Socket/0", Transport.ROCE, Outcome.INVALID, Verdict.NO),
        ("NET/IB/0", Transport.TCP, Outcome.COMPLETE, Verdict.UNKNOWN),
        ("P2P/IPC", Transport.ROCE, Outcome.COMPLETE, Verdict.UNKNOWN),
    ],
)
def test_nccls_own_lines_in_a_log_prove_the_path_that_was_told(
    carrier: str, transport: Transport, outcome: Outcome, verdict: Verdict
) -> None:
    """The lines are written by hand after NCCL's src/transport/net.cc."""
    said = "".join(
        f"node-{host}:41:77 [0] NCCL INFO Channel 00/0 : {host}[0] -> {1 - host}[0] [send] via {carrier}\n"
        f"node-{host}:41:77 [0] NCCL INFO Channel 00/0 : {1 - host}[0] -> {host}[0] [receive] via {carrier}\n"
        for host in (0, 1)
    )
    content = said.encode() + (FOLDER / "nccl-tests.txt").read_bytes()
    made = imported_from(content, ImportOptions(transport=transport))
    assert (made.outcome, made.proof("path"), len(made.paths)) == (outcome, verdict, 4)
    assert bool(made.sweep) == (outcome is Outcome.COMPLETE)
    texts = {each.code for each in explain(study((made,)))} & {"bench.path-unproven", "bench.wrong-path"}
    unproven = verdict is Verdict.UNKNOWN and transport is not Transport.TCP
    assert ("bench.path-unproven" in texts) is unproven


def test_a_communicator_of_more_ranks_than_are_listed_is_a_contradiction() -> None:
    said = "node-1:41:77 [0] NCCL INFO comm 0xaa rank 1 nranks {} cudaDev 0 busId 1 - Init COMPLETE\n"
    content = (FOLDER / "nccl-tests.txt").read_text()
    assert imported_from((said.format(2) + content).encode()).configuration.ranks == 2
    with pytest.raises(ConfigError) as caught:
        imported_from((said.format(3) + content).encode())
    assert caught.value.code == "import.differs"


@pytest.mark.parametrize("name", ["nccl-tests.txt", "nccl-tests.json"])
def test_a_gpu_that_is_listed_twice_may_be_of_clones_that_share_a_name(name: str) -> None:
    content = (FOLDER / name).read_bytes()
    assert read(name).configuration.nodes == 2
    clones = content.replace(b"node-1", b"node-0")
    with pytest.raises(ConfigError) as caught:
        imported_from(clones)
    assert (caught.value.code, caught.value.hint) == ("import.unknown-size", "--nodes N")
    assert imported_from(clones, ImportOptions(nodes=2)).configuration.nodes == 2
