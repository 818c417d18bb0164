"""What every test needs: a Ctrl-C that works in the background too, examples that may take long, and no hidden skip.

Tests that share something made once for their module run one after another on one worker; all others run anywhere.
"""

from __future__ import annotations

import json
import signal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from xdist.scheduler.loadscope import LoadScopeScheduling

from tests import skips
from tests.golden import golden
from vsphere_ml.cli.views.layout import envelope

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

# A shell starts background jobs with SIGINT ignored, and so would be every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

__all__ = ["golden"]

ROOT = Path(__file__).parents[1]
LONGEST = (
    *("test_bench_selftest", "test_bench_compare", "test_bench_figures", "test_bench", "test_bench_cuts"),
    *("test_bench_ends", "test_bench_container", "test_playbooks", "test_demo", "test_guest_faults", "test_gpu_kinds"),
)

# How long an example takes says more about the machine's load than about the code.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--renew-golden", action="store_true", help="write what tests render now into tests/golden")


@pytest.fixture(scope="session", autouse=True)
def _answers_keep_to_their_schema() -> Iterator[None]:
    """Hold each answer that a command writes in this process against docs/reference/answers.schema.json."""
    with pytest.MonkeyPatch.context() as patch:
        written = envelope.text

        def checked(document: envelope.Document) -> str:
            from tests.schemas.check import check_answer  # noqa: PLC0415 - most tests write none

            text = written(document)
            check_answer(json.loads(text))
            return text

        patch.setattr(envelope, "text", checked)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    skips.judge(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    skips.judge(report)
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # What takes long begins first, so that nothing of it is left for the end.
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))


class ByModule(LoadScopeScheduling):  # type: ignore[misc] # untyped
    """Gives a module to one worker, or each of its tests to any where they share nothing.

    pytest-xdist 3.8 has `--dist loadgroup` for that, whose groups pytest 9.2 does not let it see.
    """

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return nodeid if apart(module) else module


@cache
def apart(module: str) -> bool:
    """Return whether each test of a module has what it needs for itself."""
    return module.startswith("tests/e2e/") and 'scope="module"' not in (ROOT / module).read_text()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    return ByModule(config, log) if config.getvalue("dist") == "loadscope" else None
