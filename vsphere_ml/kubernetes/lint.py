"""Holds manifests against the rules of their kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.kubernetes import operator_rules, trainjob_rules, trap_rules
from vsphere_ml.kubernetes.manifest import read_manifests
from vsphere_ml.kubernetes.mpijob import MpiJob
from vsphere_ml.kubernetes.trainjob import TrainJob
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vsphere_ml.kubernetes.lint_rule import LintRule
    from vsphere_ml.kubernetes.manifest import Manifest, Path


@dataclass(frozen=True, slots=True)
class _CheckedKind:
    """A kind of manifest: what its rules ask about, and the rules."""

    read: Callable[[Manifest], object]
    rules: tuple[LintRule, ...]


KINDS = {
    "MPIJob": _CheckedKind(MpiJob, (*operator_rules.RULES, *trap_rules.RULES)),
    "TrainJob": _CheckedKind(TrainJob, trainjob_rules.RULES),
}


@dataclass(frozen=True, slots=True)
class LintedFile:
    """What was found in a file: how many documents of a known kind it has, and which kinds were passed over."""

    file: str
    jobs: int
    skipped: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]


def lint_file(text: str, file: str) -> LintedFile:
    """Return what breaks rules in a file's manifests, in the order of its lines; ConfigError when it is no YAML."""
    manifests = read_manifests(text, file)
    known = [each for each in manifests if _kind(each) in KINDS]
    found = [each for manifest in known for each in _diagnostics(manifest, file)]
    return LintedFile(
        file=file,
        jobs=len(known),
        skipped=tuple(_kind(each) or "no kind" for each in manifests if _kind(each) not in KINDS),
        diagnostics=tuple(sorted(found, key=lambda each: each.line or 0)),
    )


def lint_error(files: tuple[LintedFile, ...]) -> ConfigError | None:
    """Return the error of files in which something would be refused or would run as something else; None without."""
    errors = [each for file in files for each in file.diagnostics if each.severity is Severity.ERROR]
    if errors:
        places = ", ".join(dict.fromkeys(f"{each.file}:{each.line}" for each in errors[:5]))
        return ConfigError(
            f"{len(errors)} of the manifests' mistakes keep a job from running as written: {places}",
            code="kubernetes.job-invalid",
            target=errors[0].file,
            hint="correct them before `kubectl apply`: the API server would take most of them",
        )
    if not any(file.jobs for file in files):
        return ConfigError(
            f"there is no {' and no '.join(KINDS)} in it",
            code="kubernetes.no-job",
            target=files[0].file if files else "",
            hint="MPIJob of kubeflow.org/v2beta1 and TrainJob of trainer.kubeflow.org/v1alpha1 are checked",
        )
    return None


def _kind(manifest: Manifest) -> str:
    return str(manifest.get("kind") or "")


def _diagnostics(manifest: Manifest, file: str) -> Iterator[Diagnostic]:
    kind = KINDS[_kind(manifest)]
    job = kind.read(manifest)
    for rule in kind.rules:
        for each in rule.find(job):
            yield Diagnostic(
                severity=rule.severity,
                code=rule.id,
                file=file,
                line=manifest.line(each.path),
                target=_format_path(each.path),
                message=each.message,
                details=(rule.source,),
                hint=each.hint,
            )


def _format_path(path: Path) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
