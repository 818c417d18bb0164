"""A cluster file that was given is named in every command of vsml that a hint says to type, in text and JSON."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fakes import pictures
from tests.fakes.site import FakeVCenter
from tests.unit.cli.reference import names
from tests.unit.config.texts import ONE_NODE
from vsphere_ml.cli.given_file import given_file, name_file, name_file_in_data
from vsphere_ml.core.hints import CommandLine, Hint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.unit.cli.conftest import Ended

OTHER = Path("other.toml")
NAMED = {
    "provision": "provision other.toml",
    "provision --plan PLAN": "provision other.toml --plan PLAN",
    "plan --save FILE": "plan other.toml --save FILE",
    "verify -v": "verify other.toml -v",
    "enable-ats": "enable-ats other.toml",
    "topology --host esx-01": "topology other.toml --host esx-01",
    "run --sudo --only node-1 -- 'uptime; df'": "run -f other.toml --sudo --only node-1 -- 'uptime; df'",
    "ssh node-1 -- ip link": "ssh -f other.toml node-1 -- ip link",
    "job list": "job list other.toml",
    "job stop night --delete": "job stop -f other.toml night --delete",
    "bench": "bench other.toml",
    "bench --repeats 5": "bench other.toml --repeats 5",
    "bench run --nodes 2": "bench run other.toml --nodes 2",
    "runtime build --into DIR": "runtime build other.toml --into DIR",
    "export ansible": "export ansible other.toml",
}
AS_THEY_ARE = (
    "vsml check cluster.toml",
    "vsml run -f cluster.toml -- true",
    "vsml run cluster.toml -- true",
    "vsml plan --file=cluster.toml",
    "vsml rules why numa",
    "vsml bench explain",
    "vsml bench check SCRIPT",
    "vsml lab down",
    "vsml k8s lint job.yaml",
    "vsml nonsense",
    "vsml",
    "govc vm.power -s node-1",
    "echo 'vsml plan",
    "",
)


@pytest.fixture
def _file() -> Iterator[None]:
    with given_file(OTHER):
        yield


@pytest.mark.usefixtures("_file")
@pytest.mark.parametrize("command", NAMED)
def test_the_file_stands_where_the_command_takes_it(command: str) -> None:
    assert name_file(CommandLine(f"vsml {command}")) == f"vsml {NAMED[command]}"
    assert name_file(f"`vsml {command}` or not") == f"`vsml {NAMED[command]}` or not"


@pytest.mark.usefixtures("_file")
@pytest.mark.parametrize("command", AS_THEY_ARE)
def test_a_command_without_a_cluster_file_or_with_another_stays_as_it_is(command: str) -> None:
    assert name_file(CommandLine(command)) == command


@pytest.mark.usefixtures("_file")
def test_words_that_are_no_command_to_type_stay_as_they_are() -> None:
    words = "what vsml plan --save wrote"
    assert name_file(words) == words


@pytest.mark.parametrize("file", [None, Path("cluster.toml")])
def test_without_a_file_or_with_the_usual_one_nothing_is_named(file: Path | None) -> None:
    with given_file(file):
        assert name_file(CommandLine("vsml plan")) == "vsml plan"


def test_a_file_of_any_name_can_be_typed() -> None:
    with given_file(Path("my clusters/a.toml")):
        assert name_file(CommandLine("vsml plan -v")) == "vsml plan 'my clusters/a.toml' -v"


@pytest.mark.usefixtures("_file")
def test_in_data_the_hints_alone_name_it_wherever_they_are() -> None:
    def data(command: str) -> dict[str, object]:
        return {
            "hint": f"`{command}`",
            "message": "`vsml plan`",
            "details": ["`vsml plan`", Hint("hint: ", CommandLine(command))],
            "nodes": [{"problems": {"hint": CommandLine(command), "line": 3}}],
        }

    command = CommandLine("vsml plan")
    assert name_file_in_data(data(command)) == data(name_file(command))
    assert name_file(command) != command


@pytest.mark.usefixtures("_file")
def test_whatever_stands_after_a_command_its_hint_can_be_shown() -> None:
    for name in names():
        for rest in ("", " -x --nonsense", " --only", " a.toml b.toml -f c.toml", " -- -f x"):
            named = name_file(CommandLine(f"vsml {name}{rest}"))
            assert named.replace(" -f other.toml", "", 1).replace(" other.toml", "", 1) == f"vsml {name}{rest}"


@pytest.fixture
def ended(vsml: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """Return what runs a command line beside two equal cluster files, on a site without their VMs."""
    monkeypatch.chdir(tmp_path)
    for name in ("VSML_STATE_DIR", "VSML_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    text = ONE_NODE.replace(
        '"ubuntu"', '"ubuntu-22.04-gpu"\n[location]\ndatastore = "vsan"\n[guest]\nplaybooks = ["base"]'
    )
    for name in ("cluster.toml", "other.toml"):
        Path(name).write_text(text)
    monkeypatch.setattr("vsphere_ml.cli.wiring.site_wiring.vcenter", _site)
    return vsml


@contextmanager
def _site(*_: object, **__: object) -> Iterator[FakeVCenter]:
    yield FakeVCenter(pictures.quad_8u3(hosts=1))


# A command line, what it hints at where the file has the usual name, and what with another one.
COMMANDS = {
    "bench": ("vsml status", "vsml status other.toml"),
    "capacity": ("vsml inventory", "vsml inventory other.toml"),
    "configure": ("vsml provision", "vsml provision other.toml"),
    "job list": ("vsml status", "vsml status -f other.toml"),
    "job logs": ("vsml job list", "vsml job list -f other.toml"),
    "run": ("vsml run --", "vsml run -f other.toml --"),
    "verify": ("vsml status", "vsml status other.toml"),
}


@pytest.mark.parametrize("line", COMMANDS)
def test_a_run_with_another_file_hints_at_that_one(line: str, ended: Callable[..., Ended]) -> None:
    usual, other = COMMANDS[line]
    made = ended(*line.split())
    assert (usual in made.out + made.err, other in made.out + made.err) == (True, False)
    made = ended(*line.split(), "-f", "other.toml")
    assert other in made.out + made.err
    assert other in ended(*line.split(), "-f", "other.toml", "-o", "json").out
