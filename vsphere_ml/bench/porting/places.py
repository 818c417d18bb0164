"""Where a script does what the steps are about: makes its optimizer, reads its data, trains, saves."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from vsphere_ml.bench.porting.script import HVD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.bench.porting.script import Script

_OPTIMIZERS = (
    *("Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl", "Lion", "Nadam", "RMSprop", "SGD"),
    *("AdamOptimizer", "GradientDescentOptimizer", "MomentumOptimizer", "RMSPropOptimizer", "LAMB", "LARS", "RAdam"),
)
_SAVES = (".save", ".save_weights", ".save_model", ".export", ".ModelCheckpoint", ".BackupAndRestore", "torch.save")
CALLBACKS = (".ModelCheckpoint", "ModelCheckpoint", ".TensorBoard", "TensorBoard", ".CSVLogger", "CSVLogger")
_SAVED_BY_NAME = ("ModelCheckpoint", "save_model")
_DATA = (".from_tensor_slices", ".from_tensors", ".from_generator", ".TFRecordDataset", ".DataLoader", "DataLoader")
# Savers of things that are no checkpoint of the model: NumPy arrays, figures, images, tables.
_NO_MODEL = ("numpy.", "np.", "plt.", "matplotlib.", "pd.", "pandas.", "PIL.", "cv2.")


def optimizers(script: Script) -> Iterator[ast.Call]:
    """Yield where optimizers are made."""
    for call in script.calls(*(f".{each}" for each in _OPTIMIZERS), *_OPTIMIZERS):
        if not script.name(call.func).startswith(f"{HVD}."):
            yield call


def datasets(script: Script) -> Iterator[ast.Call]:
    """Yield where data is read."""
    yield from script.calls(*_DATA)


def fits(script: Script) -> Iterator[ast.Call]:
    """Yield where Keras trains by itself; scikit-learn's scalers and the like have a `fit` too."""
    for call in script.calls(".fit", ".fit_generator"):
        if isinstance(call.func, ast.Attribute) and not _of_sklearn(script, call.func.value):
            yield call


def _of_sklearn(script: Script, receiver: ast.expr) -> bool:
    made = (each for each in script.reach(receiver) if isinstance(each, ast.Call))
    return any(script.name(each.func).startswith("sklearn.") for each in made)


def saves(script: Script) -> Iterator[ast.Call]:
    """Yield where the model is saved."""
    for call in script.calls(*_SAVES, *_SAVED_BY_NAME):
        if not script.name(call.func).startswith(_NO_MODEL):
            yield call


def gradient_loops(script: Script) -> Iterator[ast.Call]:
    """Yield where a loop of the script's own applies gradients."""
    yield from script.calls(".apply_gradients", ".apply")


def is_torch(script: Script) -> bool:
    """Return whether the script trains with PyTorch."""
    return any(name.partition(".")[0] == "torch" for name in script.imports.values())


def wants_legacy_keras(script: Script) -> bool:
    """Return whether the script asks for Keras 2 itself: by tf_keras, or by TF_USE_LEGACY_KERAS."""
    if any(name.partition(".")[0] == "tf_keras" for name in script.imports.values()):
        return True
    for node in ast.walk(script.tree):
        match node:
            case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value="TF_USE_LEGACY_KERAS"))], value=value):
                return isinstance(value, ast.Constant) and value.value in {"1", "true", "True"}
            case ast.Call(
                func=ast.Attribute(attr="setdefault"),
                args=[ast.Constant(value="TF_USE_LEGACY_KERAS"), ast.Constant(value="1" | "true" | "True")],
            ):
                return True
    return False
