"""Steps 1 and 2: Horovod is imported and begins behind the script's imports, and each process takes its GPU."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from vsphere_ml.bench.porting.rewrite.shapes import TrainingShape
from vsphere_ml.bench.porting.rewrite.source_text import CannotRewrite, need
from vsphere_ml.bench.porting.script import HVD
from vsphere_ml.bench.porting.steps import INIT, PIN, WRAP

if TYPE_CHECKING:
    from vsphere_ml.bench.porting.rewrite.script_editor import ScriptEditor

_MODULES = {
    TrainingShape.TF_LOOP: "horovod.tensorflow",
    TrainingShape.KERAS_FIT: "horovod.tensorflow.keras",
    TrainingShape.TORCH_LOOP: "horovod.torch",
}
_FIRST_GPU = "cuda:0"
_OWN_MEMORY = (".set_memory_growth", ".set_logical_device_configuration", ".set_virtual_device_configuration")


def start_horovod(editor: ScriptEditor, shape: TrainingShape) -> None:
    """Import Horovod for the script's framework, and call its `init` behind the imports."""
    imported = framework_import(editor, shape)
    if HVD not in editor.script.imports.values():
        need(editor.fresh(HVD) == HVD, imported, "`hvd` is a name of the script's own", code="port.name")
        editor.insert_after(imported, [f"import {_MODULES[shape]} as hvd"], INIT)
    _insert_behind_imports(editor, shape, [f"{editor.hvd}.init()"])


def pin_gpu(editor: ScriptEditor, shape: TrainingShape) -> None:
    """Make each process see the GPU of its local rank only."""
    lines = _torch_lines(editor) if shape is TrainingShape.TORCH_LOOP else _tensorflow_lines(editor, shape)
    begun = next(editor.script.calls("hvd.init"), None)
    if begun is not None:
        editor.insert_after(editor.statement(begun), lines, PIN)
    else:
        editor.insert(_behind_imports(editor, shape), "".join(f"{each}\n" for each in lines), PIN)
    if shape is TrainingShape.TORCH_LOOP:
        _free_devices(editor)


def choose_keras2(editor: ScriptEditor) -> None:
    """Make TensorFlow bring Keras 2, before anything imports it."""
    framework_import(editor, TrainingShape.KERAS_FIT)
    first = next(each for each in _imports(editor) if not _of_the_library(each))
    has_os = any(full == "os" for full in editor.script.imports.values()) and _is_os_imported_before(editor, first)
    lines = [*([] if has_os else ["import os", ""]), 'os.environ["TF_USE_LEGACY_KERAS"] = "1"  # needs tf-keras', ""]
    at = editor.source.starts[first.lineno - 1]
    editor.source.indentation(first)
    editor.insert(at, "".join(f"{each}\n" for each in lines), WRAP)


def refuse_other_keras(editor: ScriptEditor) -> None:
    """Raise CannotRewrite when the script imports Keras without TensorFlow."""
    for local, full in editor.script.imports.items():
        if full.partition(".")[0] in {"keras", "tf_keras"}:
            message = f"`{local}` is not tf.keras: in fit, Horovod averages with tf.keras of Keras 2 alone"
            raise CannotRewrite(_import_line(editor, local), message, code="port.keras")


def _import_line(editor: ScriptEditor, local: str) -> int | None:
    imports = (each for each in ast.walk(editor.script.tree) if isinstance(each, ast.Import | ast.ImportFrom))
    names = ((each.lineno, name) for each in imports for name in each.names)
    return next((line for line, name in names if local == (name.asname or name.name.partition(".")[0])), None)


def framework_import(editor: ScriptEditor, shape: TrainingShape) -> ast.stmt:
    """Return the script's first import of its framework; raises CannotRewrite when none is at the top level."""
    root = "torch" if shape is TrainingShape.TORCH_LOOP else "tensorflow"
    for each in _imports(editor):
        if root in _roots(each):
            return each
    raise CannotRewrite(None, f"{root} is not imported at the script's top level", code="port.import")


def module_name(editor: ScriptEditor, full: str, usual: str) -> str:
    """Return what the script calls a module that it imports as one; raises CannotRewrite when it does not."""
    for each in _imports(editor):
        for alias in each.names if isinstance(each, ast.Import) else ():
            if alias.name == full and (alias.asname or "." not in full):
                return alias.asname or full
    raise CannotRewrite(None, f"add `import {full}{'' if usual == full else f' as {usual}'}`", code="port.import")


def _insert_behind_imports(editor: ScriptEditor, shape: TrainingShape, lines: list[str]) -> None:
    at = _behind_imports(editor, shape)
    ended = editor.source.data[:at].endswith((b"\n", b"\r"))
    text = "".join(f"{each}\n" for each in lines)
    editor.insert(at, f"\n{text}" if ended else f"\n\n{text}", INIT)


def _behind_imports(editor: ScriptEditor, shape: TrainingShape) -> int:
    """Return where the line after the imports begins that come with that of the framework."""
    body = editor.script.tree.body
    last = framework_import(editor, shape)
    for each in body[body.index(last) + 1 :]:
        if not isinstance(each, ast.Import | ast.ImportFrom):
            break
        last = each
    editor.source.indentation(last)
    return editor.source.next_line(last)


def _imports(editor: ScriptEditor) -> list[ast.Import | ast.ImportFrom]:
    return [each for each in editor.script.tree.body if isinstance(each, ast.Import | ast.ImportFrom)]


def _roots(statement: ast.Import | ast.ImportFrom) -> set[str]:
    if isinstance(statement, ast.ImportFrom):
        return {(statement.module or "").partition(".")[0]}
    return {each.name.partition(".")[0] for each in statement.names}


def _of_the_library(statement: ast.Import | ast.ImportFrom) -> bool:
    return _roots(statement) <= {*sys.stdlib_module_names, "__future__"}


def _is_os_imported_before(editor: ScriptEditor, statement: ast.stmt) -> bool:
    imports = _imports(editor)
    before = imports[: imports.index(statement)] if statement in imports else imports
    return any(isinstance(each, ast.Import) and any(name.name == "os" for name in each.names) for each in before)


def _torch_lines(editor: ScriptEditor) -> list[str]:
    torch = module_name(editor, "torch", "torch")
    unit = editor.indentation_unit
    return [
        f"if {torch}.cuda.is_available():",
        f"{unit}{torch}.cuda.set_device({editor.hvd}.local_rank())",
    ]


def _tensorflow_lines(editor: ScriptEditor, shape: TrainingShape) -> list[str]:
    framework_import(editor, shape)
    tf, unit = module_name(editor, "tensorflow", "tf"), editor.indentation_unit
    gpus, gpu = editor.fresh("gpus"), editor.fresh("gpu")
    growth = [f"for {gpu} in {gpus}:", f"{unit}{tf}.config.experimental.set_memory_growth({gpu}, True)"]
    return [
        f'{gpus} = {tf}.config.list_physical_devices("GPU")',
        *([] if any(editor.script.calls(*_OWN_MEMORY)) else growth),
        f"if {gpus}:",
        f'{unit}{tf}.config.set_visible_devices({gpus}[{editor.hvd}.local_rank()], "GPU")',
    ]


def _free_devices(editor: ScriptEditor) -> None:
    """Take the process's own GPU where the first one is named; another one by its number is left to the user."""
    for each in ast.walk(editor.script.tree):
        if not (isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value.startswith("cuda:")):
            continue
        text = editor.source.text(each)
        if each.value == _FIRST_GPU and text[1:-1] == _FIRST_GPU:
            editor.replace(each, f"{text[0]}cuda{text[-1]}", PIN)
        else:
            editor.leave(PIN, each.lineno, f"{each.value} is another GPU than the process's own", code="port.device")
    for call in editor.script.calls(".cuda"):
        if call.args:
            message = "a GPU by its number, for every process of a node"
            editor.leave(PIN, call.lineno, message, code="port.device")
