"""What every test needs: a Ctrl-C that works in the background too, examples that may take long, and no hidden skip.

Tests that share something made once for their module run one after another on one worker; all others run anywhere.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests import skips

if TYPE_CHECKING:
    from collections.abc import Generator

# A shell starts background jobs with SIGINT ignored, and so would be every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

LONGEST = (
    *("test_bench_selftest", "test_bench_compare", "test_bench_figures", "test_bench", "test_bench_cuts"),
    *("test_bench_ends", "test_bench_container", "test_playbooks", "test_demo", "test_guest_faults", "test_gpu_kinds"),
)

# How long an example takes says more about the machine's load than about the code.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


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


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if shares_a_fixture(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    # What takes long begins first, so that nothing of it is left for the end.
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))


def shares_a_fixture(item: pytest.Item) -> bool:
    """Return whether something is made once for the tests of this one's module."""
    if not isinstance(item, pytest.Function):
        return False
    return any(each[-1].scope == "module" for each in item._fixtureinfo.name2fixturedefs.values())
