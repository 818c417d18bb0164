"""Runs rings of checks one after another, and tells at the end how long each took and which tests took longest.

What the later rings need is built meanwhile, behind what runs in front. Most tests of the labs and of the command wait:
for guests that boot, for links of a known rate. So there are more workers for them than cores.

python scripts/rings.py            # all that a change has to pass, which is `make test`
python scripts/rings.py unit e2e   # these

Tests of the labs and of the command are at the mercy of the machine. The few of them that fail are tried once more,
alone, and those that pass then are named at the end as unsteady: each is a defect to be found, of a test or of vsml,
but no reason to refuse a change that has nothing to do with it. With VSML_TRIES=1 nothing is tried twice.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parents[1]
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
WAITING = min(3 * CORES, 12)
SLOWEST = 20
LOG = "prepare.log"
COVERAGE = ("--cov", "--cov-report=term:skip-covered")
MAKE = ("lint", "types", "layers", "go-test")
PYTEST = {
    "unit": ("tests/unit", "-n", str(CORES)),
    "labs": ("tests/contract", "tests/integration", "tests/peers", "-n", str(WAITING), "--dist", "loadscope"),
    "e2e": (
        "tests/e2e",
        "-m",
        "not long and not faults and not alone",
        "-n",
        str(WAITING),
        "--dist",
        "loadscope",
        "--no-loadscope-reorder",
    ),
    # One after another: whose figures neighbours would falsify.
    "alone": ("tests/e2e", "-m", "alone and not long"),
}
LONG = {
    "coverage": ("tests/unit", "-n", str(CORES), *COVERAGE),  # tracing takes as long as the tests (Python 3.11)
    "faults": (
        "tests/faults",
        "tests/e2e/test_bench_ends.py",
        "-m",
        "faults",
        "-n",
        str(WAITING),
        "--dist",
        "worksteal",  # each test has a share of the positions, and any worker's lab will do
    ),
    "long": ("tests", "-m", "long"),  # one after another: its figures need the machine for themselves
}
LONG_MAKE = ("fuzz",)
AGAIN = {"labs", "e2e"}
FEW = 5  # more than these are no accident
LAST_FAILED = ("--last-failed", "--last-failed-no-failures=none")
TESTS_FAILED = 1  # pytest's exit status, and no other trouble's
NEED_BUILDS = {"labs", "e2e", "alone", "faults", "long"}


@dataclass(slots=True)
class Ring:
    """What one ring came to."""

    name: str
    status: int
    seconds: float
    tests: dict[str, float] = field(default_factory=dict)  # seconds by test, set-up included
    unsteady: list[str] = field(default_factory=list)  # failed, and passed when tried again


def main(wanted: Sequence[str]) -> int:
    names = [*wanted] or [*MAKE, *PYTEST]
    known = (*MAKE, *PYTEST, *LONG, *LONG_MAKE)
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.stderr.write(f"rings: there is no {unknown[0]}; there are {', '.join(known)}\n")
        return 2
    done: list[Ring] = []
    with tempfile.TemporaryDirectory() as folder:
        builds = prepare(Path(folder)) if NEED_BUILDS & {*names} else None
        try:
            for name in names:
                done.append(run(name, Path(folder)))
                if done[-1].status:
                    break
        finally:
            if builds is not None:
                end(builds)
                sys.stdout.write((Path(folder) / LOG).read_text(errors="replace"))
            notify(done, [name for name in names if name not in {ring.name for ring in done}])
    return done[-1].status


def prepare(folder: Path) -> subprocess.Popen[bytes]:
    """Start what builds the programs that tests need; a test that comes before waits for its own, by a lock."""
    with (folder / LOG).open("wb") as log:
        return subprocess.Popen(  # noqa: S603 - our own script
            [ROOT / "scripts" / "prepare"],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def end(builds: subprocess.Popen[bytes]) -> None:
    """End the builds, and what they have started."""
    with suppress(ProcessLookupError):
        os.killpg(builds.pid, signal.SIGTERM)
    builds.wait()


def run(name: str, folder: Path) -> Ring:
    report = folder / f"{name}.xml"
    began = time.monotonic()
    status = execute(command(name, report))
    failed = [*failures(report)]
    if may_try_again(name, status, failed):
        status = execute([*command(name, folder / f"{name}-again.xml"), "-n", "0", *LAST_FAILED])
    return Ring(name, status, time.monotonic() - began, dict(durations(report)), [] if status else failed)


def execute(words: Sequence[str]) -> int:
    return subprocess.run(words, cwd=ROOT, check=False).returncode  # noqa: S603 - our own


def may_try_again(name: str, status: int, failed: Sequence[str]) -> bool:
    return (
        name in AGAIN and status == TESTS_FAILED and 0 < len(failed) <= FEW and os.environ.get("VSML_TRIES", "2") != "1"
    )


def command(name: str, report: Path) -> list[str]:
    if name in {*MAKE, *LONG_MAKE}:
        return ["make", "--no-print-directory", name]
    words = (PYTEST | LONG)[name]
    remaining = ["-o", "junit_duration_report=total", f"--junitxml={report}"]
    return [sys.executable, "-m", "pytest", "-q", "--no-header", *words, *remaining]


def durations(report: Path) -> Iterator[tuple[str, float]]:
    for case in cases(report):
        yield test_name(case), float(case.get("time", "0"))


def failures(report: Path) -> Iterator[str]:
    for case in cases(report):
        if case.find("failure") is not None or case.find("error") is not None:
            yield test_name(case)


def cases(report: Path) -> Iterator[ET.Element]:
    if report.exists():
        yield from ET.parse(report).iter("testcase")  # noqa: S314 - written by pytest just now


def test_name(case: ET.Element) -> str:
    return f"{case.get('classname')}::{case.get('name')}"


def notify(done: Sequence[Ring], left: Sequence[str]) -> None:
    tests = {name: seconds for ring in done for name, seconds in ring.tests.items()}
    slowest = sorted(tests.items(), key=lambda each: -each[1])[:SLOWEST]
    lines = ["", f"The {len(slowest)} slowest tests:", *(f"{seconds:8.1f} s  {name}" for name, seconds in slowest)]
    lines += ["", "Rings:", *map(row, done), *(f"{name:10} not run" for name in left)]
    lines += [
        f"{ring.name:10} UNSTEADY, passed only when tried again: {name}" for ring in done for name in ring.unsteady
    ]
    total = sum(ring.seconds for ring in done)
    lines.append(f"{'together':10} {minutes(total)}")
    print("\n".join(lines), flush=True)


def row(ring: Ring) -> str:
    counted = f"{len(ring.tests)} tests" if ring.tests else ""
    return f"{ring.name:10} {minutes(ring.seconds)}  {'failed' if ring.status else 'passed'}  {counted}".rstrip()


def minutes(seconds: float) -> str:
    return f"{int(seconds) // 60:3}:{int(seconds) % 60:02} min"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
