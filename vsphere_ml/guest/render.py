"""Templates: Jinja2, given finished values, where an unknown name is an error and nothing is guessed."""

from __future__ import annotations

import json
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import jinja2
import jinja2.meta

from vsphere_ml import shipped
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.guest.fields import Template

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from vsphere_ml.core.guest import GuestFacts


def render(text: str, values: Mapping[str, object], name: str = "template") -> str:
    """Return the text with its values put in; ConfigError `guest.template` when one has no value."""
    try:
        return _compiled(str(text)).render(values)
    except jinja2.TemplateError as error:
        raise ConfigError(f"{name}: {error}", code="guest.template", target=name) from error


@cache
def shipped_template(name: str) -> Template:
    """Return one of the templates that ship with vsml."""
    return Template((shipped.templates() / name).read_text(encoding="utf-8"))


def find(name: str, beside: Path | None) -> Template | None:
    """Return a template that lies beside a playbook, or else a shipped one; None when there is none."""
    for folder in (beside, shipped.templates()):
        if folder is not None and (folder / name).is_file():
            return Template((folder / name).read_text(encoding="utf-8"))
    return None


def mistakes(text: str, known: frozenset[str]) -> tuple[str, ...]:
    """Return in words what is wrong with a template before it is ever rendered."""
    try:
        names = jinja2.meta.find_undeclared_variables(_environment().parse(text))
    except jinja2.TemplateSyntaxError as error:
        return (f"line {error.lineno} of the template: {error.message}",)
    return tuple(f"the template wants `{name}`, which nobody gives" for name in sorted(names - known))


def of(facts: GuestFacts) -> dict[str, object]:
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


@lru_cache(maxsize=256)  # every guest has the same few templates, and compiling one takes longer than asking a guest
def _compiled(text: str) -> jinja2.Template:
    return _environment().from_string(text)


@cache
def _environment() -> jinja2.Environment:
    # Nothing rendered here is HTML; each template quotes for its own language.
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701
    )
    environment.filters["quoted"] = _quoted
    return environment


def _quoted(value: object) -> str:
    """Return a value as a JSON string, which YAML reads as the same text whatever is in it."""
    return json.dumps(str(value))
