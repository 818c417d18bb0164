from __future__ import annotations

import re
from pathlib import Path

from vsphere_ml.vsphere import privileges

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "privileges.md"


# The work that every cluster needs; doctor does not ask for the rest.
ALWAYS = ("To provision", "To destroy")


def test_the_page_lists_what_doctor_asks_for() -> None:
    sections = dict(each.partition("\n")[::2] for each in PAGE.read_text().split("\n## "))
    tables = "".join(sections[title].partition("| Privilege |")[2] for title in ALWAYS)
    assert set(re.findall(r"`([A-Z]\w+(?:\.\w+)+)`", tables)) == set(privileges.NEEDED)
