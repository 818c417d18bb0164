"""Writes the schemas."""

from __future__ import annotations

import json

from tests.schemas.published import FILES, MADE

if __name__ == "__main__":
    for name, file in FILES.items():
        file.write_text(json.dumps(MADE[name](), indent=2) + "\n")
