from __future__ import annotations

import re
from pathlib import Path

from vsphere_ml.vsphere import privileges

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "privileges.md"


# The work that every cluster needs; doctor does not ask for the rest.
ALWAYS = ("To provision", "To destroy")
FOR_OVF, FOR_STORAGE_POLICY = "To deploy a template from an OVF package", "To use a storage policy"


def listed(*titles: str) -> set[str]:
    """Return the privileges in the tables of these sections."""
    sections = dict(each.partition("\n")[::2] for each in PAGE.read_text().split("\n## "))
    tables = "".join(sections[title].partition("| Privilege |")[2] for title in titles)
    rows = "\n".join(each for each in tables.splitlines() if each.startswith("|"))
    return set(re.findall(r"`([A-Z]\w+(?:\.\w+)+)`", rows))


def test_the_page_lists_what_doctor_asks_for() -> None:
    assert listed(*ALWAYS) == set(privileges.NEEDED)
    assert listed(FOR_OVF) == set(privileges.FOR_OVF)
    assert listed(FOR_STORAGE_POLICY) == set(privileges.FOR_STORAGE_POLICY)
