"""Whatever a guest, a host's tools or a rank print: it is read, counts as missing, or is refused in words."""

from __future__ import annotations

import json
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from tests.fuzz.mutation import inputs
from tests.unit.bench.jobs import PEERS, trained
from tests.unit.bench.probe.test_link import GOOD
from tests.unit.core.tools import test_mft, test_nvidia_smi
from tests.unit.guest.cluster import NODE_1
from tests.unit.guest.facts.test_judge import RECORDED, devinfo, gpus_matrix, matrix
from tests.unit.guest.steps.test_step_cases import CASES, case_of, facts_of, seen_of, step_of
from vsphere_ml.bench.model import rank_log
from vsphere_ml.bench.probe import link, nccl_tests
from vsphere_ml.core.errors import BenchError, GuestError
from vsphere_ml.core.hosts import saved_state
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.tools import mft, nvidia_smi
from vsphere_ml.guest.facts import judge
from vsphere_ml.guest.steps.network import rdma
from vsphere_ml.vsphere.changes import lock

if TYPE_CHECKING:
    from collections.abc import Callable

_JUDGES = (
    *(judge.gpus, judge.branch, judge.licence, judge.ecc, judge.clocks, judge.distance, judge.nvlink, judge.gpudirect),
    *(
        judge.container,
        judge.ats,
        judge.gid,
        judge.memlock,
        judge.time,
        judge.mesh,
        partial(judge.rdma_device, mtu=9000),
    ),
)
_PRINTED = (
    *(devinfo("PORT_ACTIVE", 4096), matrix("PIX"), gpus_matrix("NV12")),
    "grid_a100-40c, Licensed (Expiry: 2026-12-31 0:0:0 GMT)\n[N/A], 0, 525.105.17\n",
    "0x1 mlx5_0 3 0000:0000:0000:0000:0000:ffff:c0a8:000b RoCE v2 eth1\nunlimited\nyes\n",
    '[{"ifname": "eth1", "mtu": 9000, "addr_info": [{"family": "inet", "local": "10.0.0.1", "prefixlen": 24}]}]',
    *(test_mft.STATUS, test_mft.VMKLINUX, test_mft.THREE, test_mft.ONE, test_mft.TWO_OF_ONE),
    *(test_nvidia_smi.NUMBERED, test_nvidia_smi.NAMED, test_nvidia_smi.ALONE),
    "00000000:3B:00.0, Enabled, Disabled\n",
    *(trained(1), GOOD, lock.Holder(user="a", host="b", pid=1, where="", since="", beat="").text()),
    json.dumps({"v": saved_state.VERSION, "by": "c", "boot": "b", "in": 1, "was": {"atsSupport": "FALSE"}}),
    *((RECORDED / f"all_reduce_perf-over-mpi.{kind}").read_text() for kind in ("txt", "json")),
)
_STEPS = tuple((case_of(path), read) for path in CASES for read in case_of(path)["look"])
_SEEN = tuple((step_of(case), facts_of(case), seen_of(case, read)) for case, read in _STEPS)
SAMPLES = tuple(
    text.encode() for text in dict.fromkeys((*_PRINTED, *(each.out for _, _, seen in _SEEN for each in seen.values())))
)
_PROGRAMS: tuple[Callable[[str], object], ...] = (
    *(mft.devices, mft.value, mft.guest_ports, nvidia_smi.parse_topology, nvidia_smi.gpu_to_nic, nvidia_smi.modes),
    *(lambda text: mft.number(text, "NUM_OF_VFS"), lambda text: rdma.link(CommandAnswer(0, text))),
    *(saved_state.parse, lock.parse, lambda text: rank_log.read({"node-1": text})),
    *(lambda text: link.parse_iperf3(text, *PEERS), lambda text: nccl_tests.parse_result(text, "", 2)),
    lambda text: nccl_tests.parse_result("", text, 2),
)


def run(seconds: float, seed: int, most: int | None = None) -> int:
    """Try inputs for so many seconds, or so many of them; return how many."""
    count, chance = 0, Random(seed)
    for content in inputs(SAMPLES, seconds, seed, most):
        text = content.decode(errors="replace")
        try:
            _read(text, chance)
        except (BenchError, GuestError) as error:
            if not error.code or not error.message:
                raise AssertionError(content) from error
        except Exception as error:
            raise AssertionError(content) from error
        count += 1
    return count


def _read(text: str, chance: Random) -> None:
    """Give a text to a step, to every judgement and to one program's reader."""
    answer = CommandAnswer(chance.choice((0, 0, 1)), text)
    for each in _JUDGES:
        each(answer, NODE_1)
    step, facts, seen = chance.choice(_SEEN)
    if seen:
        step.drift(seen | {chance.choice([*seen]): answer}, facts)
    chance.choice(_PROGRAMS)(text)
