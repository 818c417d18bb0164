"""What the launcher of an MPIJob printed, as values: what workers have, what ranks left, and how mpirun ended."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from vsphere_ml.core import json_text
from vsphere_ml.core.errors import BenchError
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA = "vsml.bench.pod/1"
LAUNCHER = ""  # the host that stands for the launcher's own pod


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLog:
    """A launcher's log. `status` is mpirun's, None where the log ends before it did; hosts as their file has them."""

    answers: Mapping[str, Mapping[str, CommandAnswer]] = field(default_factory=dict)  # by host, to the survey's probes
    ranks: Mapping[str, str] = field(default_factory=dict)  # lines of all ranks, by host
    files: Mapping[str, str] = field(default_factory=dict)  # archives in base64, by host; empty where one is too large
    status: int | None = None
    printed: str = ""  # what is no line of ours


def parse_pod_log(text: str) -> PodLog:
    """Return the log as a value; BenchError `bench.bad-line` when a line of ours is not what it should be."""
    answers: dict[str, Mapping[str, CommandAnswer]] = {}
    ranks: dict[str, str] = {}
    files: dict[str, str] = {}
    status: int | None = None
    printed: list[str] = []
    for line in text.splitlines():
        value = _parse_line(line)
        if value is None:
            printed.append(line)
            continue
        try:
            match value["kind"]:
                case "survey":
                    answers[str(value["host"])] = _parse_answers(value["answers"])
                case "ranks":
                    ranks[str(value["host"])] = str(value["text"])
                case "files":
                    files[str(value["host"])] = str(value["archive"])
                case "ended":
                    status = int(value["status"])
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise BenchError(
                f"unexpected output of the launcher: {type(error).__name__}: {error}",
                code="bench.bad-line",
                target="launcher",
                details=(line[:200],),
            ) from error
    return PodLog(answers=answers, ranks=ranks, files=files, status=status, printed="\n".join(printed))


def _parse_line(line: str) -> Mapping[str, Any] | None:
    if SCHEMA not in line:
        return None
    try:
        value = json_text.parse(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) and value.get("schema") == SCHEMA and "kind" in value else None


def _parse_answers(answers: Mapping[str, tuple[int, str]]) -> dict[str, CommandAnswer]:
    return {name: CommandAnswer(status=int(status), out=str(out)) for name, (status, out) in answers.items()}
