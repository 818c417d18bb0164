"""Step 4: each rank's part of the training data, as large as every other rank's.

A rank with one step more than the others waits for ever in its last exchange, so what cannot be dealt out evenly is
left out. Data to validate with is left alone.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from vsphere_ml.bench.porting import places
from vsphere_ml.bench.porting.rewrite.begin import module_name
from vsphere_ml.bench.porting.rewrite.loops import step_call, torch_steps
from vsphere_ml.bench.porting.rewrite.shapes import TrainingShape
from vsphere_ml.bench.porting.rewrite.source_text import CannotRewrite, need
from vsphere_ml.bench.porting.script import argument
from vsphere_ml.bench.porting.steps import SHARD

if TYPE_CHECKING:
    from vsphere_ml.bench.porting.rewrite.script_editor import ScriptEditor

_UNIFORM = (".from_tensor_slices", ".TFRecordDataset", ".TextLineDataset", ".list_files", ".Dataset.range")
_SOURCES = (*_UNIFORM, ".from_generator", ".from_tensors")
_PARTS = (".take", ".skip")
_LOADERS = (".DataLoader", "DataLoader")
_SAMPLERS = ("sampler", "batch_sampler")
_ITERABLE = "IterableDataset"


def shard_data(editor: ScriptEditor, shape: TrainingShape) -> None:
    """Give each rank its part of what is trained with."""
    match shape:
        case TrainingShape.TORCH_LOOP:
            _add_sampler(editor)
        case TrainingShape.KERAS_FIT:
            for call in places.fits(editor.script):
                _shard_fit(editor, call)
        case TrainingShape.TF_LOOP:
            call = step_call(editor)
            feeds = [*(each.iter for each in editor.loops(call) if isinstance(each, ast.For)), *call.args]
            _shard_datasets(editor, feeds, call)


def _shard_fit(editor: ScriptEditor, call: ast.Call) -> None:
    data, labels = argument(call, 0, "x"), argument(call, 1, "y")
    need(data is not None, call, "what fit trains with is not seen", code="port.data")
    if data is not None and labels is not None:
        weights = argument(call, -1, "sample_weight")
        for each in (data, labels, *([weights] if weights is not None else [])):
            _slice_array(editor, each)
    elif data is not None:
        _shard_datasets(editor, [data], call)
    steps = argument(call, -1, "steps_per_epoch")
    if steps is not None:
        editor.surround(steps, "(", f") // {editor.size}", SHARD)


def _slice_array(editor: ScriptEditor, array: ast.expr) -> None:
    values = editor.resolve(array)
    plain = isinstance(array, ast.Name | ast.Attribute) and not any(
        isinstance(each, ast.List | ast.Tuple | ast.Dict | ast.Set) for each in values
    )
    need(plain, array, "whether this is one array is not seen", code="port.data")
    text = editor.source.text(array)
    part = f"[{editor.rank} :: {editor.size}][: len({text}) // {editor.size}]"
    editor.insert(editor.source.end(array), part, SHARD)


def _shard_datasets(editor: ScriptEditor, feeds: list[ast.expr], call: ast.Call) -> None:
    reached = {each for feed in feeds for each in editor.script.reach(feed) if isinstance(each, ast.Call)}
    sources = [each for each in reached if editor.script.is_call(each, *_SOURCES)]
    need(sources, call, "where its data is read is not seen", code="port.data")
    ends = {_after_parts(editor, each) for each in sources}
    stray = next((each for each in reached - ends if editor.script.is_call(each, *_PARTS)), None)
    inner = {each for end in ends for each in ast.walk(end)}
    need(stray is None or stray in inner, stray, "a part of a dataset that has other parts", code="port.data")
    for each in sorted(sources, key=editor.source.start):
        _shard_source(editor, each)


def _after_parts(editor: ScriptEditor, source: ast.Call) -> ast.Call:
    """Return a source with the `take` and `skip` that follow it at once: what is counted there is of all the data."""
    found = source
    while True:
        attribute = editor.script.parents.get(found)
        call = editor.script.parents.get(attribute) if isinstance(attribute, ast.Attribute) else None
        if not (isinstance(call, ast.Call) and call.func is attribute and editor.script.is_call(call, *_PARTS)):
            return found
        found = call


def _shard_source(editor: ScriptEditor, source: ast.Call) -> None:
    even = ""
    if editor.script.is_call(source, *_UNIFORM):
        even = f".batch({editor.size}, drop_remainder=True).unbatch()"
    else:
        message = "whether every rank gets as many elements is not seen: one with more would wait for ever"
        editor.leave(SHARD, source.lineno, message, code="port.uneven")
    end = editor.source.end(_after_parts(editor, source))
    editor.insert(end, f"{even}.shard({editor.size}, {editor.rank})", SHARD)


def _add_sampler(editor: ScriptEditor) -> None:
    steps = torch_steps(editor)
    loader = _training_loader(editor, steps.backward)
    need(not _has(loader, *_SAMPLERS), loader, "the loader has a sampler of its own", code="port.data")
    data = argument(loader, 0, "dataset")
    need(isinstance(data, ast.Name | ast.Attribute), loader, "the loader's data has no name", code="port.data")
    if data is None:
        return
    need(not _is_iterable(editor, data), data, "an IterableDataset deals out its parts itself", code="port.data")
    _write_sampler(editor, loader, data)


def _training_loader(editor: ScriptEditor, backward: ast.Call) -> ast.Call:
    loops = editor.loops(backward) or _loops_of_callers(editor, backward)
    reached = (each for loop in loops if isinstance(loop, ast.For) for each in editor.script.reach(loop.iter))
    loaders = {each for each in reached if isinstance(each, ast.Call) and editor.script.is_call(each, *_LOADERS)}
    if len(loaders) != 1:
        raise CannotRewrite(backward.lineno, "which DataLoader it trains with is not seen", code="port.data")
    return loaders.pop()


def _loops_of_callers(editor: ScriptEditor, backward: ast.Call) -> list[ast.For | ast.While]:
    function = editor.function(backward)
    calls = editor.script.calls(function.name) if isinstance(function, ast.FunctionDef) else ()
    return [loop for call in calls for loop in editor.loops(call)]


def _has(call: ast.Call, *names: str) -> bool:
    return any(each.arg in (*names, None) for each in call.keywords)


def _is_iterable(editor: ScriptEditor, data: ast.expr) -> bool:
    classes = {each.name: each for each in ast.walk(editor.script.tree) if isinstance(each, ast.ClassDef)}
    made = (editor.script.name(each.func) for each in editor.resolve(data) if isinstance(each, ast.Call))
    bases = (base for name in made if name in classes for base in classes[name].bases)
    return any(editor.script.name(base).endswith(_ITERABLE) for base in bases)


def _write_sampler(editor: ScriptEditor, loader: ast.Call, data: ast.expr) -> None:
    shuffle = argument(loader, 2, "shuffle")
    keyword = next((each for each in loader.keywords if each.arg == "shuffle"), None)
    need(shuffle is None or keyword is not None, loader, "shuffle is given by its position", code="port.data")
    sampler, torch = editor.fresh("sampler"), module_name(editor, "torch", "torch")
    is_shuffled = editor.source.text(shuffle) if shuffle is not None else "False"
    made = f"{torch}.utils.data.distributed.DistributedSampler("
    arguments = f"num_replicas={editor.size}, rank={editor.rank}, shuffle={is_shuffled})"
    lines = [f"{sampler} = {made}{editor.source.text(data)}, {arguments}"]
    if keyword is not None:
        start = editor.source.end(keyword.value) - _width(editor, keyword)
        editor.replace_range(start, editor.source.end(keyword.value), f"sampler={sampler}", SHARD)
    else:
        editor.insert_argument(loader, f"sampler={sampler}", SHARD)
    editor.insert_before(editor.statement(loader), lines, SHARD)
    if is_shuffled != "False":
        _count_epochs(editor, loader)


def _width(editor: ScriptEditor, keyword: ast.keyword) -> int:
    start = editor.source.starts[keyword.lineno - 1] + keyword.col_offset
    return editor.source.end(keyword.value) - start


def _count_epochs(editor: ScriptEditor, loader: ast.Call) -> None:
    """Say which epoch it is where the loader is walked through: without it, every epoch has the same order."""
    loops = (each for each in ast.walk(editor.script.tree) if isinstance(each, ast.For) and _trains(editor, each))
    loop = next((each for each in loops if loader in set(editor.script.reach(each.iter))), None)
    if loop is None:
        raise CannotRewrite(loader.lineno, "where the loader is walked through is not seen", code="port.data")
    place, feeds = _epoch_place(editor, loop)
    epoch = _epoch(editor, place)
    if epoch is not None:
        walked = _loader_name(editor, feeds, loader)
        editor.insert_before(place, [f"{walked}.sampler.set_epoch({epoch})"], SHARD)


def _trains(editor: ScriptEditor, loop: ast.For) -> bool:
    """Return whether a backward pass is in a loop, or in a function that it calls."""
    step = torch_steps(editor).backward
    return loop in editor.loops(step) or loop in _loops_of_callers(editor, step)


def _epoch_place(editor: ScriptEditor, loop: ast.For) -> tuple[ast.stmt, list[ast.expr]]:
    """Return the statement of an epoch, and in what of it the loader is: the loop, or the call of its function."""
    function = editor.function(loop)
    calls = list(editor.script.calls(function.name)) if isinstance(function, ast.FunctionDef) else []
    if editor.loops(loop) or not any(editor.loops(call) for call in calls):
        return loop, [loop.iter]
    need(
        len(calls) == 1,
        loop,
        "the number of the epoch does not come here, to be given to the sampler",
        code="port.data",
    )
    return editor.statement(calls[0]), [*calls[0].args, *(each.value for each in calls[0].keywords), loop.iter]


def _loader_name(editor: ScriptEditor, feeds: list[ast.expr], loader: ast.Call) -> str:
    names = (each for feed in feeds for each in ast.walk(feed) if isinstance(each, ast.Name | ast.Attribute))
    for each in names:
        if loader in editor.resolve(each):
            return editor.source.text(each)
    raise CannotRewrite(loader.lineno, "the loader has no name, to be given the number of the epoch", code="port.data")


def _epoch(editor: ScriptEditor, statement: ast.stmt) -> str | None:
    """Return the number of the epoch around a statement; None when there is a single one."""
    outer = next((each for each in editor.loops(statement) if isinstance(each, ast.For)), None)
    if outer is None:
        return None
    target = outer.target
    counts = editor.script.is_call(outer.iter, "range", ".trange", "trange")
    if not (isinstance(target, ast.Name) and counts):
        raise CannotRewrite(
            outer.lineno, "the number of the epoch has no name, to be given to the sampler", code="port.data"
        )
    if target.id != "_":
        return target.id
    name = editor.fresh("epoch")
    editor.replace(target, name, SHARD)
    return name
