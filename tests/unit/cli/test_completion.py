"""Completion as a shell does it: by the script that vsml gives bash, in a bash; and the values that are offered."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.test_start import HEAVY
from vsphere_ml.bench.model.engines import Engine
from vsphere_ml.bench.model.launcher_names import LauncherName
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.predict.data_paths import PATHS
from vsphere_ml.bench.predict.models import MODELS
from vsphere_ml.bench.predict.roofline import GPUS
from vsphere_ml.cli import app
from vsphere_ml.cli.wiring.known_jobs import GUESTS, PODS, KnownJobs, guests_folder
from vsphere_ml.core.catalog.boards import BOARDS
from vsphere_ml.core.rules.table import RULES
from vsphere_ml.lab.guests.fault_kinds import KINDS
from vsphere_ml.lab.server import topologies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

COMPLETE = """\
eval "$(_VSML_COMPLETE=source_bash vsml)"
complete_after() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _vsml_completion vsml
    printf '%s\\n' "${COMPREPLY[*]}"
}
"""
WORDS = {
    "a group with a default command": ("vsml bench ''", {"run", "gate", "selftest"}),
    "a begun command": ("vsml bench r", {"regimes", "report", "run"}),
    "an option of the command that was left out": ("vsml bench --work", {"--workload"}),
    "a value of such an option": ("vsml bench --workload t", {"train"}),
    "an option after a file": ("vsml bench cluster.toml --repeats-c", {"--repeats-ci-target"}),
    "a command of the other such group": ("vsml rules ''", {"list", "why"}),
    "a group in a group": ("vsml bench baseline ''", {"make"}),
}


@pytest.fixture(scope="module")
def completed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Return what bash offers after each of the words, asked in one shell."""
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    folder = tmp_path_factory.mktemp("completion")
    program = folder / "vsml"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m vsphere_ml "$@"\n')
    program.chmod(0o755)
    script = COMPLETE + "".join(f"complete_after {words}\n" for words, _ in WORDS.values())
    env = os.environ | {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).parents[3]),
    }
    process = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=True, cwd=folder)
    return dict(zip(WORDS, (set(line.split()) for line in process.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("case", WORDS)
def test_bash_completes(case: str, completed: dict[str, set[str]]) -> None:
    assert completed[case] >= WORDS[case][1]


def test_nothing_is_offered_that_does_not_begin_so(completed: dict[str, set[str]]) -> None:
    assert {"regimes", "report", "run"} == next(found for after, found in completed.items() if "begun" in after)


NODES = ["node-01", "node-02", "node-03", "head-1", "head-2"]
FILE = """\
[cluster]
name = "train"
[[nodes]]
name = "node-[01-03]"
[[nodes]]
name = "head-{n}"
count = 2
[guest]
playbooks = ["base", "mine.toml"]
"""
MINE = 'about = "x"\n[[step]]\nkind = "file"\n[[step]]\nkind = "packages"\n'
AT_NODES = [
    *("ssh ", "plan --only ", "provision --only=", "apply --only ", "status --only node-01 --only ", "destroy --only "),
    *("configure --only ", "verify --only ", "run --only ", "ssh-config --only ", "job run --only ", "bench --only "),
    *(
        "bench run --only ",
        "bench study pvrdma --only ",
        "bench regimes --only ",
        "topology --nccl ",
        "runtime build --node ",
    ),
]


@pytest.fixture
def offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., list[str]]:
    """Return what asks for the words at the end of a line, as bash asks, in a folder with a cluster file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["vsml"])
    monkeypatch.setenv("_VSML_COMPLETE", "complete_bash")
    monkeypatch.setenv("VSML_STATE_DIR", str(tmp_path / "state"))
    Path("cluster.toml").write_text(FILE)
    Path("mine.toml").write_text(MINE)

    def ask(line: str) -> list[str]:
        words = shlex.split(line)
        monkeypatch.setenv("COMP_WORDS", f"vsml {line}")
        monkeypatch.setenv("COMP_CWORD", str(len(words) + line.endswith(" ")))
        with pytest.raises(SystemExit) as ended:
            app.run([])
        result = capsys.readouterr()
        assert (ended.value.code, result.err) == (0, "")
        return result.out.split()

    return ask


@pytest.mark.parametrize("line", AT_NODES)
def test_nodes_are_those_of_the_cluster_file(line: str, offered: Callable[..., list[str]]) -> None:
    assert offered(line) == NODES


@pytest.mark.parametrize(
    "line",
    [
        *("ssh -f other.toml ", "plan other.toml --only ", "plan -f other.toml --only ", "run -f other.toml --only "),
        *("provision --only first other.toml --only ", "bench other.toml --only ", "bench run other.toml --only "),
        *("ssh other.toml ", "run other.toml --only ", "ssh none.toml -f other.toml "),
    ],
)
def test_nodes_are_those_of_the_file_that_is_named(line: str, offered: Callable[..., list[str]]) -> None:
    Path("other.toml").write_text('[[nodes]]\nname = ["first", "second"]\n')
    assert offered(line) == ["first", "second"]


@pytest.mark.parametrize("command", ["logs", "stop", "fetch"])
@pytest.mark.parametrize(("place", "names"), [("", ["train-2", "train-1"]), ("--run-in kubernetes ", ["train-pods"])])
def test_jobs_are_those_that_this_machine_knows(
    command: str, place: str, names: list[str], offered: Callable[..., list[str]]
) -> None:
    for kind, known in ((GUESTS, ["train-2", "train-1"]), (PODS, ["train-pods"])):
        KnownJobs(guests_folder("train", None) / kind).add(known)
        KnownJobs(guests_folder("other", None) / kind).add(["other-1"])
    assert offered(f"job {command} {place}") == names
    Path("cluster.toml").write_text("[cluster]\nname = 7\n")
    assert offered(f"job {command} {place}") == []


@pytest.mark.parametrize(("shell", "mark"), [("zsh", '"'), ("fish", "")])
def test_other_shells_are_offered_the_same(shell: str, mark: str, tmp_path: Path) -> None:
    (tmp_path / "cluster.toml").write_text(FILE)
    line = {"_TYPER_COMPLETE_ARGS": "vsml ssh node-", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    env = os.environ | line | {"_VSML_COMPLETE": f"complete_{shell}", "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-m", "vsphere_ml"]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [name for name in NODES if f"{mark}{name}{mark}" in done.stdout] == NODES[:3]


def test_a_begun_value_leaves_those_that_begin_so(offered: Callable[..., list[str]]) -> None:
    assert offered("ssh h") == ["head-1", "head-2"]
    assert offered("cp h") == ["head-1:", "head-2:"]
    assert offered("ssh x") == []


BROKEN = {
    "none": None,
    "empty": "",
    "no TOML": "[[nodes]\nname = ",
    "no UTF-8": b"\xff\xfe",
    "a folder": Path,
    "nodes of another kind": 'nodes = 7\nguest = "x"\n',
    "names of another kind": "[[nodes]]\nname = 7\n[[nodes]]\ncount = 2\n[guest]\nplaybooks = [7, []]\n",
    "ranges that are none": '[[nodes]]\nname = "node-[1-"\n[[nodes]]\nname = "a"\ncount = 3\n',
    "too many nodes": '[[nodes]]\nname = "node-[1-999999999]"\n',
    "a playbook that is not there": '[guest]\nplaybooks = ["./none.toml", "/dev/zero", "../x", ""]\n',
}


@pytest.mark.parametrize("line", ["ssh ", "plan --only ", "configure --step ", "configure --from-step "])
@pytest.mark.parametrize("case", BROKEN)
def test_a_file_that_cannot_be_read_offers_nothing(case: str, line: str, offered: Callable[..., list[str]]) -> None:
    file, content = Path("cluster.toml"), BROKEN[case]
    file.unlink()
    if content is Path:
        file.mkdir()
    elif content is not None:
        file.write_bytes(content if isinstance(content, bytes) else str(content).encode())
    assert offered(line) == []


def test_a_file_with_a_mistake_elsewhere_still_has_its_nodes(offered: Callable[..., list[str]]) -> None:
    Path("cluster.toml").write_text(FILE + 'no_such_key = "x"\n[[nodes]]\nname = "node-[9-1]"\n')
    assert offered("ssh ") == NODES


def test_steps_are_those_of_the_files_playbooks_each_once(offered: Callable[..., list[str]]) -> None:
    found = offered("configure --step ")
    assert {"packages", "hosts_file", "file"} <= set(found)
    assert len(set(found)) == len(found)
    assert offered("configure --from-step hosts") == ["hosts_file"]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("rules why ", [rule.id for rule in RULES]),
        ("profiles --board ", [board.code for board in BOARDS]),
        ("lab up ", sorted(topologies())),
        ("lab fault node-01 ", KINDS),
        ("bench predict --model ", MODELS),
        ("bench predict --path ", ["all", *PATHS]),
        ("bench predict --roofline ", GPUS),
        ("bench --workload ", ["link", "memcpy", "train", "allreduce", "nccl"]),
        ("bench run --engine ", Engine),
        ("bench run --launcher ", LauncherName),
        ("bench run --transport ", Transport),
        ("bench predict --vgpu A100-40", ["A100-40C"]),
        ("bench import --collective all_r", ["all_reduce"]),
        ("inventory -o ", ["table", "json"]),
        ("job logs ", []),
    ],
)
def test_values_of_tables_are_offered(line: str, wanted: Iterable[str], offered: Callable[..., list[str]]) -> None:
    assert offered(line) == [str(each) for each in wanted]


@pytest.mark.parametrize("line", ["inventory --lab ", "lab status --name "])
def test_labs_are_those_that_this_machine_has(line: str, offered: Callable[..., list[str]]) -> None:
    assert offered(line) == []
    for name in ("default", "night"):
        Path("state/lab", name).mkdir(parents=True)
        Path("state/lab", name, "server.json").touch()
    assert offered(line) == ["default", "night"]


@pytest.mark.parametrize(
    ("line", "wanted"), [("help pr", {"profiles", "provision"}), ("help bench re", {"regimes", "report"})]
)
def test_help_offers_commands_and_prints_nothing_else(
    line: str, wanted: set[str], offered: Callable[..., list[str]]
) -> None:
    assert {each for each in offered(line) if each.startswith(line.rpartition(" ")[2])} == wanted == set(offered(line))


PROBE = """
import sys
from vsphere_ml.cli import app
try:
    app.run([])
finally:
    print("modules", *sys.modules)
"""


@pytest.mark.parametrize(
    "line",
    [
        *("ssh ", "plan --only ", "configure --step ", "rules why ", "lab up ", "profiles --board "),
        *("bench run --transport ", "bench predict --vgpu A", "verify --only ", "job run --only ", "job stop "),
    ],
)
def test_a_tab_imports_nothing_heavy(line: str, tmp_path: Path) -> None:
    (tmp_path / "cluster.toml").write_text(FILE)
    KnownJobs(tmp_path / "state" / "guests" / "train" / GUESTS).add(["train-1"])
    words = len(line.split()) + line.endswith(" ")
    env = {"_VSML_COMPLETE": "complete_bash", "COMP_WORDS": f"vsml {line}", "COMP_CWORD": str(words)}
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        env=os.environ | env | {"PYTHONPATH": root, "VSML_STATE_DIR": str(tmp_path / "state")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    offered, _, modules = done.stdout.partition("modules ")
    assert offered.split()
    assert set(modules.split()) & {*HEAVY, "ssl", "asyncio", "http.client"} == set()
