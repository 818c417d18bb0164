"""What a launcher's log says, between whatever mpirun and the ranks print."""

from __future__ import annotations

import json

import pytest

from vsphere_ml.bench.launch.pod_log import SCHEMA, parse_pod_log
from vsphere_ml.core.errors import BenchError
from vsphere_ml.core.model.guest import CommandAnswer


def line(**values: object) -> str:
    return json.dumps({"schema": SCHEMA, **values})


def test_answers_ranks_and_the_status_are_read_and_the_rest_is_the_log() -> None:
    text = "\n".join([
        "mpirun",
        line(kind="survey", host="w-0", answers={"kernel": [0, "6.1\n"], "iperf3": [1, ""]}),
        '{"schema": "somebody else\'s"}',
        line(kind="ranks", host="w-0", text='{"kind": "place"}\n'),
        line(kind="files", host="w-0", archive="aGVsbG8="),
        line(kind="ended", status=0),
    ])  # fmt: skip
    log = parse_pod_log(text)
    assert log.answers == {"w-0": {"kernel": CommandAnswer(0, "6.1\n"), "iperf3": CommandAnswer(1, "")}}
    assert (log.ranks, log.status) == ({"w-0": '{"kind": "place"}\n'}, 0)
    assert log.files == {"w-0": "aGVsbG8="}
    assert log.printed.splitlines() == ["mpirun", '{"schema": "somebody else\'s"}']


def test_a_log_that_was_cut_has_no_status() -> None:
    log = parse_pod_log("mpirun\n" + line(kind="ended", status=1)[:-3])
    assert log.status is None
    assert log.printed.startswith("mpirun\n")


@pytest.mark.parametrize("wrong", [line(kind="ended"), line(kind="survey", host="w", answers=[1])])
def test_a_line_that_is_not_what_it_should_be_is_an_error(wrong: str) -> None:
    with pytest.raises(BenchError) as raised:
        parse_pod_log(wrong)
    assert raised.value.code == "bench.bad-line"
