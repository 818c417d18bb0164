"""Templates: Jinja2 in a sandbox, given finished values, where an unknown name is an error and nothing is guessed."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from vsphere_ml import shipped
from vsphere_ml.core.bounded_file import read_bytes
from vsphere_ml.core.diagnostics import Diagnostic, mistake
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.plan.describe import clip
from vsphere_ml.guest.playbooks.fields import Template
from vsphere_ml.guest.templates import sandbox

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from vsphere_ml.core.model.guest import GuestFacts

LARGEST = 256 << 10  # bytes of a template


def render(text: str, values: Mapping[str, object], name: str = "template") -> str:
    """Return the text with its values put in; ConfigError `guest.template` with its line when that cannot be done."""
    try:
        return sandbox.render_template(str(text), values)
    except sandbox.UnsuitableTemplate as error:
        problem = _problem(text, error, name)
        raise ConfigError(
            f"{name} cannot be made of its template", problems=(problem,), code="guest.template", target=name
        ) from error


def _problem(text: str, error: sandbox.UnsuitableTemplate, name: str) -> Diagnostic:
    file = text.file if isinstance(text, Template) and text.file else name
    return mistake(file, error.line, clip(error.why, 300))


@cache
def shipped_template(name: str) -> Template:
    """Return one of the templates that ship with vsml."""
    file = shipped.templates() / name
    return Template(file.read_text(encoding="utf-8"), str(file))


def find(name: str, path: Path | None) -> Template | None:
    """Return a template that lies beside a playbook, or else a shipped one; None when there is none.

    Raises OSError for one that cannot be read or is no file, UnicodeDecodeError for one that is not UTF-8 text.
    """
    for folder in (path, shipped.templates()):
        if folder is not None and (folder / name).exists():
            file = folder / name
            return Template(read_bytes(file, LARGEST).decode("utf-8-sig"), str(file))
    return None


def mistakes(template: Template, known: frozenset[str]) -> tuple[Diagnostic, ...]:
    """Return what is wrong with a template before it is ever rendered, each with its line."""
    try:
        tree = sandbox.parse_template(template)
        unknown = sandbox.names_wanted(tree) - known
    except sandbox.UnsuitableTemplate as error:
        return (_problem(template, error, "template"),)
    lines = sandbox.lines_of(tree, unknown)
    return tuple(
        mistake(template.file or "template", lines.get(name), f"wants `{name}`, which nobody gives")
        for name in sorted(unknown, key=lambda name: (lines.get(name, 0), name))
    )


def guest_values(facts: GuestFacts) -> dict[str, object]:
    """Return what a template may name of a guest. Secrets are not among it."""
    return {
        "name": facts.name,
        "cluster": facts.cluster,
        "peers": facts.peers,
        "gpus": facts.gpus,
        "profile": facts.profile,
        "values": facts.values,
    }


KNOWN = frozenset({"name", "cluster", "peers", "gpus", "profile", "values"})
