"""What commands that read files alone print on 60, 80 and 120 columns, and the help: no word is broken."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.bench import synthetic
from tests.unit.bench.synthetic import Machine
from tests.unit.cli.views.test_screens import INDENT, WIDE, words
from vsphere_ml.cli import terminal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.golden import Golden
    from tests.unit.cli.conftest import Ended

CASES = Path(__file__).parents[2] / "cases"
JOB = Path(__file__).parents[1] / "kubernetes" / "job.yaml"
WIDTHS = [60, 80, 120]
# A command line by what it shows; the files are those of `folder`.
SCREENS = {
    "bench check": "bench check plain.py",
    "bench compare": "bench compare a b",
    "bench explain": "bench explain a",
    "bench gate": "bench gate b --baseline a",
    "bench predict": "bench predict --model bert-large --nodes 2 --path all",
    "bench predict --vgpu": "bench predict --model bert-large --nodes 2 --vgpu A100-5C --optimizer adam",
    "bench published": "bench published",
    "bench report": "bench report a",
    "check, with mistakes": "check wrong.toml",
    "k8s lint": "k8s lint job.yaml",
    "lab topologies": "lab topologies",
    "rules why": "rules why",
    "a command that does not exist": "provisoin",
    "an option that does not exist": "provision --paralel 4",
    "help": "help",
    "help of a group": "bench --help",
    "help of a command": "provision --help",
    "help of the global options": "help options",
}
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
    """Return the working directory, with two records, a script, a job and a cluster file."""
    monkeypatch.chdir(tmp_path)
    synthetic.write(synthetic.record(nodes=2, launches=3), tmp_path / "a")
    machine = Machine(usable_bytes_per_s=0.85 * 10e9 / 8)
    synthetic.write(synthetic.record(machine=machine, nodes=2, launches=3, seed=2), tmp_path / "b")
    shutil.copy(CASES / "port" / "plain.txt", tmp_path / "plain.py")
    (tmp_path / "job.yaml").write_text(JOB.read_text().replace("slotsPerWorker", "slotPerWorker"))
    (tmp_path / "wrong.toml").write_text(WRONG)
    return tmp_path


@pytest.fixture
def drawn(folder: Path, vsml: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], str]:
    """Return what draws what a command line prints, on so many columns."""

    def draw(line: str, width: int) -> str:
        monkeypatch.setattr(terminal, "PIPE_WIDTH", width)
        monkeypatch.setenv("COLUMNS", str(width))
        ended = vsml(*line.split())
        return ended.out + ended.err

    return draw


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
