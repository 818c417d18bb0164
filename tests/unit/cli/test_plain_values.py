"""What is taken as it is, is what typer would make of it: of each parameter of each command."""

from __future__ import annotations

import subprocess
import sys
from enum import Enum
from typing import Any

import pytest
from typer import _coercion
from typer.main import get_command

from tests.unit.cli import reference
from vsphere_ml.cli.app import assemble
from vsphere_ml.cli.plain_values import TO_CONVERT, take_plain

COMMANDS = dict(reference.leaves(get_command(assemble())))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_plain_value_is_what_typer_makes_of_it(name: str) -> None:
    command: Any = COMMANDS[name]
    context = command.make_context(name, [], resilient_parsing=True)
    for each in command.params:
        kind = each.type_descriptor.annotation
        choices = [value for member in kind for value in (member, member.value)] if is_choice(kind) else []
        given: list[Any] = [each.get_default(context), "a/b", "7", ("a", "b"), True, *choices]
        for value in given:
            if (plain := take_plain(value, each)) is not TO_CONVERT:
                reader = _coercion.build_runtime_param(each.type_descriptor)
                assert plain == reader.coerce(value, param=each, ctx=context), (each.name, value)


def is_choice(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Enum)


@pytest.mark.parametrize(
    "line",
    [
        "run -f none.toml -- true",
        "provision none.toml --yes --only a",
        "ssh a -- true",
        "bench none.toml --launcher mpirun",
        "verify none.toml",
    ],
)
def test_a_command_with_plain_values_makes_no_adapter(line: str) -> None:
    probe = "import sys; from vsphere_ml.cli import app; app.run(sys.argv[1:]); print('typer._adapters' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe, *line.split()], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
