"""What a launcher's log gives away.

The lines are from real logs of Horovod 0.28.1, OpenSSH 9.2, Open MPI 4.1.8 and 5.0.11 with UCX 1.18.1 and 1.20.1.

Those of NCCL are written by hand in the three forms that its net_ib.cc has had. That of a missing driver is of
nccl-tests 2.19.6, built with CUDA 13.0, on a machine without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.bench.jobs import job
from vsphere_ml.bench.launch import causes
from vsphere_ml.bench.proof import evidence

if TYPE_CHECKING:
    from tests.golden import Golden

LOG = """\
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
[0]<stderr>:terminate called after throwing an instance of 'gloo::IoException'
[0]<stderr>:  what():  [gloo/transport/tcp/pair.cc:799] connect [127.0.1.1]:14256: Connection refused
Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
    _run(args)
    ^^^^^^^^^^
RuntimeError: Horovod detected that one or more processes exited with non-zero status, thus causing the job to be
Process name: 0
Exit code: 134
"""


def test_a_cause_that_the_log_shows_is_told_with_what_to_type(golden: Golden) -> None:
    error = evidence.ended_badly(job(), 1, LOG)
    assert (error.code, error.target) == ("bench.launch-failed", "node-1")
    golden(error)
    assert not any("Traceback" in line or "File" in line or "absl" in line for line in error.details)


@pytest.mark.parametrize(
    "line",
    [
        "Host key verification failed.",
        "root@10.0.0.12: Permission denied (publickey).",
        "ssh: Could not resolve hostname node-2: Temporary failure in name resolution",
        "ImportError: libmpi.so.40: cannot open shared object file: No such file or directory",
        "[1795803089.584788] [vm:31618:0]     ucp_context.c:1381 UCX  WARN  transport 'rc' is not available",
        "[vm:31576] PML ucx cannot be selected",
        "NCCL WARN NET/IB : Got completion from peer 10.1.0.12<331> with error 12, opcode 0",
        "NCCL WARN NET/IB: Got completion from peer 10.1.0.12<331> with status=4 opcode=0",
        "NCCL WARN NET/IB: Got completion from peer 10.1.0.12 with status=IBV_WC_RETRY_EXC_ERR(12)",
        "what():  [/tmp/horovod/common/gloo/http_store.cc:54] Wait timeout after 30 seconds for key(s): 1. You may",
        "vm: Test CUDA failure util.cu:674 'CUDA driver version is insufficient for CUDA runtime version'",
        "init.cc:426 NCCL WARN Cuda failure 'operation not supported'",
        "alloc.h:228 NCCL WARN Cuda failure 801 'operation not supported'",
        "Invalid number of GPUs: 2 requested but only 1 were found.",
        "NCCL WARN Call to ibv_reg_mr failed with error Bad address",
    ],
)
def test_each_cause_is_known_by_its_line(line: str, golden: Golden) -> None:
    found = causes.find_cause(f"noise\n{line}\n")
    assert found is not None
    golden(found.why)


def test_a_status_that_is_not_nccls_is_no_cause() -> None:
    assert causes.find_cause("prterun: error 12\nstatus=4\n") is None


def test_a_log_that_gives_nothing_away_is_shown_by_its_last_lines(golden: Golden) -> None:
    error = evidence.ended_badly(job(), 124, "the last word\n")
    assert (error.code, error.target) == ("bench.launch-failed", "node-1")
    golden(error)
