"""The fields of a site record's answers, with the kinds of their values, and how two records differ in them."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vsphere_ml.core.site_record.exchanges import SiteRecord

FOLDER = Path(__file__).parents[1] / "cases" / "site_records"
Shape = dict[str, set[str]]  # field to kinds


def list_shapes() -> list[dict[str, Any]]:
    """Return what public documents say of objects in answers."""
    found: list[dict[str, Any]] = tomllib.loads((FOLDER / "shapes.toml").read_text())["shape"]
    return found


def list_records() -> list[Path]:
    """Return the folders of records of real sites; there may be none."""
    return sorted(each.parent for each in FOLDER.glob("*/manifest.json"))


def shape_of(record: SiteRecord) -> Shape:
    """Return the shape of all answers with properties."""
    return _merge(ET.fromstring(each.response) for each in record.soap if each.method == "RetrievePropertiesEx")


def shape_of_folder(folder: Path) -> Shape:
    """Return the same of a record on file."""
    files = sorted((folder / "soap").glob("*RetrievePropertiesEx.xml"))
    return _merge(found for file in files for found in ET.parse(file).getroot().iterfind("response"))


def differences(real: Mapping[str, set[str]], ours: Mapping[str, set[str]]) -> list[str]:
    """Return the fields that a real site has and ours has not, or of another kind; of objects that both have."""
    parents = {path.rpartition(".")[0] for path in ours}
    pending = [path for path in real if path not in ours and path.rpartition(".")[0] in parents]
    other = [path for path in real if path in ours and not real[path] & ours[path]]
    return sorted(pending + other)


def _merge(answers: Iterator[ET.Element]) -> Shape:
    shape: Shape = defaultdict(set)
    for answer in answers:
        for each in answer.iter():
            if _name(each) == "propSet" and len(each) > 1:
                for path, kind in _leaves(each[0].text or "", each[1]):
                    shape[path].add(kind)
    return dict(shape)


def _leaves(path: str, element: ET.Element) -> Iterator[tuple[str, str]]:
    if len(element) == 0:
        yield path, _kind(element)
    for child in element:
        yield from _leaves(f"{path}.{_name(child)}", child)


def _kind(element: ET.Element) -> str:
    text = (element.text or "").strip()
    if "type" in element.attrib:
        return "reference"
    if text in {"true", "false"}:
        return "boolean"
    return "number" if re.fullmatch(r"-?\d+", text) else "string"


def _name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]
