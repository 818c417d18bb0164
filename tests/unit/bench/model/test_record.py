from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schemas.records import make as schema
from tests.unit.bench import synthetic
from vsphere_ml.bench.records import store
from vsphere_ml.bench.records.positions import line_of
from vsphere_ml.core import json_memory
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.bench.model.record import Run

RUN = synthetic.train(2, steps=3)


def refused(content: str) -> tuple[int | None, str, str]:
    with pytest.raises(ConfigError) as caught:
        store.parse(content, "run.json")
    assert caught.value.code == "record.unreadable"
    (problem,) = caught.value.problems
    return problem.line, problem.target, problem.message


def edited(path: tuple[str | int, ...], value: Any) -> str:
    document: Any = json.loads(store.text(RUN))
    inside = document
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value
    return json.dumps(document, indent=1)


@pytest.mark.parametrize("run", [RUN, synthetic.sweep(3)], ids=["train", "sweep"])
def test_what_is_written_is_read_again(run: Any, tmp_path: Path) -> None:
    file = store.write(run, tmp_path / "new" / "record")
    assert store.read(file) == (run,)
    assert store.read(file.parent) == (run,)


def test_runs_come_in_the_order_they_were_started(tmp_path: Path) -> None:
    runs = synthetic.record(nodes=2, launches=2)
    for run in reversed(runs):
        store.write(run, tmp_path)
    assert store.read(tmp_path) == runs


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        (("schema",), "vsml.bench/9", "schema"),
        (("configuration", "ranks"), "2", "configuration.ranks"),
        (("configuration", "ranks"), 0, "configuration.ranks"),
        (("configuration", "rank"), 2, "configuration.rank"),
        (("configuration", "workload"), "dance", "configuration.workload"),
        (("lab",), 1, "lab"),
        (("steps", "step_s", 1, 2), 0, "steps.step_s.1.2"),
        (("steps", "step_s", 1, 2), None, "steps.step_s.1.2"),
        (("steps", "step_s", 1), [1.0], "steps.step_s.1"),
        (("steps", "step_s"), [[1.0]], "steps.step_s"),
        (("steps", "compute_s"), [[1.0], [1.0]], "steps.compute_s"),
        (("started",), "yesterday", "started"),
        (("proofs",), {}, "proofs"),
        (("cluster",), [], "cluster"),
        (("link", "mtu_bytes"), -1500, "link.mtu_bytes"),
        (("steps", "step_s", 1, 2), 10**400, "steps.step_s.1.2"),
        (("configuration", "parameters"), 10**30, "configuration.parameters"),
        (("steps", "step_s", 1, 2), 1e300, "steps.step_s.1.2"),
        (("steps", "step_s", 1, 2), 1e-300, "steps.step_s.1.2"),
    ],
)
def test_a_wrong_value_is_told_with_its_place(
    path: tuple[str | int, ...], value: Any, key: str, golden: Golden
) -> None:
    content = edited(path, value)
    line, text, why = refused(content)
    assert text == key
    golden(why)
    assert line == line_of(content, path)
    assert line is not None
    if path[-1] == "ranks":
        assert '"ranks"' in content.splitlines()[line - 1]


def test_a_missing_key_is_told(golden: Golden) -> None:
    document = json.loads(store.text(RUN))
    del document["outcome"]
    error = refused(json.dumps(document))
    golden(error)


@pytest.mark.parametrize(
    ("content", "line"), [("", 1), ("{\n1}", 2), ("[]", 1), ('{"schema": NaN}', 1), ("[" * 100_000, None)]
)
def test_what_is_no_document_is_refused(content: str, line: int | None) -> None:
    assert refused(content)[0] == line


def test_every_bad_document_is_told_at_once(tmp_path: Path) -> None:
    store.write(RUN, tmp_path)
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError) as caught:
        store.read(tmp_path)
    assert [Path(each.file).name for each in caught.value.problems] == ["a.json", "b.json"]


def test_a_record_that_is_not_there_and_one_without_runs(tmp_path: Path, golden: Golden) -> None:
    with pytest.raises(ConfigError) as caught:
        store.read(tmp_path / "missing")
    assert caught.value.code == "record.unreadable"
    golden(caught.value)
    assert caught.value.code == "record.unreadable"
    with pytest.raises(ConfigError) as caught:
        store.read(tmp_path)
    assert caught.value.code == "record.empty"
    golden(caught.value)
    assert caught.value.code == "record.empty"


def test_a_record_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError) as caught:
        store.write(RUN, tmp_path / "file")
    assert caught.value.code == "record.unwritable"


def test_a_run_that_was_cut_while_written_leaves_no_document(tmp_path: Path) -> None:
    store.write(RUN, tmp_path)
    (tmp_path / "later.part").write_text("{")
    assert len(store.read(tmp_path)) == 1


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda each: st.lists(each, max_size=3)))
def test_wrong_values_are_refused_and_never_crash(value: object) -> None:
    for path in (("configuration",), ("steps",), ("sweep",), ("started",), ("link", "nics")):
        try:
            store.parse(edited(path, value), "run.json")
        except ConfigError as error:
            assert error.code == "record.unreadable"  # noqa: PT017 - some values are right


@given(
    st.recursive(st.none() | st.integers() | st.text(), lambda each: st.lists(each) | st.dictionaries(st.text(), each))
)
def test_a_place_is_found_in_any_document(value: Any) -> None:
    content = json.dumps({"first": [1, {"b": 2}], "x": value, "last": 3}, indent=1)
    assert content.splitlines()[line_of(content, ("last",)) - 1] == ' "last": 3'


def test_a_place_in_a_list_is_counted() -> None:
    assert line_of('[1,\n2,\n{"x": [5,\n6]}]', (2, "x", 1)) == 4


def test_a_number_of_more_digits_than_python_reads_is_told() -> None:
    content = store.text(RUN).replace('"launch": 1', '"launch": 1' + "0" * 5000)
    assert "4300" in refused(content)[2]


def test_what_an_editor_on_windows_makes_of_a_document_is_read(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(b"\xef\xbb\xbf" + store.text(RUN).replace("\n", "\r\n").encode())
    assert store.read(file) == (RUN,)


def test_where_nothing_can_be_recorded_is_known_before_anything_runs(tmp_path: Path, golden: Golden) -> None:
    store.check_writable(tmp_path / "new" / "record")
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "record"):
        with pytest.raises(ConfigError) as caught:
            store.check_writable(folder)
        golden(caught.value)
        assert caught.value.code == "record.unwritable"


def test_a_run_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    file = store.write(RUN, tmp_path)
    assert store.read(tmp_path, file) == (RUN,)


@pytest.mark.parametrize("run", [RUN, synthetic.sweep(3), replace(RUN, cluster=None, steps=None)], ids=str)
def test_every_document_keeps_to_the_schema(run: Run) -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(json.loads(store.text(run)), schema())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), "vsml.bench/9"),
        (("configuration", "ranks"), "2"),
        (("configuration", "rank"), 2),
        (("configuration", "workload"), "dance"),
        (("lab",), 1),
        (("steps", "step_s", 1, 2), None),
        (("proofs",), {}),
    ],
)
def test_what_the_reader_refuses_the_schema_refuses_too(path: tuple[str | int, ...], value: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(edited(path, value)), schema())


def test_documents_that_take_too_much_memory_together_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (store.write(each, tmp_path) for each in synthetic.record(nodes=1, launches=2)[:2])
    monkeypatch.setattr(json_memory, "MOST", json_memory.memory(first.read_text()) + 1)
    assert len(store.read(first)) == 1
    with pytest.raises(ConfigError) as caught:
        store.read(tmp_path)
    assert caught.value.code == "record.unreadable"
    assert [each.file for each in caught.value.problems] == [str(second)]


def test_a_document_of_many_small_values_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "hostile.json"
    file.write_text('{"schema": "vsml.bench/3", "x": [' + ",".join(["{}"] * 1_500_000) + "]}")
    monkeypatch.setattr(json, "loads", lambda _text: pytest.fail("it is read"))
    with pytest.raises(ConfigError) as caught:
        store.read(file)
    assert caught.value.code == "record.unreadable"


def test_text_that_takes_more_than_its_bytes_is_bounded_before_it_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = store.write(RUN, tmp_path)
    monkeypatch.setattr(store, "LARGEST_BEYOND_ASCII", 1000)
    assert store.read(file) == (RUN,)
    file.write_bytes(file.read_bytes() + "\N{GRINNING FACE}".encode())
    with pytest.raises(ConfigError) as caught:
        store.read(file)
    assert "ASCII" in caught.value.problems[0].message
