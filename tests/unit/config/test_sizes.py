"""A few lines can stand for millions of names: what a file stands for is bounded, and so are its mistakes."""

from __future__ import annotations

import pytest

from tests.unit.config.texts import CLUSTER, DEFAULTS, ONE_NODE
from vsphere_ml.config import mistakes, sizes
from vsphere_ml.config.load import load_text
from vsphere_ml.core.errors import ConfigError

PREFIX = CLUSTER + DEFAULTS


def listed(text: str, times: int) -> str:
    return "[" + ", ".join([f'"{text}"'] * times) + "]"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (f"{ONE_NODE}[location]\nhosts = {listed('h[0-9999]', 2)}\n", "location.hosts"),
        (f"{ONE_NODE}hosts = {listed('h[0-9999]', 2)}\n", "nodes[0].hosts"),
        (f"{ONE_NODE}network = {{ address = {listed('10.[0-99].[0-99].1/8', 10)} }}\n", "nodes[0].network.address"),
        (f"{ONE_NODE}nic = {{ address = {listed('10.[0-99].[0-99].1/8', 10)} }}\n", "nodes[0].nic.address"),
        (PREFIX + "".join(f'[[nodes]]\nname = "n{at}-[1-999]"\n' for at in range(20)), "nodes[10].name"),
        (PREFIX + "".join(f'[[nodes]]\nname = "n{at}-{{n}}"\ncount = 999\n' for at in range(20)), "nodes[10].name"),
        (f'{PREFIX}[[nodes]]\nname = "{"[1-9999]" * 1000}"\n', "nodes[0].name"),
        (f'{PREFIX}[[nodes]]\nname = "[{"1-9999," * 1000}1]"\n', "nodes[0].name"),
    ],
)
def test_names_addresses_and_hosts_are_bounded_together_before_any_is_made(text: str, key: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load_text(text)
    assert [problem.target for problem in raised.value.problems] == [key]
    assert all(problem.line for problem in raised.value.problems)


def test_as_many_nodes_as_are_possible_are_possible() -> None:
    spec = load_text(f'{PREFIX}[[nodes]]\nname = ["a-[1-5000]", "b-[1-5000]"]\n')
    assert len(spec.nodes) == sizes.MOST["name"]


@pytest.mark.parametrize(
    "text",
    [
        ONE_NODE + "".join(f"unknown{at} = 1\n" for at in range(40_000)),
        "".join(f"[unknown{at}]\n" for at in range(40_000)),
        "".join(f'[[nodes]]\nname = "a{at}"\n' for at in range(5_000)),
        f'{PREFIX}[[nodes]]\nname = "n_[1-9999]"\n',
        f"{ONE_NODE}use = [" + ", ".join(f'"x{at}"' for at in range(20_000)) + "]\n",
        f"{ONE_NODE}hosts = {{" + ", ".join(f'x{at} = "h"' for at in range(9_000)) + "}\n",
    ],
)
def test_of_very_many_mistakes_the_first_are_told(text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load_text(text)
    assert len(raised.value.problems) == mistakes.MOST


@pytest.mark.parametrize(
    "text",
    [
        f"{ONE_NODE}[nodes.extra_config]\n" + "".join(f'x{at} = "1"\n' for at in range(257)),
        f"{ONE_NODE}[guest]\nplaybooks = {listed('base', 65)}\n",
    ],
)
def test_lists_that_each_node_or_guest_pays_for_are_short(text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load_text(text)
    assert len(raised.value.problems) == 1


def test_the_nodes_of_a_block_share_what_they_have_in_common() -> None:
    spec = load_text(f'{PREFIX}[[nodes]]\nname = "n[1-2]"\nextra_config = {{ "a.b" = "1" }}\n')
    first, second = spec.nodes
    assert first.extra_config is second.extra_config
