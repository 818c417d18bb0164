"""Public logs, as descriptions: each gives its own figures, however it was collected, or is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fakes import public_logs
from tests.fakes.public_logs import COLLECTED, WRAPPED, Described
from vsphere_ml.bench.model.record import Outcome
from vsphere_ml.bench.network.sweeps import collective, sizes
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from vsphere_ml.bench.model.record import Run

LOGS = {each["id"]: each for each in public_logs.descriptions()}
READ = sorted(name for name, each in LOGS.items() if "error" not in each)
REFUSED = sorted(set(LOGS) - set(READ))
NCCL = [name for name in READ if LOGS[name]["tool"] == "nccl-tests"]


def test_there_are_as_many_as_promised_and_each_has_its_address() -> None:
    assert len(LOGS) >= 40
    assert len({each["source"] for each in LOGS.values()}) >= 30
    assert all(each["source"].startswith("https://") for each in LOGS.values())
    of_nccl = [each for each in LOGS.values() if each["tool"] == "nccl-tests"]
    assert {each["layout"] for each in of_nccl} == {"2017", "2019", "2022", "2025"}
    assert {each["tool"] for each in LOGS.values()} >= {"nccl-tests", "osu", "perftest", "iperf3", "horovod", "tf_cnn"}


def run_of(described: Described) -> Run:
    return public_logs.imported(public_logs.text(described), public_logs.given(described))


@pytest.mark.parametrize("name", NCCL)
def test_nccl_tests_give_the_times_and_bus_bandwidths_that_they_print(name: str) -> None:
    described = LOGS[name]
    run = run_of(described)
    asked, found = run.configuration, described.get("given", {})
    assert (run.outcome, asked.options["collective"]) == (Outcome.COMPLETE, described["collective"])
    assert asked.ranks == found.get("ranks", sum(described["hosts"]))
    assert asked.nodes == found.get("nodes", len(described["hosts"]))
    rows = [row.split() for row in described["rows"] if int(row.split()[0]) > 0]
    rows = [row for row in rows if row[2] == asked.options["type"]]
    rows = [row for row in rows if "reduction" not in found or row[3] == found["reduction"]]
    unit = 1e-3 if described["layout"] == "2017" else 1e-6
    assert [(point.size_bytes, point.time_s) for point in run.sweep] == [
        (int(row[0]), (float(row[-8]) * unit,)) for row in rows
    ]
    for size, row in zip(sizes(run.sweep, asked.ranks, collective(asked)), rows, strict=True):
        rounding = 0.5 / 10 ** len(row[-6].partition(".")[2]) * 1e9
        time_rounding = 0.5 / 10 ** len(row[-8].partition(".")[2]) / float(row[-8])
        capacity = rounding + time_rounding * size.bus_bytes_per_s
        assert size.bus_bytes_per_s == pytest.approx(float(row[-6]) * 1e9, abs=capacity * 1.001)


@pytest.mark.parametrize("name", [name for name in READ if LOGS[name]["tool"] != "nccl-tests"])
def test_other_tools_give_the_figures_that_they_print(name: str) -> None:
    described = LOGS[name]
    run = run_of(described)
    assert run.outcome is Outcome.COMPLETE
    if described["tool"] == "osu":
        times = {point.size_bytes: point.time_s[0] * 1e6 for point in run.sweep}
        assert {size: times[int(size)] for size in described["sizes"]} == pytest.approx(described["sizes"])
    elif run.link_results:
        (link,) = run.link_results
        assert link.bytes_per_s == pytest.approx(described["figure"])
        assert link.tool == described.get("expect_tool", "iperf3")
        assert link.infiniband == described.get("infiniband", described.get("link") == "IB")
        assert link.rdma_mtu_bytes == described.get("mtu")
    else:
        assert run.steps is not None
        assert run.steps.step_s[0][0] == pytest.approx(described["figure"])
        assert run.configuration.ranks == described.get("expect_ranks", described.get("ranks"))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_single_figure_is_refused(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        run_of(LOGS[name])
    assert caught.value.code == LOGS[name]["error"]
    assert caught.value.hint


@pytest.mark.parametrize("way", COLLECTED)
def test_a_log_gives_the_same_figures_however_it_was_collected(way: str) -> None:
    differing = []
    for name in READ:
        described = LOGS[name]
        plain = public_logs.text(described | {"pieces": False})
        expected = public_logs.imported(plain, public_logs.given(described))
        try:
            run = public_logs.imported(COLLECTED[way](plain), public_logs.given(described))
        except ConfigError as error:
            differing.append((name, error.code))
            continue
        if _figures(run) != _figures(expected):
            differing.append((name, "other figures"))
    assert differing == []


@pytest.mark.parametrize("way", WRAPPED)
def test_what_is_wrapped_in_something_unknown_is_refused_for_that(way: str) -> None:
    codes = {}
    for name in READ:
        plain = public_logs.text(LOGS[name] | {"pieces": False})
        with pytest.raises(ConfigError) as caught:
            public_logs.imported(WRAPPED[way](plain), public_logs.given(LOGS[name]))
        codes[name] = caught.value.code
    assert {name: code for name, code in codes.items() if code != "import.wrapped"} == {}


def test_titles_that_are_quoted_beside_the_tool_s_own_are_no_wrapper() -> None:
    plain = public_logs.text(LOGS[NCCL[0]])
    quoted = f"see also: # nThread 1 nGpus 1\n{plain}"
    assert _figures(public_logs.imported(quoted, public_logs.given(LOGS[NCCL[0]]))) == _figures(run_of(LOGS[NCCL[0]]))


def _figures(run: Run) -> object:
    codes = [each.code for each in run.diagnostics]
    return run.configuration, run.sweep, run.steps, run.link_results, run.placement, run.outcome, codes
