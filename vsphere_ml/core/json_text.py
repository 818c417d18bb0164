"""Reads JSON that others wrote, with every way in which that fails as a ValueError."""

from __future__ import annotations

import json
from typing import Any


def parse(text: str | bytes) -> Any:
    """Return the value of a JSON text; ValueError when it is none, or nested too deeply to be read."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
