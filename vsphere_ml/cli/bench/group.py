"""`vsml bench FILE` means `vsml bench run FILE`. A mistyped sub-command or workload is not taken for a file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from typer import TyperException

from vsphere_ml.cli.default_group import OF_THE_GROUP, DefaultGroup

_FILE = re.compile(r"[./]")  # in what is taken for a file that is not there


class BenchGroup(DefaultGroup):
    """The group whose command `run` can be left out."""

    default = "run"

    def is_for_default(self, args: list[str]) -> bool:
        from vsphere_ml.core.nearest import nearest_name

        if super().is_for_default(args):
            return True
        first = args[0]
        if first in self.commands or first in OF_THE_GROUP:
            return False
        return Path(first).exists() or (bool(_FILE.search(first)) and nearest_name(first, self.commands) is None)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command; where the word is rather a workload, the error names the option."""
        from vsphere_ml.bench.model.record import Workload
        from vsphere_ml.core.nearest import nearest_name

        try:
            return super().resolve_command(ctx, args)
        except TyperException as error:
            workload = nearest_name(args[0], Workload)
            if workload is None or nearest_name(args[0], self.commands) is not None:
                raise
            error.message = f"No such command '{args[0]}'. Did you mean '--workload {workload}'?"
            raise
