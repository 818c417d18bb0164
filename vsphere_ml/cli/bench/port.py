"""`vsml port`: a training script for one device becomes one for many."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vsphere_ml.cli.options import command, option_group
from vsphere_ml.cli.terminal import Answer, Terminal
from vsphere_ml.core.hints import CommandLine

if TYPE_CHECKING:
    from vsphere_ml.bench.porting.loss_curves import CurveProof
    from vsphere_ml.bench.porting.rewrite.port_script import PortedScript
    from vsphere_ml.cli.views.bench.ported_script import PortedScriptData

Script = Annotated[Path, typer.Argument(metavar="SCRIPT", help="The training script.")]
Arguments = Annotated[
    list[str] | None, typer.Argument(metavar="ARGUMENT", help="With --prove: the script's own, after `--`.")
]
Keras = Annotated[
    int,
    typer.Option(min=2, max=3, metavar="MAJOR", help="Keras in the guests: 3 comes with TensorFlow 2.16 and newer."),
]


@option_group
class _PortTarget:
    """Where the ported script goes."""

    write: Annotated[Path | None, typer.Option("--write", metavar="OUT", help="Write the ported script here.")] = None
    in_place: Annotated[bool, typer.Option("--in-place", help="Change the script itself.")] = False


@option_group
class _PortProof:
    """Whether the port is held against the script, and how both are run."""

    prove: Annotated[
        bool, typer.Option("--prove", help="Run script and port on one rank each, here, and compare all losses.")
    ] = False
    python: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Run them with this Python.", show_default="vsml's own")
    ] = None
    max_time: Annotated[float, typer.Option(min=1, metavar="SECONDS", help="Let neither run for longer.")] = 600.0


@command
def port(
    terminal: Terminal,
    script: Script,
    arguments: Arguments = None,
    *,
    target: _PortTarget,
    proof: _PortProof,
    keras: Keras = 3,
) -> Answer["PortedScriptData"]:
    """Port a training script to Horovod: show the edits as a diff, each hunk with the step that it is for.

    Loops with TensorFlow's GradientTape, Keras' fit and PyTorch loops are ported. What is not certain is left alone and
    named with its line; the command exits with 6 then. Nothing is written unless `--write` or `--in-place` says where,
    and nothing is run without `--prove`.

    Example: `vsml port train.py`, then `vsml port --write train_hvd.py --prove train.py -- --epochs 1`
    """
    from vsphere_ml.bench.porting.rewrite import port_script
    from vsphere_ml.cli.bench.files import content
    from vsphere_ml.cli.views.bench import ported_script as view

    to = _place(script, target)
    ported = port_script.port(content(script), str(script), keras=keras)
    error = port_script.left_error(ported)
    proven = _prove(terminal, ported, proof, tuple(arguments or ()))
    if to is not None and not (ported.is_unchanged and target.in_place):
        _write(terminal, ported, to)
    return Answer(
        text=view.text(ported),
        data=view.data(ported, to, proven),
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
        raise ConfigError(message, code="usage", target="--write", hint=CommandLine("vsml port --help"))
    if target.write.exists():
        message = f"{target.write} is there already"
        hint = "name another file; --in-place changes the script itself"
        raise ConfigError(message, code="port.exists", target=str(target.write), hint=hint)
    return target.write  # type: ignore[no-any-return]


def _prove(terminal: Terminal, ported: PortedScript, proof: Any, arguments: tuple[str, ...]) -> CurveProof | None:
    """Return how equal the losses of script and port are; None when that is not asked, or cannot be."""
    from vsphere_ml.cli.bench.proof_runs import ProofRun, prove
    from vsphere_ml.core.errors import ConfigError

    if not proof.prove:
        if arguments or proof.python:
            raise ConfigError("nothing is run without --prove", code="usage", hint=CommandLine("vsml port --help"))
        return None
    if ported.is_unchanged or ported.left:
        terminal.say("not proven: " + ("places are left to you" if ported.left else "there is nothing to compare with"))
        return None
    run = ProofRun(python=proof.python, arguments=arguments, limit_s=proof.max_time)
    proven = prove(ported, run)
    difference = f"at most {proven.largest_difference:.1g} apart"
    terminal.say(f"proven on one rank: {proven.steps} losses of script and port, {difference}")
    return proven


def _write(terminal: Terminal, ported: PortedScript, to: Path) -> None:
    from vsphere_ml.cli.bench.files import replace

    replace(to, ported.after)
    terminal.say(f"written: {to}")
