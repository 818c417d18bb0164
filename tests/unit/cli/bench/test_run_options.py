"""What the options of `vsml bench run` come to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vsphere_ml.bench.model.engines import Engine
from vsphere_ml.bench.model.launcher_names import LauncherName
from vsphere_ml.cli.bench.run_options import MatrixOptions, ScriptOptions, TrainOptions, choose_engine
from vsphere_ml.core.errors import ConfigError


def test_another_script_is_another_configuration(tmp_path: Path) -> None:
    one, other = tmp_path / "a.py", tmp_path / "b.py"
    one.write_text("1")
    other.write_text("2")
    first, second = (ScriptOptions(script=each, arguments="").options()["sha256"] for each in (one, other))
    assert first != second


def test_a_script_without_an_end_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for endless in (Path("/dev/zero"), tmp_path / "fifo"):
        with pytest.raises(ConfigError) as refused:
            ScriptOptions(script=endless, arguments="").options()
        assert (refused.value.code, refused.value.target) == ("file.unreadable", str(endless))


@pytest.mark.parametrize(
    ("engine", "launcher", "chosen"),
    [
        (None, None, (Engine.TENSORFLOW, LauncherName.HOROVODRUN)),
        (None, LauncherName.TORCHRUN, (Engine.PYTORCH, LauncherName.TORCHRUN)),
        (Engine.PYTORCH, None, (Engine.PYTORCH, LauncherName.TORCHRUN)),
        (Engine.TENSORFLOW, LauncherName.MPIRUN, (Engine.TENSORFLOW, LauncherName.MPIRUN)),
        (Engine.PYTORCH_HOROVOD, None, (Engine.PYTORCH_HOROVOD, LauncherName.HOROVODRUN)),
        (Engine.JAX, None, (Engine.JAX, LauncherName.SSH)),
        (None, LauncherName.SSH, (Engine.PYTORCH, LauncherName.SSH)),
    ],
)
def test_engine_and_launcher_are_chosen_to_fit_each_other(
    engine: Engine | None, launcher: LauncherName | None, chosen: tuple[Engine, LauncherName]
) -> None:
    assert choose_engine(MatrixOptions(engine=engine, launcher=launcher), TrainOptions()) == chosen
