"""Runs a script and its port on this machine, one rank each, for the losses of their steps."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import BenchError, ConfigError
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.bench.porting.loss_curves import CurveProof, ProofNeeds
    from vsphere_ml.bench.porting.rewrite.port_script import PortedScript

_LAST_LINES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofRun:
    """How both are run: the interpreter, the script's arguments, and how long one may take."""

    python: Path | None
    arguments: tuple[str, ...]
    limit_s: float


def prove(ported: PortedScript, run: ProofRun) -> CurveProof:
    """Return how equal their losses are. Errors as `read_losses` and `compare_losses`; and what a run ended with."""
    from vsphere_ml.bench.porting.loss_curves import compare_losses, proof_needs, read_losses

    needs = proof_needs(ported.shape, tf_keras=ported.takes_tf_keras)
    curves = []
    with tempfile.TemporaryDirectory(prefix="vsml-port-") as folder:
        for name, content in (("script", ported.before), ("port", ported.after)):
            text, out = Path(folder) / f"{name}.py", Path(folder) / f"{name}.jsonl"
            text.write_bytes(content)
            out.touch()
            command = _command(needs, run, (out, text), ported.file)
            ended = _run(command, needs, run.limit_s, ported.file)
            curves.append(read_losses(out.read_text(), ported.file))
            _check_end(ended, "the script" if name == "script" else "its port", ported.file)
    return compare_losses(curves[0], curves[1], ported.file)


def _command(needs: ProofNeeds, run: ProofRun, files: tuple[Path, Path], script: str) -> list[str]:
    from vsphere_ml.bench import workloads

    program = Path(str(workloads.__file__)).with_name("loss_curve.py")
    out, text = files
    python = str(run.python or sys.executable)
    words = [python, str(program), str(out), needs.framework, ",".join(needs.modules), str(text), script]
    return [*words, *run.arguments]


def _run(command: list[str], needs: ProofNeeds, limit_s: float, file: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **needs.environment}
    try:
        return subprocess.run(  # noqa: S603 - the person's own script
            command, env=environment, capture_output=True, text=True, errors="replace", timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        message = f"{file} has not ended after {limit_s:g} s"
        raise BenchError(message, code="port.run-failed", target=file, hint="--max-time, or fewer epochs") from error
    except OSError as error:
        message = f"{command[0]} cannot be run: {error.strerror}"
        raise ConfigError(message, code="file.unreadable", target=command[0], hint=f"ls -l {command[0]}") from error


def _check_end(ended: subprocess.CompletedProcess[str], which: str, file: str) -> None:
    if ended.returncode == 0:
        return
    lines = [each for each in (*ended.stdout.splitlines(), *ended.stderr.splitlines()) if each.strip()]
    raise BenchError(
        f"{file}: {which} ended with status {ended.returncode}",
        code="port.run-failed",
        target=file,
        details=tuple(lines[-_LAST_LINES:]),
        hint="what follows `--` is given to the script",
    )
