from __future__ import annotations

import re
from pathlib import Path

from vsphere_ml.vsphere import privileges

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "privileges.md"


def test_the_page_lists_what_doctor_asks_for() -> None:
    table = PAGE.read_text().partition("| Privilege |")[2]
    assert set(re.findall(r"`([A-Z]\w+(?:\.\w+)+)`", table)) == set(privileges.NEEDED)
