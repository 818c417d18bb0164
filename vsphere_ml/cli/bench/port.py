"""`vsml port`: a training script for one device becomes one for many."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vsphere_ml.cli.options import command, option_group
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.bench.porting.rewrite.port_script import PortedScript

Script = Annotated[Path, typer.Argument(metavar="SCRIPT", help="The training script.")]
Keras = Annotated[
    int,
    typer.Option(min=2, max=3, metavar="MAJOR", help="Keras in the guests: 3 comes with TensorFlow 2.16 and newer."),
]


@option_group
class PortTarget:
    """Where the ported script goes."""

    write: Annotated[Path | None, typer.Option("--write", metavar="OUT", help="Write the ported script here.")] = None
    in_place: Annotated[bool, typer.Option("--in-place", help="Change the script itself.")] = False


@command
def port(terminal: Terminal, script: Script, target: PortTarget, keras: Keras = 3) -> Answer:
    """Port a training script to Horovod: show the edits as a diff, each hunk with the step that it is for.

    Loops with TensorFlow's GradientTape, Keras' fit and PyTorch loops are ported. What is not certain is left alone and
    named with its line; the command exits with 6 then. Nothing is written unless `--write` or `--in-place` says where.

    Example: `vsml port train.py`, then `vsml port --write train_hvd.py train.py`
    """
    from vsphere_ml.bench.porting.rewrite import port_script
    from vsphere_ml.cli.bench.files import content
    from vsphere_ml.cli.views.bench import ported_script as view

    to = _place(script, target)
    ported = port_script.port(content(script), str(script), keras=keras)
    error = port_script.left_error(ported)
    if to is not None and not (ported.is_unchanged and target.in_place):
        _write(terminal, ported, to)
    return Answer(
        text=view.text(ported),
        data={**view.data(ported), "written": to},
        status=error.status if error else 0,
        errors=(error,) if error else (),
    )


def _place(script: Path, target: Any) -> Path | None:
    """Return where the ported script goes; raises ConfigError for two places, or for a file that is there already."""
    from vsphere_ml.core.errors import ConfigError

    if target.write is None:
        return script if target.in_place else None
    if target.in_place:
        message = "--write and --in-place are two places"
        raise ConfigError(message, code="usage", target="--write", hint="vsml port --help")
    if target.write.exists():
        message = f"{target.write} is there already"
        hint = "name another file; --in-place changes the script itself"
        raise ConfigError(message, code="port.exists", target=str(target.write), hint=hint)
    return target.write  # type: ignore[no-any-return]


def _write(terminal: Terminal, ported: PortedScript, to: Path) -> None:
    from vsphere_ml.cli.bench.files import replace

    replace(to, ported.after)
    terminal.say(f"written: {to}")
