"""A site record as values, and as the files of a folder: a manifest, and one file an exchange."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

from vsphere_ml.core.bounded_file import read_bytes
from vsphere_ml.core.diagnostics import Diagnostic, mistake
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.site_record.redact_soap import name_method
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SCHEMA = "vsml.site-record/1"
MANIFEST = "manifest.json"
LARGEST_FILE = 64 << 20  # bytes
_KEYS = frozenset({"schema", "vsml", "api_version", "recorded", "exchanges"})
_FILE = re.compile(r"(?:soap|hosts|guests)/[\w.-]+\.(?:xml|json)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SoapExchange:
    """A request to vCenter and its answer, both redacted. The list of API versions has no request."""

    request: str
    response: str

    @property
    def method(self) -> str:
        return name_method(self.request) if self.request else "vimServiceVersions"

    def text(self) -> str:
        """Return the exchange as a file of XML."""
        request, response = (_without_declaration(each) for each in (self.request, self.response))
        return (
            f'<?xml version="1.0" encoding="UTF-8"?>\n<exchange method={quoteattr(self.method)}>\n'
            f"<request>{request}\n</request>\n<response>{response}\n</response>\n</exchange>\n"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandExchange:
    """A command of a host or a guest, by the name of its row, and what it printed, redacted."""

    where: str  # hosts or guests
    machine: str  # a pseudonym
    name: str
    command: str
    status: int
    out: str
    err: str

    def text(self) -> str:
        """Return the exchange as a file of JSON."""
        shown = asdict(self) | {"out": self.out.splitlines(), "err": self.err.splitlines()}
        return json.dumps(shown, indent=2, ensure_ascii=False) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRecord:
    """Everything that a record is made of. `gaps` says what could not be read, and why."""

    vsml: str
    api_version: str
    recorded: str  # the day
    soap: tuple[SoapExchange, ...]
    commands: tuple[CommandExchange, ...] = ()
    gaps: tuple[str, ...] = ()

    def files(self) -> Mapping[str, str]:
        """Return the text of each file by its path in the record's folder."""
        found = dict(self._exchange_files())
        listed = [{"file": path, "kind": path.partition("/")[0]} for path in found]
        manifest = {
            "schema": SCHEMA,
            "vsml": self.vsml,
            "api_version": self.api_version,
            "recorded": self.recorded,
            "gaps": list(self.gaps),
            "exchanges": listed,
        }
        return {MANIFEST: json.dumps(manifest, indent=2) + "\n", **found}

    def _exchange_files(self) -> Iterator[tuple[str, str]]:
        for number, each in enumerate(self.soap, 1):
            yield f"soap/{number:04d}-{each.method}.xml", each.text()
        for command in self.commands:
            yield f"{command.where}/{command.machine}-{command.name}.json", command.text()


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a record's folder, each file that it names being there.

    ConfigError `site.record-invalid` with every mistake, `site.record-schema` for one of another schema.
    """
    try:
        manifest = json.loads(read_bytes(folder / MANIFEST, LARGEST_FILE))
    except OSError as error:
        raise _invalid_record(
            folder, [_problem(folder / MANIFEST, f"cannot be read: {error.strerror or error}")]
        ) from error
    except (ValueError, RecursionError) as error:
        raise _invalid_record(folder, [_problem(folder / MANIFEST, "is no JSON text")]) from error
    if not isinstance(manifest, dict) or not str(manifest.get("schema", "")).startswith("vsml.site-record/"):
        raise _invalid_record(folder, [_problem(folder / MANIFEST, "is not the manifest of a site record")])
    if manifest["schema"] != SCHEMA:
        raise ConfigError(
            f"the record is of schema {manifest['schema']}, and this vsml reads {SCHEMA}",
            code="site.record-schema",
            target=str(folder),
            hint="read it with the vsml that `manifest.json` names",
        )
    if problems := list(_mistakes(folder, manifest)):
        raise _invalid_record(folder, problems)
    return manifest


def _mistakes(folder: Path, manifest: dict[str, Any]) -> Iterator[Diagnostic]:
    file = folder / MANIFEST
    for key in sorted(_KEYS - manifest.keys()):
        yield _problem(file, "is missing", key)
    listed = manifest.get("exchanges", [])
    if not isinstance(listed, list):
        yield _problem(file, "is no list", "exchanges")
        return
    for number, each in enumerate(listed):
        path = each.get("file") if isinstance(each, dict) else None
        if not isinstance(path, str) or not _FILE.fullmatch(path):
            yield _problem(file, "names no file of a record", f"exchanges[{number}]")
        elif not (folder / path).is_file():
            yield _problem(folder / path, "is not there")


def _problem(file: Path, message: str, key: str = "") -> Diagnostic:
    return mistake(str(file), None, message, key=key)


def _invalid_record(folder: Path, problems: list[Diagnostic]) -> ConfigError:
    return ConfigError(
        "the folder is no site record, or not a whole one",
        problems=tuple(problems),
        code="site.record-invalid",
        target=str(folder),
        hint="name the folder that `vsml doctor --record` wrote",
    )


def _without_declaration(message: str) -> str:
    return re.sub(r"^\s*<\?xml[^>]*\?>", "", message)
