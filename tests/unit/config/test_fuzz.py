"""Whatever is in the file, the answer is a cluster or a ConfigError with words."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.counted import checked, counted
from vsphere_ml.config import starter
from vsphere_ml.config.load import load_text
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.model.spec import ClusterSpec

WHOLE = (Path(__file__).parents[3] / "examples" / "lab" / "cluster.toml").read_text()
LINES = WHOLE.splitlines(keepends=True) + starter.text().splitlines(keepends=True)
VALUES = ["1", "-1", "1.5", "nan", "true", '""', '"x"', '"[1-3]"', '"{n}"', '"dhcp"', "[]", "[1]", '["a", "b"]', "{}"]
VALUES += ["{ a = 1 }", "2026-11-21", '"64GiB"', '"A100-40C"', "99999999999999999999", '"\\u0000"', "[[1], {a = 1}]"]
calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def answers(text: str) -> ClusterSpec | ConfigError:
    try:
        return load_text(text)
    except ConfigError as error:
        return error


@calm
@given(st.text())
@example("\r")
@example("a = '''")
@example("[[nodes]]\n[nodes.nodes]\n[[nodes.nodes.x]]")
def test_any_text_is_a_cluster_or_a_refusal(text: str) -> None:
    answer = answers(text)
    assert isinstance(answer, ConfigError)
    assert answer.problems


@calm
@given(st.lists(st.sampled_from(LINES), max_size=60).map("".join))
def test_lines_of_good_files_in_any_order(text: str) -> None:
    answer = answers(text)
    assert isinstance(answer, ClusterSpec) or answer.problems


@counted
@calm
@given(st.data())
def test_a_good_file_with_other_values(data: st.DataObject) -> None:
    lines = WHOLE.splitlines(keepends=True)
    keys = [at for at, line in enumerate(lines) if "=" in line]
    for at in data.draw(st.sets(st.sampled_from(keys), max_size=5)):
        lines[at] = f"{lines[at].partition('=')[0]}= {data.draw(st.sampled_from(VALUES))}\n"
    answer = answers("".join(lines))
    if isinstance(answer, ConfigError):
        checked()
    assert isinstance(answer, ClusterSpec) or all(problem.message for problem in answer.problems)


@calm
@given(st.integers(0, len(WHOLE)), st.integers(0, 40), st.text(max_size=5))
def test_a_good_file_with_a_piece_replaced(start: int, length: int, piece: str) -> None:
    answer = answers(WHOLE[:start] + piece + WHOLE[start + length :])
    assert isinstance(answer, ClusterSpec) or answer.problems
