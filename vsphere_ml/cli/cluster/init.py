"""`vsml init`: a commented file to begin with."""

from __future__ import annotations

from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, command
from vsphere_ml.cli.terminal import Answer, Terminal


@command
def init(terminal: Terminal, file: ClusterFile = DEFAULT_FILE) -> Answer:
    """Write a commented cluster file to fill in. An existing file is not overwritten.

    Example: `vsml init cluster.toml`, replace the angle brackets, then `vsml check cluster.toml`
    """
    from vsphere_ml.cli.views.layout.text import line
    from vsphere_ml.config.starter import write

    write(file)
    terminal.say(f"replace the <angle brackets>, then run: vsml check {file}")
    return Answer(text=line(f"wrote {file}"), data={"file": file})
