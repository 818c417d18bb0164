"""Whatever is in a cluster file: it is a cluster, or it is refused with every mistake in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.fuzz.answers import check_refusal
from tests.fuzz.mutation import inputs
from vsphere_ml.cli.views.cluster import nodes
from vsphere_ml.cli.views.site import rules
from vsphere_ml.config import document
from vsphere_ml.config.load import load_text
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.rules import check

if TYPE_CHECKING:
    from vsphere_ml.core.model.spec import ClusterSpec

ROOT = Path(__file__).parents[2]
SAMPLES = tuple(
    file.read_bytes()
    for folder in ("examples", "templates", "tests/cases/config", "benchmarks")
    for file in sorted((ROOT / folder).rglob("*.toml"))
)


def run(seconds: float, seed: int, most: int | None = None) -> int:
    """Try inputs for so many seconds, or so many of them; return how many."""
    count = 0
    for content in inputs(SAMPLES, seconds, seed, most):
        try:
            checked(load_text(document.decode_text(content, Path("cluster.toml")), "cluster.toml"))
        except ConfigError as error:
            check_refusal(error, content, unreadable="config.unreadable")
        count += 1
    return count


def checked(spec: ClusterSpec) -> None:
    """Do with a cluster what `vsml check` does."""
    nodes.text(spec, rules.diagnostic_lines(check.of_file(spec)))
