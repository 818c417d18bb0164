"""A group of commands in which one of them can be left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typer.core import TyperGroup

from vsphere_ml.core.nearest import nearest

DEFAULT = "run"


class BenchGroup(TyperGroup):
    """`vsml bench FILE` means `vsml bench run FILE`. A mistyped sub-command is not taken for a file."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if DEFAULT in self.commands and self._is_for_default(args):
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)

    def _is_for_default(self, args: list[str]) -> bool:
        if not args:
            return True
        first = args[0]
        if first in self.commands or first in {"-h", "--help", "--show-completion", "--install-completion"}:
            return False
        return first.startswith("-") or Path(first).exists() or nearest(first, self.commands) is None
