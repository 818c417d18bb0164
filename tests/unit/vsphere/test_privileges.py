from __future__ import annotations

import re
from pathlib import Path

from vsphere_ml.vsphere import privileges

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "privileges.md"


def test_the_page_lists_what_doctor_asks_for() -> None:
    """Doctor asks for what every cluster needs; what only `enable-ats` needs is a part of its own."""
    parts = re.split(r"^## ", PAGE.read_text().partition("| Privilege |")[2], flags=re.MULTILINE)
    always = "".join(part for part in parts if not part.startswith("To enable ATS"))
    assert len(parts) > 2
    assert set(re.findall(r"`([A-Z]\w+(?:\.\w+)+)`", always)) == set(privileges.NEEDED)
