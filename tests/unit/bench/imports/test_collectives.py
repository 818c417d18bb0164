"""Every collective of nccl-tests, in every layout it ever had: told by its figures, or asked for, and never another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import public_logs
from vsphere_ml.bench.imports import nccl_tests
from vsphere_ml.bench.imports.parsed import ImportOptions
from vsphere_ml.bench.network.bus_bandwidth import COLLECTIVES, bus_factor
from vsphere_ml.bench.network.sweeps import sizes
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.bench.imports.parsed import ParsedLog

MADE = [each for each in COLLECTIVES if each != "alltoallv"]
REDUCING = ("all_reduce", "reduce_scatter", "reduce", "sendrecv")
ROOTED = ("broadcast", "reduce", "gather", "scatter")
WHOLE = ("all_reduce", "broadcast", "reduce", "sendrecv")


def table(collective: str, layout: str, ranks: int, times_us: list[float], *, named: bool = False) -> str:
    """Return a log with the figures that nccl-tests' src/*.cu compute for these times."""
    rows = []
    for step, time in enumerate(times_us):
        size = (1 << 20) * ranks << step
        count = size // 4 // (1 if collective in WHOLE else ranks)
        printed = f"{time:.0f}" if time > 1e4 else f"{time:.1f}" if time > 100 else f"{time:.2f}"
        bus = size / time / 1e3 * bus_factor(ranks, collective)
        algorithm = bus if collective == "hypercube" else size / time / 1e3
        wrong = "0" if layout >= "2022" else "0e+00"
        inside = "N/A" if layout >= "2022" and collective in {"alltoall", "sendrecv"} else wrong
        figures = f"{printed} {algorithm:.2f} {bus:.2f}"
        rows.append(f"{size} {count} float {_fields(collective, layout)} {figures} {wrong} {figures} {inside}")
    described = {"layout": layout, "collective": collective, "hosts": [1] * ranks, "rows": rows, "tool": "nccl-tests"}
    return public_logs.text(described | {"named": named})


def _fields(collective: str, layout: str) -> str:
    operation = "sum" if collective in REDUCING else "none"
    root = "0" if collective in ROOTED else "-1"
    if layout >= "2022":
        return f"{operation} {root}" if collective != "hypercube" else root
    own = ["sum"] if collective in {"all_reduce", "reduce_scatter", "reduce"} else []
    return " ".join([*own, *(["0"] if collective in ROOTED else [])])


def read(text: str, asked: ImportOptions) -> ParsedLog:
    return nccl_tests.text([line.strip() for line in text.splitlines()], asked)


times = st.lists(st.floats(20, 1e6), min_size=1, max_size=4)


@given(
    collective=st.sampled_from(MADE),
    layout=st.sampled_from(["2019", "2021", "2022"]),
    ranks=st.sampled_from([2, 3, 4, 8, 16]),
    times_us=times,
)
@settings(max_examples=80, deadline=None)
def test_figures_tell_their_collective_or_it_is_asked_for(
    collective: str, layout: str, ranks: int, times_us: list[float]
) -> None:
    text = table(collective, layout, ranks, times_us)
    try:
        message = read(text, ImportOptions()).options["collective"]
    except ConfigError as error:
        assert error.code == "import.collective"  # noqa: PT017 - some layouts tell several
        message = read(text, ImportOptions(collective=collective)).options["collective"]
    assert message == collective


@given(
    collective=st.sampled_from(MADE), ranks=st.sampled_from([2, 3, 8]), times_us=times, layout=st.sampled_from(["2025"])
)
@settings(max_examples=30, deadline=None)
def test_the_name_in_the_log_is_enough_and_its_factor_is_right(
    collective: str, ranks: int, times_us: list[float], layout: str
) -> None:
    parsed = read(table(collective, layout, ranks, times_us), ImportOptions())
    assert parsed.options["collective"] == collective
    for size, time in zip(sizes(parsed.sweep, ranks, collective), times_us, strict=True):
        exact = size.size_bytes / time * 1e6 * bus_factor(ranks, collective)
        assert size.bus_bytes_per_s == pytest.approx(exact, rel=0.001)


@pytest.mark.parametrize("collective", [each for each in MADE if each not in {"all_reduce", "sendrecv"}])
def test_a_collective_taken_for_an_all_reduce_is_refused(collective: str) -> None:
    text = table(collective, "2022", 8, [1000.0, 2000.0])
    with pytest.raises(ConfigError) as caught:
        read(text, ImportOptions(collective="all_reduce"))
    assert caught.value.code == "import.differs"


def test_another_number_of_ranks_is_refused_since_the_printed_bandwidth_tells() -> None:
    lines = table("all_reduce", "2022", 16, [1000.0, 5000.0, 20000.0]).splitlines()
    without = [line for line in lines if "Rank" not in line]
    with pytest.raises(ConfigError) as caught:
        read("\n".join(without), ImportOptions(ranks=15))
    assert caught.value.code == "import.differs"
    assert read("\n".join(without), ImportOptions(ranks=16)).ranks == 16


@pytest.mark.parametrize("lost", [0, 7, 15])
def test_a_list_of_ranks_with_one_missing_is_asked_for(lost: int) -> None:
    lines = table("all_reduce", "2022", 16, [1000.0]).splitlines()
    gone = "\n".join(line for line in lines if f"Rank {lost:2} " not in line)
    if lost == 15:  # nothing in the list shows it, and the printed bandwidth does
        with pytest.raises(ConfigError) as caught:
            read(gone, ImportOptions())
        assert caught.value.code == "import.differs"
        return
    with pytest.raises(ConfigError) as caught:
        read(gone, ImportOptions())
    assert caught.value.code == "import.unknown-size"


@pytest.mark.parametrize(
    ("hosts", "process", "code"),
    [
        ([8, 8], "nThread 1 nGpus 1", ""),
        ([8, 7], "nThread 1 nGpus 1", "import.unknown-size"),
        ([15], "nThread 1 nGpus 1", ""),
        ([15], "nThread 1 nGpus 16", "import.unknown-size"),
        ([15], "nThread 2 nGpus 8", "import.unknown-size"),
    ],
)
def test_last_ranks_that_may_be_lost_are_asked_for_where_no_bandwidth_tells(
    hosts: list[int], process: str, code: str
) -> None:
    """A broadcast's bandwidth is the same of any number of ranks."""
    row = "1048576 262144 float none 0 100.0 10.49 10.49 0 100.0 10.49 10.49 0"
    described = {"layout": "2022", "collective": "broadcast", "hosts": hosts, "rows": [row], "tool": "nccl-tests"}
    text = public_logs.text(described).replace("nThread 1 nGpus 1", process)
    if not code:
        assert read(text, ImportOptions()).ranks == sum(hosts)
        return
    with pytest.raises(ConfigError) as caught:
        read(text, ImportOptions())
    assert (caught.value.code, caught.value.hint) == (code, "--ranks N")
    assert [read(text, ImportOptions(ranks=each)).ranks for each in (15, 16)] == [15, 16]


def test_several_types_reductions_or_roots_in_one_table_are_asked_for() -> None:
    text = table("all_reduce", "2022", 8, [1000.0])
    row = next(line for line in text.splitlines() if " float " in line)
    for old, new, option in ((" float ", " half  ", "--data-type"), (" sum ", " max ", "--reduction")):
        count = "2097152" if "half" not in new else "4194304"
        other = row.replace(old, new, 1).replace(" 2097152 ", f" {count} ", 1)
        both = text.replace(row, f"{row}\n{other}")
        with pytest.raises(ConfigError) as caught:
            read(both, ImportOptions())
        assert caught.value.code == "import.several"
        assert caught.value.hint.startswith(option)
    assert len(read(both, ImportOptions(reduction="max")).sweep) == 1


def document(collective: str, ranks: int, times_us: list[float]) -> dict[str, Any]:
    def way(time: float, size: int, wrong: float | None) -> dict[str, Any]:
        bus = size / time / 1e3 * bus_factor(ranks, collective)
        algorithm = bus if collective == "hypercube" else size / time / 1e3
        return {"time": time, "alg_bw": round(algorithm, 6), "bus_bw": round(bus, 6), "nwrong": wrong}

    sizes_ = [(1 << 20) * ranks << step for step in range(len(times_us))]
    return {
        "version": 2,
        "args": [f"./build/{collective}_perf"],
        "nccl_version": 22809,
        "config": {"devices": [{"rank": each, "hostname": f"n{each}", "device": 0} for each in range(ranks)]},
        "results": [
            {
                "size": size,
                "count": size // 4 // (1 if collective in WHOLE else ranks),
                "type": "float",
                "redop": "sum" if collective in REDUCING else "none",
                "root": "     0" if collective in ROOTED else "    -1",
                "out_of_place": way(time, size, 0.0),
                "in_place": way(time, size, None if collective in {"alltoall", "sendrecv"} else 0.0),
            }
            for size, time in zip(sizes_, times_us, strict=True)
        ],
    }


@pytest.mark.parametrize("collective", MADE)
def test_the_file_of_j_tells_each_collective_too(collective: str) -> None:
    parsed = nccl_tests.json(document(collective, 4, [100.5, 2000.25]), ImportOptions())
    assert parsed.options["collective"] == collective
    assert [point.time_s[0] for point in parsed.sweep] == pytest.approx([100.5e-6, 2000.25e-6])
    changed = document(collective, 4, [100.5, 2000.25])
    changed["results"][1]["out_of_place"]["bus_bw"] *= 1.001
    with pytest.raises(ConfigError) as caught:
        nccl_tests.json(changed, ImportOptions())
    assert caught.value.code == "import.differs"


def test_the_time_of_calls_is_not_that_of_the_collective() -> None:
    made = document("all_reduce", 2, [100.0])
    made["results"][0]["out_of_place"]["cpu_time"] = made["results"][0]["out_of_place"].pop("time")
    with pytest.raises(ConfigError) as caught:
        nccl_tests.json(made, ImportOptions())
    assert caught.value.code == "import.statistic"
    with pytest.raises(ConfigError) as caught:
        read(table("all_reduce", "2022", 2, [100.0]).replace("    time ", " cputime "), ImportOptions())
    assert caught.value.code == "import.statistic"


@pytest.mark.parametrize(
    ("line", "modes"),
    [
        ("# nThread 1 nGpus 1 iters: 20 agg iters: 1 validation: 1 graph: 0 unalign: 0", {}),
        ("# nThread 1 nGpus 1 iters: 20 agg iters: 8 validation: 1 graph: 0", {"aggregated": "8"}),
        (
            "# nThread 1 nGpus 1 agg iters: 1 validation: 1 graph: 4 unalign: 1",
            {"graph": "4", "unaligned": "1"},
        ),
        (
            "# Blocking Enabled: wait and barrier after each inner iteration (-m) ",
            {"blocking": "wait and barrier after each inner iteration"},
        ),
    ],
)
def test_calls_that_were_made_in_another_way_are_another_configuration(line: str, modes: dict[str, str]) -> None:
    plain = read(table("all_reduce", "2025", 2, [100.0]), ImportOptions()).options
    made = read(f"{line}\n" + table("all_reduce", "2025", 2, [100.0]), ImportOptions()).options
    assert dict(made) == dict(plain) | modes


def test_the_file_of_j_tells_how_calls_were_made_too() -> None:
    made = document("all_reduce", 2, [100.0])
    plain = dict(nccl_tests.json(made, ImportOptions()).options)
    made["config"] |= {"graph": 4, "aggregated_iterations": 8, "blocking_collectives": "true"}
    modes = {"graph": "4", "aggregated": "8", "blocking": "yes"}
    assert dict(nccl_tests.json(made, ImportOptions()).options) == plain | modes


def test_iterations_stand_beside_the_tools_mean_without_those_it_skipped() -> None:
    made = document("all_reduce", 2, [100.0])
    made["results"][0]["out_of_place_per_iter"] = {"skipped_iterations": 1, "times_us": [900.0, 110.0, 120.0]}
    (point,) = nccl_tests.json(made, ImportOptions()).sweep
    assert list(point.time_s) == pytest.approx([100e-6])
    assert list(point.iterations_s) == pytest.approx([110e-6, 120e-6])


def test_a_process_with_more_gpus_than_there_can_be_is_refused_at_once(golden: Golden) -> None:
    made = document("all_reduce", 2, [100.0])
    made["config"] |= {"nthreads": 10**9, "ngpus": 10**9}
    with pytest.raises(ValueError, match="GPUs") as caught:
        nccl_tests.json(made, ImportOptions())
    golden(caught.value)


def test_two_tables_in_one_file_are_refused_though_no_device_is_listed() -> None:
    lines = [line for line in table("all_reduce", "2022", 2, [1000.0]).splitlines() if "Rank" not in line]
    with pytest.raises(ConfigError) as caught:
        read("\n".join([*lines, *lines]), ImportOptions(ranks=2))
    assert caught.value.code == "import.joined"


@pytest.mark.parametrize("at", [0, 1, 3])
def test_sizes_that_come_again_under_one_title_are_another_run(at: int) -> None:
    lines = (Path(__file__).parents[3] / "cases" / "imports" / "nccl-tests.txt").read_text().splitlines()
    rows = [line for line in lines if " float " in line]
    last = lines.index(rows[-1]) + 1
    with pytest.raises(ConfigError) as caught:
        public_logs.imported("\n".join([*lines[:last], rows[at], *lines[last:]]) + "\n", ImportOptions())
    assert caught.value.code == "import.joined"
