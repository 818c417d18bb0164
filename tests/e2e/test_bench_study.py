"""`vsml bench study` on two lab guests: what TCP carries is measured, what wants RDMA is refused and recorded."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e import launched, trained
from tests.waiting import until
from vsphere_ml.bench.studies import tcp_stacks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.conftest import Ended
    from tests.e2e.trained import Cluster

pytestmark = [*trained.on_guests(), pytest.mark.long]
TRAIN = ("--steps", "15", "--batch", "8", "--image-size", "32", "--sizes", "1048576,4194304", "--iters", "3")
SMALL = (*TRAIN, "--repeats", "2", "--nodes", "1-2", "--max-time", "900", "-o", "json")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with launched.cluster(tmp_path_factory.mktemp("study")) as made:
        made.shape("100mbit")
        yield made


def study(cluster: Cluster, name: str, *more: str) -> Ended:
    return cluster.shell.here("bench", "study", name, "cluster.toml", *SMALL, *more)


def cells(ended: Ended) -> dict[tuple[str, int, str], dict[str, Any]]:
    """Return each cell by its workload, nodes and column."""
    assert ended.status == 0, ended.err
    found = [cell for row in ended.document["data"]["rows"] for cell in row["cells"] if cell is not None]
    return {(cell["configuration"]["workload"], cell["configuration"]["nodes"], cell["column"]): cell for cell in found}


def over_tcp(ended: Ended) -> dict[str, dict[str, Any]]:
    """Return the cells of the row over TCP, by their column."""
    assert ended.status == 0, ended.err
    (row,) = (each for each in ended.document["data"]["rows"] if each["configuration"]["transport"] == "tcp")
    return {cell["column"]: cell for cell in row["cells"]}


def documents(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(each.read_text()) for each in sorted(folder.glob("*.json"))]


def test_tcp_is_measured_rdma_is_refused_and_an_interrupted_study_goes_on(cluster: Cluster) -> None:
    folder = cluster.shell.folder / "bench" / "study-pvrdma-train"
    process = cluster.shell.start("bench", "study", "pvrdma", "cluster.toml", *SMALL)
    until(lambda: any(each["outcome"] == "complete" for each in documents(folder)), "nothing was measured", 900)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=launched.LAUNCH_S)
    assert process.returncode == 130, err
    complete = {each["run_id"] for each in documents(folder) if each["outcome"] == "complete"}
    found = cells(study(cluster, "pvrdma"))
    assert launched.find_stale_processes(cluster) == []
    assert {key: cell["state"] for key, cell in found.items()} == {
        ("train", 1, "tcp"): "measured",
        **{(what, 2, "tcp"): "measured" for what in ("train", "allreduce")},
        **{(what, 2, by): "refused" for what in ("train", "allreduce") for by in ("pvrdma", "roce", "gpudirect")},
    }
    assert {cell["code"] for cell in found.values() if cell["state"] == "refused"} == {"bench.no-rdma"}
    assert 0 < found["train", 2, "tcp"]["efficiency"]["value"] < 1.2
    assert [cell["launches"] for cell in found.values() if cell["state"] == "measured"] == [2, 2, 2]
    recorded = documents(folder)
    assert complete <= {each["run_id"] for each in recorded if each["outcome"] == "complete"}
    assert [each["diagnostics"][0]["code"] for each in recorded if each["outcome"] == "refused"] == [
        "bench.no-rdma"
    ] * 6
    before = sorted(each["run_id"] for each in recorded)
    assert cells(study(cluster, "pvrdma")) == found
    assert sorted(each["run_id"] for each in documents(folder)) == before


def test_two_real_tcp_stacks_stand_side_by_side_with_their_ratio(cluster: Cluster) -> None:
    ended = study(cluster, "tcp-stacks")
    found = cells(ended)
    assert ended.document["data"]["columns"] == ["horovodrun/gloo", "mpirun/mpi"]
    assert {cell["state"] for cell in found.values()} == {"measured"}
    ratio = found["allreduce", 2, "mpirun/mpi"]["ratio"]
    assert ratio["low"] < ratio["value"] < ratio["high"]
    assert ended.document["data"]["caveats"] == list(tcp_stacks.DESIGN.caveats)


def test_ats_is_measured_before_and_after_and_vsml_enables_it_only_when_asked(cluster: Cluster) -> None:
    wanted = ("--workload", "allreduce", "--nodes", "2", "--transport", "tcp", "--transport", "gpudirect")
    first = study(cluster, "ats", *wanted)
    before = over_tcp(first)
    assert first.document["data"]["next_steps"] == ["vsml enable-ats cluster.toml"]
    assert {column: cell["state"] for column, cell in before.items()} == {"off": "measured", "on": "pending"}
    enabled = cluster.shell.here("enable-ats", "--yes", "--allow-downtime", "--allow-foreign")
    assert enabled.status == 0, enabled.err
    after = over_tcp(study(cluster, "ats", *wanted))
    assert {column: cell["state"] for column, cell in after.items()} == {"off": "measured", "on": "measured"}
    assert after["off"]["figure"] == before["off"]["figure"]
    assert after["on"]["ratio"]["low"] < after["on"]["ratio"]["value"]
