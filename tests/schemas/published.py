"""Where the schemas are published, and what makes each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.schemas import answers, plans, playbooks, records

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.schemas.types import Schema

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
MADE: dict[str, Callable[[], Schema]] = {
    "answers": answers.make,
    "bench": records.make,
    "plan": plans.make,
    "playbook": playbooks.make,
}
FILES = {name: FOLDER / f"{name}.schema.json" for name in MADE}
