"""A playbook is valid as a whole, or every mistake in it is told at once with its line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.counted import checked, counted
from vsphere_ml.config.positions import positions
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.guest.playbooks import playbook
from vsphere_ml.guest.playbooks.fields import FileSource
from vsphere_ml.guest.playbooks.registry import KINDS
from vsphere_ml.guest.steps.system.files import File
from vsphere_ml.guest.steps.system.packages import Packages

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.core.model.guest import Playbook

CASES = sorted((Path(__file__).parents[3] / "cases" / "playbooks").glob("*.toml"))
WANTED = "#=> "
SETTINGS = {
    "doca_url": "https://mirror.example.com/doca",
    "doca_key": "https://mirror.example.com/key.pub",
    "cuda_url": "https://mirror.example.com/cuda",
    "cuda_key": "https://mirror.example.com/3bf863cc.pub",
    "driver_file": "/srv/NVIDIA-Linux-x86_64-525.105.17-grid.run",
    "ofed_file": "https://mirror.example.com/MLNX_OFED_LINUX-24.10.tgz",
    "data_path": "/srv/products",
    "data_nfs": "nas.example.com:/datasets/products",
    "image": "nvcr.io/nvidia/tensorflow:23.03-tf2-py3",
}


def told(error: ConfigError) -> list[str]:
    return [
        f"{each.line or '-'}: {each.target}: {each.message}" + (f" ({each.hint})" if each.hint else "")
        for each in error.problems
    ]


def test_there_are_cases() -> None:
    assert len(CASES) >= 5


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_every_mistake_is_told_at_once_and_in_these_words(case: Path) -> None:
    lines = case.read_text().splitlines(keepends=True)
    wanted = [line.removeprefix(WANTED).rstrip("\n") for line in lines if line.startswith(WANTED)]
    text = "".join(line for line in lines if not line.startswith(WANTED))
    with pytest.raises(ConfigError) as raised:
        playbook.load_text(text, case, values={"pages": "many", "file": "x.run"}, positions=positions)
    assert told(raised.value) == wanted
    assert raised.value.code == "playbook.invalid"


def test_a_playbook_keeps_its_order_and_names_itself_by_its_file() -> None:
    text = 'about = "Two."\n[[step]]\nkind = "packages"\nnames = ["b"]\n[[step]]\nkind = "packages"\nnames = ["a1"]\n'
    with pytest.raises(ConfigError):
        playbook.load_text(text, "own/my.toml")  # a package's name has two letters
    book = playbook.load_text(text.replace('"b"', '"b1"'), "own/my.toml")
    assert book.name == "my"
    assert [step.title for step in book.steps] == ["package b1", "package a1"]


def test_the_digest_is_of_everything_that_was_read(tmp_path: Path) -> None:
    text = 'about = "One."\n[[step]]\nkind = "file"\npath = "/etc/x"\ntemplate = "x"\n'
    digests = set()
    for content in ("1", "2", "2"):
        (tmp_path / "x").write_text(content)
        digests.add(playbook.load_text(text, tmp_path / "p.toml").digest)
    digests.add(playbook.load_text(text + "# a comment\n", tmp_path / "p.toml").digest)
    assert len(digests) == 3


def test_a_field_takes_a_value_of_the_cluster_file_as_its_own_type() -> None:
    text = """
about = "Values."
[[step]]
kind = "packages"
names = { value = "packages" }
[[step]]
kind = "limits"
hugepages = { value = "pages" }
memlock = { value = "memlock", default = "65536" }
"""
    packages, limits = playbook.load_text(text, values={"packages": "curl, jq", "pages": "512"}).steps
    assert isinstance(packages, Packages)
    assert packages.names == ("curl", "jq")
    assert (getattr(limits, "hugepages", 0), getattr(limits, "memlock", "")) == (512, "65536")


def test_a_template_beside_the_playbook_comes_before_a_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "hostfile").write_text("mine {{ cluster }}\n")
    text = 'about = "One."\n[[step]]\nkind = "file"\npath = "/etc/x"\ntemplate = "hostfile"\n'
    (step,) = playbook.load_text(text, tmp_path / "p.toml").steps
    assert isinstance(step, File)
    assert step.template == "mine {{ cluster }}\n"


@pytest.mark.parametrize("name", playbook.names())
def test_shipped_playbooks_are_valid(name: str) -> None:
    book = playbook.load(playbook.find(name, Path()), values=SETTINGS, positions=positions)
    assert book.name == name
    assert len({step.title for step in book.steps}) == len(book.steps)


def test_the_shipped_ones_are_those_of_the_issue() -> None:
    assert playbook.names() == (
        "base",
        "container",
        "data",
        "driver",
        "monitoring",
        "mpi",
        "nccl",
        "roce",
        "roce-inbox",
        "roce-mlnx-ofed",
        "runtime",
    )


def test_a_driver_has_no_default_since_it_is_not_public(golden: Golden) -> None:
    with pytest.raises(ConfigError) as raised:
        playbook.load(playbook.find("driver", Path()), positions=positions)
    assert [problem.target for problem in raised.value.problems] == ["step[0].source"]
    golden(raised.value.problems[0].message)


def test_files_to_bring_are_known_before_any_guest_is_touched(tmp_path: Path) -> None:
    text = """
about = "Files."
[[step]]
kind = "nvidia_driver"
source = "drivers/NVIDIA-Linux-x86_64-525.105.17-grid.run"
[[step]]
kind = "ofed"
source = "[nas] ofed/MLNX_OFED_LINUX-23.10.tgz"
[[step]]
kind = "docker"
"""
    assert playbook.sources(playbook.load_text(text, tmp_path / "p.toml")) == (
        FileSource(tmp_path / "drivers/NVIDIA-Linux-x86_64-525.105.17-grid.run"),
        FileSource("[nas] ofed/MLNX_OFED_LINUX-23.10.tgz"),
    )


def test_a_path_among_the_values_starts_where_they_were_written(tmp_path: Path) -> None:
    settings = {"driver_file": "drivers/d-525.105.17.run"}
    book = playbook.load(playbook.find("driver", Path()), values=settings, values_from=tmp_path)
    assert playbook.sources(book) == (FileSource(tmp_path / "drivers/d-525.105.17.run"),)
    text = 'about = "x"\n[[step]]\nkind = "ofed"\nsource = { value = "x", default = "o.tgz" }\n'
    book = playbook.load_text(text, tmp_path / "own" / "p.toml", values=settings, values_from=tmp_path)
    assert playbook.sources(book) == (FileSource(tmp_path / "own" / "o.tgz"),)


def test_names_mean_shipped_playbooks_and_paths_mean_files(tmp_path: Path) -> None:
    assert playbook.find("base", tmp_path).name == "base.toml"
    assert playbook.find("./base.toml", tmp_path) == tmp_path / "base.toml"
    with pytest.raises(ConfigError) as raised:
        playbook.find("bass", tmp_path)
    assert raised.value.code == "playbook.unknown"


@pytest.mark.parametrize("content", [None, b"\xff", b"#" * (playbook.LARGEST + 1)], ids=["absent", "binary", "huge"])
def test_what_cannot_be_read_is_said_so(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "p.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as raised:
        playbook.load(path)
    assert raised.value.code == "playbook.unreadable"


WORDS = st.sampled_from(["value", "default", "name", "kind", "x"])


def as_toml(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return '"' + "".join(f"\\U{ord(each):08X}" for each in value) + '"'
        case list():
            return "[" + ", ".join(as_toml(each) for each in value) + "]"
        case dict():
            return "{ " + ", ".join(f"{key} = {as_toml(each)}" for key, each in value.items()) + " }"
        case None:
            return "1979-05-27"
    return str(value) if "e" not in str(value) and "inf" not in str(value) else "0.5"


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | TEXTS | st.just(0.5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=4,
)


@counted
@given(kind=st.sampled_from(sorted(KINDS)), data=st.data())
def test_any_value_in_any_field_is_a_step_or_a_refusal_with_words(kind: str, data: st.DataObject) -> None:
    names = [name for name in KINDS[kind].__dataclass_fields__ if name != "KIND"]
    given_fields = data.draw(st.dictionaries(st.sampled_from(names or ["x"]), ANYTHING, max_size=4))
    lines = "".join(f"{name} = {as_toml(value)}\n" for name, value in given_fields.items())
    text = f'about = "Any."\n[[step]]\nkind = "{kind}"\n{lines}'
    answer = loaded_or_refused(text)
    if isinstance(answer, ConfigError):
        assert answer.problems
        assert all(problem.line and problem.message for problem in answer.problems)
    else:
        checked()
        assert answer.steps[0].title


def loaded_or_refused(text: str) -> Playbook | ConfigError:
    try:
        return playbook.load_text(text, positions=positions)
    except ConfigError as error:
        return error


def test_a_link_to_a_device_is_no_playbook(tmp_path: Path) -> None:
    (tmp_path / "playbook.toml").symlink_to("/dev/zero")
    with pytest.raises(ConfigError) as raised:
        playbook.load(tmp_path / "playbook.toml")
    assert raised.value.code == "playbook.unreadable"
