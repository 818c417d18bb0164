"""Where the time of steps goes on lab guests, by the hundred: who is slow, and what waits for its input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import skips
from tests.e2e import cpu_quota, launched, measured, trained
from tests.e2e.launched import bench
from vsphere_ml.bench.analysis.step_parts import ADDS_UP, time_differences
from vsphere_ml.bench.analysis.training import training
from vsphere_ml.bench.launch import remote_job
from vsphere_ml.bench.records import store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.trained import Cluster

pytestmark = [*trained.on_guests(), pytest.mark.long]
LAUNCHES = 100  # fixed before the first one
NAMED, OTHERS = 95, 1


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with launched.cluster(tmp_path_factory.mktemp("time")) as made:
        yield made


@pytest.mark.skipif(not cpu_quota.usable(), reason=skips.CPU_QUOTA)
@pytest.mark.timeout(4 * 3600)
def test_a_guest_held_to_four_fifths_of_a_cpu_is_the_straggler_and_nobody_else(cluster: Cluster) -> None:
    # A local step computes for many of the quota's periods: of 13 ms, as with 32 images, twelve differ by half.
    more = ("--steps", "60", "--batch", "512", "--ci-target", "0", "--repeats", str(LAUNCHES), "--results", "held")
    with cpu_quota.held(cluster, "node-2", 0.8):
        trained.runs(bench(cluster, *more, "-o", "json"))
    named = [
        {each.rank for each in measured_launch.stragglers}
        for run in store.read(cluster.shell.folder / "held")
        if (measured_launch := training(run)) is not None
    ]
    assert len(named) == LAUNCHES
    assert sum(1 in ranks for ranks in named) >= NAMED
    assert sum(0 in ranks for ranks in named) <= OTHERS


def test_a_throttled_input_pipeline_is_named_and_all_of_the_time_is_counted(cluster: Cluster) -> None:
    text = (remote_job.WORKLOADS / "train.py").read_text()
    fast = "        self.batch = next(self.training.images)\n"
    assert fast in text
    text = text.replace(fast, f"        time.sleep(0.2)\n{fast}")
    # A script lies in a folder of its own below the engines'.
    text = text.replace("\nENGINES", "\nsys.path.append(os.path.dirname(sys.path[0]))\nENGINES", 1)
    cluster.shell.write("throttled.py", text)
    wanted = ("--script", "throttled.py", "--script-args", "--steps 40", "--results", "throttled", "-o", "json")
    (run,) = trained.runs(bench(cluster, *wanted))
    assert run["outcome"] == "complete"
    assert measured.causes(cluster, "throttled", "bench.input-bound") == ["node-1", "node-2"]
    (kept,) = store.read(cluster.shell.folder / "throttled")
    assert kept.steps is not None
    assert max(time_differences(kept.steps)) < ADDS_UP
