"""A ported script on two lab guests: the gradient that ranks average is that of the joint batch on one guest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e import launched, trained
from tests.integration.test_port_proof import COMPARED, SCRIPT, TOLERANCE, ran
from vsphere_ml.bench.porting.rewrite.port_script import port
from vsphere_ml.lab import runtime

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.trained import Cluster

pytestmark = [*trained.on_guests(), pytest.mark.long]
AVERAGES = "hvd.DistributedGradientTape(tape)"
COMMON = "--samples 64 --epochs 1"
# One step of descent at rate 1 is minus the gradient; the port multiplies its rate by the number of ranks.
JOINT = f"{COMMON} --batch 64 --rate 1.0 --out one.weights.h5"
DEALT_OUT = f"{COMMON} --batch 32 --rate 0.5 --out two.weights.h5"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with launched.cluster(tmp_path_factory.mktemp("port")) as made:
        folder = made.shell.folder / "mine"
        folder.mkdir()
        ported = port(SCRIPT.read_bytes(), SCRIPT.name).after.decode()
        assert AVERAGES in ported
        (folder / "script.py").write_bytes(SCRIPT.read_bytes())
        (folder / "ported.py").write_text(ported)
        (folder / "apart.py").write_text(ported.replace(AVERAGES, "tape"))
        yield made


def weights(cluster: Cluster, launcher: str, words: str) -> Path:
    """Return what the first node saved when this ran on both."""
    shell, into = cluster.shell, cluster.shell.folder / f"fetched-{words.split()[1]}"
    ended = shell.here("job", "run", "--launcher", launcher, "--folder", "mine", "-o", "json", "--", *words.split())
    assert ended.status == 0, ended.err
    fetched = shell.here("job", "fetch", ended.document["data"]["run_id"], "--into", str(into))
    assert fetched.status == 0, fetched.err
    (saved,) = (into / "node-1" / "work").glob("*.weights.h5")
    return saved


def test_the_average_over_two_guests_is_the_gradient_of_the_joint_batch(cluster: Cluster) -> None:
    python = runtime.python(runtime.make_runtime())
    one = weights(cluster, "none", f"python script.py {JOINT}")
    number, apart = ran(
        [python, "-c", COMPARED, one, weights(cluster, "horovodrun", f"python ported.py {DEALT_OUT}")],
        cluster.shell.folder,
    ).split()
    assert int(number) == 4
    assert float(apart) <= TOLERANCE
    # And the proof can fail: without the average the gradient is another.
    other = weights(cluster, "horovodrun", f"python apart.py {DEALT_OUT}")
    _, apart = ran([python, "-c", COMPARED, one, other], cluster.shell.folder).split()
    assert float(apart) > 100 * TOLERANCE
