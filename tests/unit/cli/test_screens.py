"""What commands that read files alone print on 60, 80 and 120 columns, and the help: no word is broken.

Of the other commands the views have the screens; together these are all commands.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fakes import pictures
from tests.fakes.requirements import cluster
from tests.unit.bench import synthetic
from tests.unit.bench.synthetic import Machine
from tests.unit.cli.reference import names
from tests.unit.cli.views.lab.screens import LAB
from tests.unit.cli.views.test_screens import INDENT, WIDE, words
from tests.unit.cli.views.test_screens import SCREENS as OF_VIEWS
from tests.unit.config.texts import ONE_NODE
from tests.unit.config.vhpc.test_vhpc import CONF
from tests.unit.core.sites import provisioned
from tests.unit.kubernetes.image.trees import lay_down
from vsphere_ml.cli import terminal
from vsphere_ml.kubernetes.image.variants import AS_USER
from vsphere_ml.ssh.keys.known_hosts import KnownHosts
from vsphere_ml.ssh.session.target import SshTarget

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.golden import Golden
    from tests.unit.cli.conftest import Ended

CASES = Path(__file__).parents[2] / "cases"
JOB = Path(__file__).parents[1] / "kubernetes" / "job.yaml"
WIDTHS = [60, 80, 120]
# A command line by what it shows; the files are those of `folder`.
SCREENS = {
    "bench baseline make": "bench baseline make a --results baselines/train",
    "bench check": "bench check plain.py",
    "bench compare": "bench compare a b",
    "bench explain": "bench explain a",
    "bench gate": "bench gate b --baseline a",
    "bench import": "bench import osu.txt iperf3.json --results old --nodes 2 --ranks 2 --link-gbit 10",
    "bench predict": "bench predict --model bert-large --nodes 2 --path all",
    "bench predict --vgpu": "bench predict --model bert-large --nodes 2 --vgpu A100-5C --optimizer adam",
    "bench published": "bench published",
    "bench report": "bench report a",
    "check, with mistakes": "check wrong.toml",
    "import vhpc": "import vhpc train.conf made.toml",
    "init --blank": "init --blank made.toml",
    "k8s image --check": "k8s image --check image",
    "k8s lint": "k8s lint job.yaml",
    "lab build --clean": "lab build --clean",
    "lab down": "lab down",
    "lab topologies": "lab topologies",
    "rules why": "rules why memory-reserved",
    "rules why, of none": "rules why",
    "a command that does not exist": "provisoin",
    "an option that does not exist": "provision --paralel 4",
    "help": "help",
    "help of a group": "bench --help",
    "help of a command": "provision --help",
    "help of the global options": "help options",
}
# What other programs read: the same whatever the terminal's width.
VERBATIM = {
    "export ansible": "export ansible cluster.toml --offline",
    "export kubernetes": "export kubernetes cluster.toml --only namespaces --vsphere-namespace ml --offline",
    "export prometheus": "export prometheus cluster.toml --offline --job node",
    "export terraform": "export terraform cluster.toml",
    "k8s image": "k8s image --base nvcr.io/nvidia/tensorflow:23.03-tf2-py3",
    "lab env": "lab env",
    "port": "port plain.py",
    "ssh-config": "ssh-config --file cluster.toml",
}
# What print nothing of their own, or a line for each guest that has no place to break.
WITHOUT_SCREEN = {"cp", "lab fault", "lab shape", "ssh"}
WRONG = """\
[cluster]
name = "train"
[source]
templat = "ubuntu-22.04-gpu"
[[nodes]]
name = "node-[01-04]"
memory = "64"
gpu = { profile = "A100-40X" }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, with records, a script, logs, a job, an image and cluster files."""
    monkeypatch.chdir(tmp_path)
    for name in ("VSML_STATE_DIR", "VSML_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    synthetic.write(synthetic.record(nodes=2, launches=3), tmp_path / "a")
    machine = Machine(usable_bytes_per_s=0.85 * 10e9 / 8)
    synthetic.write(synthetic.record(machine=machine, nodes=2, launches=3, seed=2), tmp_path / "b")
    shutil.copy(CASES / "port" / "plain.txt", tmp_path / "plain.py")
    for name in ("osu.txt", "iperf3.json"):
        shutil.copy(CASES / "imports" / name, tmp_path)
    lay_down(tmp_path / "image", AS_USER)
    (tmp_path / "job.yaml").write_text(JOB.read_text().replace("slotsPerWorker", "slotPerWorker"))
    (tmp_path / "wrong.toml").write_text(WRONG)
    (tmp_path / "train.conf").write_text(CONF)
    template = '"ubuntu-22.04-gpu"\n[location]\ndatastore = "vsan"'
    (tmp_path / "cluster.toml").write_text(ONE_NODE.replace('"ubuntu"', template))
    return tmp_path


@pytest.fixture
def ended(folder: Path, vsml: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], Ended]:
    """Return what runs a command line on so many columns; what it wrote is gone after it."""
    before = set(folder.iterdir())

    def run(line: str, width: int) -> Ended:
        monkeypatch.setattr(terminal, "PIPE_WIDTH", width)
        monkeypatch.setenv("COLUMNS", str(width))
        ended = vsml(*line.split())
        for made in set(folder.iterdir()) - before:
            shutil.rmtree(made) if made.is_dir() else made.unlink()
        return ended

    return run


@pytest.fixture
def drawn(ended: Callable[[str, int], Ended]) -> Callable[[str, int], str]:
    """Return what draws all that a command line prints."""

    def draw(line: str, width: int) -> str:
        made = ended(line, width)
        return made.out + made.err

    return draw


@pytest.fixture
def _site(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the commands a vCenter, a lab that runs, and guests that were entered before."""
    site = provisioned(cluster(2), pictures.quad_8u3(taken=False))
    monkeypatch.setattr("vsphere_ml.cli.cluster.export.read_site", lambda *_: site)
    monkeypatch.setattr("vsphere_ml.lab.state.running_lab", lambda _name: LAB)
    target = SshTarget(
        name="node-1", host="10.0.0.11", known_hosts=KnownHosts(folder / "known_hosts"), key_file=folder / "key"
    )
    monkeypatch.setattr("vsphere_ml.cli.guests.ssh.find_targets", lambda *_, **__: {"node-1": target})


def broken_words(text: str, whole: str, width: int) -> list[str]:
    longer = " ".join(each for each in whole.casefold().split() if len(each) > width - INDENT)
    return [each for each in words(text) - words(whole) if each not in longer]


# The help is made for 80 columns: typer breaks the names of options on fewer.
@pytest.mark.parametrize(("name", "width"), [(n, w) for n in SCREENS for w in WIDTHS if w >= 80 or "help" not in n])
def test_what_a_command_prints_fits_and_breaks_no_word(
    name: str, width: int, drawn: Callable[[str, int], str], golden: Golden
) -> None:
    text = drawn(SCREENS[name], width)
    assert broken_words(text, drawn(SCREENS[name], WIDE), width) == []
    assert max(map(len, text.splitlines())) <= width
    golden(text)


@pytest.mark.usefixtures("_site")
@pytest.mark.parametrize("name", VERBATIM)
def test_what_other_programs_read_is_not_folded(name: str, ended: Callable[[str, int], Ended], golden: Golden) -> None:
    made = ended(VERBATIM[name], 30)
    assert (made.status, made.out) == (0, ended(VERBATIM[name], WIDE).out)
    golden(made.out)


def test_every_command_has_a_screen() -> None:
    shown = {re.sub(r",.*| -.*", "", name) for name in (*SCREENS, *VERBATIM, *OF_VIEWS)}
    assert {*names()} - shown == WITHOUT_SCREEN
