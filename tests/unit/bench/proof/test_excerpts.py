"""What public logs show of NCCL's channels (tests/cases/nccl/excerpts.toml): no yes and no no that they do not show."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.proof import channels, paths

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = Path(__file__).parents[3] / "cases" / "nccl" / "excerpts.toml"
EXCERPTS = {each["id"]: each for each in tomllib.loads(FILE.read_text())["excerpt"]}


def lay_out(excerpt: dict[str, Any]) -> str:
    """Return the lines as NCCL prints them."""
    return (" " * 40 if excerpt.get("together") else "\n").join(lines_of(excerpt)) + "\n"


def lines_of(excerpt: dict[str, Any]) -> Iterator[str]:
    said = [line.split(" ", 1) for line in excerpt.get("lines", ())]
    ports = " ".join(f"[{at}]{port}" for at, port in enumerate(excerpt.get("using", ())))
    answers = [line.split() for line in excerpt.get("channels", ())]
    if ports:
        said += [
            [host, f"NET/IB : Using {ports} [RO]; OOB eth0:10.0.0.1<0>"] for host in {cells[0] for cells in answers}
        ]
    said += [[cells[0], channel_of(*cells[1:])] for cells in answers]
    for host, text in said:
        head = ":41:77" if excerpt.get("nameless") else f"{host if host.isdigit() else f'node-{host}'}:41:77"
        yield f"{excerpt.get('before', '')}{head} [0] NCCL INFO {text}"


def channel_of(channel: str, sender: str, receiver: str, side: str, via: str) -> str:
    text = "" if side == "-" else f" [{side}]"
    via = via if "IBext" in via else via.replace("_", " ")
    return f"{channel.replace('_', ' ')} : {sender} -> {receiver}{text} via {via}"


def verdict(excerpt: dict[str, Any], asked: Transport) -> str:
    log = lay_out(excerpt)
    nodes = paths.JobNodes(count=excerpt["nodes"])
    made = paths.of_import(asked, channels.of_nccl(log), nodes, log)
    return "none" if made is None else str(made.verdict)


def test_there_are_as_many_as_promised() -> None:
    assert len(EXCERPTS) >= 30
    assert len({each["nccl"] for each in EXCERPTS.values() if "nccl" in each}) >= 12
    assert all(each["source"].startswith("https://") for each in EXCERPTS.values())


@pytest.mark.parametrize("name", EXCERPTS)
def test_an_excerpt_proves_what_it_shows_and_no_more(name: str) -> None:
    excerpt = EXCERPTS[name]
    assert {asked: verdict(excerpt, Transport(asked)) for asked in ("roce", "gpudirect")} == {
        asked: excerpt[asked] for asked in ("roce", "gpudirect")
    }


@pytest.mark.parametrize("name", [name for name, each in EXCERPTS.items() if "channels" in each])
def test_every_channel_of_an_excerpt_is_read(name: str) -> None:
    excerpt = EXCERPTS[name]
    went = channels.of_nccl(lay_out(excerpt))
    assert [(each.sender, each.receiver) for each in went] == [
        tuple(cell.partition("[")[0] for cell in line.split()[2:4]) for line in excerpt["channels"]
    ]
    assert all(bool(each.host) is not bool(excerpt.get("nameless")) for each in went)
    if "nic" in excerpt:
        assert excerpt["nic"] in {each.nic for each in went}
