"""What is wrong with the fields of any kind of manifest, held against a table of the kind's own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.nearest import nearest_name
from vsphere_ml.kubernetes.lint_rule import LintRule, Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vsphere_ml.kubernetes.manifest import Manifest, Path
    from vsphere_ml.kubernetes.mpijob import MpiJob
    from vsphere_ml.kubernetes.trainjob import TrainJob

LONGEST_LABEL = 63
_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_COUNT = re.compile(r"\d+")


def is_label(name: str) -> bool:
    """Return whether it is a DNS-1035 label."""
    return _LABEL.fullmatch(name) is not None and len(name) <= LONGEST_LABEL


def find_other_version(manifest: Manifest, served: str, server: str) -> Iterator[Violation]:
    """Yield the version of the API when the server does not serve it."""
    found = manifest.get("apiVersion")
    if found != served:
        yield Violation(("apiVersion",), f"`{found}` is not served by {server}", f"apiVersion: {served}")


def _find_repeated_keys(job: MpiJob | TrainJob) -> Iterator[Violation]:
    """Yield the keys that stand twice in a mapping."""
    for path in job.manifest.repeated:
        yield Violation(path, f"`{path[-1]}` is there twice; the last one counts", "remove one of them")


def find_unknown_fields(manifest: Manifest, fields: Mapping[Path, frozenset[str]]) -> Iterator[Violation]:
    """Yield the fields that their mapping does not have."""
    for path, known in fields.items():
        for name in manifest.mapping(*path):
            if name not in known:
                near = nearest_name(name, known)
                hint = f"did you mean `{near}`?" if near else f"known are {', '.join(sorted(known))}"
                yield Violation((*path, name), f"there is no field `{name}`; the API server drops it", hint)


def find_refused_words(manifest: Manifest, words_of: Mapping[Path, Sequence[str]]) -> Iterator[Violation]:
    """Yield the values that are none of the words their field takes."""
    for path, words in words_of.items():
        found = manifest.get(*path)
        if found is not None and found not in words:
            yield Violation(path, f"`{found}` is refused", f"one of {', '.join(words)}")


def find_small_numbers(manifest: Manifest, paths: Sequence[Path], least: int, hint: str) -> Iterator[Violation]:
    """Yield the values that are no whole number of at least so much."""
    for path in paths:
        found = manifest.get(*path)
        if found is not None and (isinstance(found, bool) or not isinstance(found, int) or found < least):
            yield Violation(path, f"`{found}` is no whole number of {least} or more", hint)


def find_gpu_quantities(manifest: Manifest, resources: Path) -> Iterator[Violation]:
    """Yield the numbers of GPUs that are none."""
    for part in ("limits", "requests"):
        for name, value in manifest.mapping(*resources, part).items():
            if name.startswith("nvidia.com/") and not _COUNT.fullmatch(str(value)):
                yield Violation((*resources, part, name), f"`{value}` is no number of GPUs", f"{name}: 1")


REPEATED_KEY = LintRule(
    "yaml-repeated-key", Severity.ERROR, "YAML 1.2.2, 3.2.1.1: keys are unique", _find_repeated_keys
)
