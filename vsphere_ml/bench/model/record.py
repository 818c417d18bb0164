"""What one launch of a benchmark left behind: the values of the document `vsml.bench/3`.

A record is a folder with one such document a launch (`store.py` reads and writes it). Field names are the keys of the
JSON, so units stand in them: `_s` seconds, `_bytes`, `_bytes_per_s`, `_bits_per_s`. 1 GB is 10⁹ bytes.
docs/reference/bench.schema.json is made from these.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - the reader looks at the fields' types
from dataclasses import field
from enum import StrEnum

from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.core.diagnostics import Diagnostic  # noqa: TC001 - the reader looks at the fields' types
from vsphere_ml.lazy_dataclass import dataclass

SCHEMA = "vsml.bench/3"
VSML = "vsml"  # the source of what was not imported


class Arithmetic(StrEnum):
    """What a training computes in. Mixed precision is as Keras calls its policies: weights stay in fp32."""

    FP32 = "fp32"
    MIXED_FLOAT16 = "mixed_float16"
    MIXED_BFLOAT16 = "mixed_bfloat16"


class Workload(StrEnum):
    """What ran."""

    TRAIN = "train"
    ALLREDUCE = "allreduce"
    LINK = "link"
    MEMCPY = "memcpy"
    NCCL = "nccl"
    SCRIPT = "script"
    REGIMES = "regimes"


WITHOUT_RANKS = frozenset({Workload.LINK, Workload.MEMCPY})  # a tool of its own in each guest, and no job


class Outcome(StrEnum):
    """How a launch ended. Only a complete one is measured."""

    COMPLETE = "complete"
    FAILED = "failed"
    REFUSED = "refused"  # not begun: something is missing in the guests; the first diagnostic has the error's code
    INVALID = "invalid"  # it ran, and a proof failed: ranks out of sync, on the wrong hosts, by the wrong path
    CUT = "cut"


class Verdict(StrEnum):
    """Whether a proof holds."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """All that was asked for. Launches with equal configurations are repeats of each other; others are not compared."""

    workload: Workload
    nodes: int
    ranks: int
    transport: Transport = Transport.TCP
    launcher: str = ""  # horovodrun, mpirun, import
    backend: str = ""  # what carries the collectives: gloo, mpi, nccl
    model: str = ""
    parameters: int | None = None
    batch: int | None = None  # samples a rank takes in one step
    precision: str = "fp32"  # of the arithmetic; `Arithmetic` where vsml measured it
    gradients: str = "fp32"  # as they go over the wire; fp16 with Horovod's compression
    options: Mapping[str, str] = field(default_factory=dict)  # whatever else changes the result


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The cluster as it was when the launch began."""

    name: str
    vcenter: str = ""  # its name, version and build
    plan_digest: str = ""  # of the spec in the cluster file, as `vsml plan --save` has it
    playbook_digests: Mapping[str, str] = field(default_factory=dict)  # SHA-256 by name
    vm_settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by node, as read from vCenter


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What ran it."""

    versions: Mapping[str, str] = field(default_factory=dict)  # vsml, kernel, driver, CUDA, NCCL, MPI, Horovod, ...
    variables: Mapping[str, str] = field(default_factory=dict)  # those that matter; never a secret
    command: tuple[str, ...] = ()  # the launcher's, in the first node's guest
    invocation: tuple[str, ...] = ()  # the command line of vsml
    git_commit: str = ""  # of the folder that the cluster file lies in
    container: str = ""  # digest of the image the ranks ran in; empty: the guests' own runtime
    timezone: str = ""  # of the machine vsml ran on; the record's times are UTC
    clocks: Mapping[str, str] = field(default_factory=dict)  # of the GPUs under load, by node: what the device said


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A node's way to the others."""

    line_rate_bits_per_s: float | None = None  # of one NIC
    line_rate_source: str = ""  # where the rate comes from, or why it is unknown
    nics: int = 1
    interface: str = ""  # that ranks talk over; RDMA's own ports are among the variables
    mtu_bytes: int | None = None  # of the Ethernet link
    congestion_control: str = ""  # of TCP in the guests, as their kernel names it: cubic, bbr, ...
    calibrated_bytes_per_s: float | None = None  # what iperf3 or ib_write_bw got through just before, all nodes at once
    calibrated_after_bytes_per_s: float | None = None  # and after the last launch of the series


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a rank ran, by its own log; `host` comes from vCenter."""

    rank: int
    local_rank: int
    node: str
    hostname: str
    host: str = ""
    device: str = ""  # a GPU's UUID, or cpu
    nic: str = ""
    numa_node: int | None = None  # of the host, that the VM's GPU or NIC is attached to
    gpu_profile: str = ""  # of the vGPU
    locality: str = ""  # how far GPU and NIC are apart on the host


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSteps:
    """Training steps without exchange, on a copy of the model: `compute_s[rank][local step]`, and so the others."""

    period_s: tuple[tuple[float, ...], ...]  # from the step before to the next one
    compute_s: tuple[tuple[float, ...], ...]
    exchange_s: tuple[tuple[float, ...], ...] = ()  # of the exchange alone, begun by all ranks together


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Times of training steps, rank by rank, the warm-up included: `step_s[rank][step]`.

    With `wall_s` a time in `step_s` is a period: from the end of the step before to the end of this one, on one clock
    that never goes back. A period is the wait for input, the work, and a rest; work is computing and exchanging.
    """

    step_s: tuple[tuple[float, ...], ...]
    input_s: tuple[tuple[float, ...], ...] = ()  # the wait for the step's batch
    work_s: tuple[tuple[float, ...], ...] = ()  # the step itself: how much of it is exchange, local steps show
    # Time of the rank's own work in each step, without waiting for others; empty when the workload does not measure it.
    # Ranks that train in step all have the same step times, so only this or local steps can name a straggler.
    compute_s: tuple[tuple[float, ...], ...] = ()
    loss: tuple[tuple[float | None, ...], ...] = ()  # of the rank's own samples; None where it was no number
    wall_s: tuple[float, ...] = ()  # by rank, from the first step's begin to the last one's end, local steps included
    local: LocalSteps | None = None
    samples_per_step: int | None = None  # of one rank
    averaged: bool = False  # each time is the mean of several steps, as a tool printed it


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """How an elastic job went on with one number of ranks, as the first rank that reached the end saw it.

    A step that was made again after a loss is in both worlds.
    """

    ranks: int
    first_step: int  # from 0; the last commit before what was lost
    step_s: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """One message size of an all-reduce sweep; each repeat's time is that of its slowest rank."""

    size_bytes: int
    time_s: tuple[float, ...]
    iterations_s: tuple[float, ...] = ()  # of a tool that prints a mean and them; measured in another way than the mean


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuContention:
    """What a node's CPUs were kept from while a launch ran, as shares of their time; None where unknown."""

    node: str
    steal: float | None = None  # /proc/stat in the guest: its CPUs wanted to run and the hypervisor did not run them
    pressure: float | None = None  # /proc/pressure/cpu in the guest, `some`: something in it waited for a CPU
    ready: float | None = None  # vCenter's cpu.ready: a virtual CPU waited for a physical one
    costop: float | None = None  # vCenter's cpu.costop: it waited for the VM's other CPUs


class TrafficVerdict(StrEnum):
    """What the bytes that a node sent say of an exchange."""

    EXPECTED = "expected"
    NOTHING = "nothing"  # no exchange
    OTHER_INTERFACE = "other-interface"
    TWICE = "twice"  # averaged twice
    HALF = "half"  # compressed
    FEWER_RANKS = "fewer-ranks"  # a communicator of some of the ranks
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficCount:
    """What one node's adapter sent during the exchanges of one size, against what their algorithm must send.

    For all-reduces that is a ring over all ranks. Both with Ethernet, IP and TCP headers, those of as many packets as
    the adapter counted.
    """

    node: str
    interface: str
    size_bytes: int
    exchanges: int
    expected_bytes: int
    counted_bytes: int
    ratio: float  # counted payload / expected payload; where nothing is expected, / the size of the exchanges
    verdict: TrafficVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class RegimeResult:
    """What a training by one regime came to, beside its steps' times."""

    size_bytes: int  # of the gradients that a worker exchanges in a step
    samples: int  # of all workers
    loss: float | None  # of held-out samples, by the weights after so many; None where it was no number
    behind: float  # how many other pushes the server had taken since a worker pulled what it computed on; the mean


class Marking(StrEnum):
    """Whether RDMA packets were in the priority that hosts and switches keep lossless."""

    MARKED = "marked"
    UNMARKED = "unmarked"
    NOT_KNOWN = "not-known"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityCount:
    """What a node's RDMA port sent during a launch, by the port's counters of priorities."""

    node: str
    interface: str
    priority: int  # that is to be lossless, by the cluster file
    priority_bytes: int
    counted_bytes: int  # in all priorities
    rdma_bytes: int  # by the RDMA device's own counter
    verdict: Marking


class LinkLoad(StrEnum):
    """What else went between the nodes while a link was measured."""

    ALONE = "alone"  # nothing: one pair of nodes after the other
    RING = "ring"  # every node sent to the next at the same time, by all its rails, as the rings of a collective do


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkResult:
    """What a point-to-point tool measured between two nodes."""

    tool: str  # iperf3, ib_write_bw, ib_read_bw, ib_send_bw
    sender: str
    receiver: str
    bytes_per_s: float
    message_bytes: int | None = None
    gpu_memory: bool = False
    device: str = ""  # the sender's RDMA port, mlx5_0:1, or its interface where several were measured
    load: LinkLoad = LinkLoad.ALONE
    streams: int | None = None  # TCP connections at once
    line_rate_bits_per_s: float | None = None  # of the slower end
    rdma_mtu_bytes: int | None = None  # payload of a full RDMA packet
    infiniband: bool = False  # over InfiniBand's own frames and not RoCE's


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Something a result is worthless without: in_sync, placement, path, clean."""

    name: str
    verdict: Verdict
    evidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """What a channel between two ranks went by, read from the run's own log."""

    channel: str
    sender: str
    receiver: str
    carrier: str  # NET/IB/GDRDMA, NET/IB, NET/Socket, P2P, SHM, gloo/tcp, ...
    evidence: str  # the line of the log
    host: str = ""  # that logged it
    other_host: str = ""  # of the other end, where the log has it
    nic: str = ""  # device, port and link layer, such as mlx5_0:1/RoCE
    cut: bool = False  # the line ends before it says whether GPUDirect is used


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How a launch was measured. How its steps are counted is the reader's, and stands in each report."""

    seed: int | None = None
    data: str = ""  # synthetic or real, and where from
    synchronised: str = ""  # how ranks begin a measurement together
    ended: str = ""  # why there are no more steps
    repeats_ci_target: float | None = None  # share; launches were to end once they agree within this; None: never


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One launch of one configuration."""

    run_id: str  # the mark its processes carried
    launch: int = 1  # 1 for the first launch of its configuration
    lab: bool = False  # on lab guests: nothing in it is a claim about hardware
    synthetic: bool = False  # computed by a generator, never measured
    source: str = VSML  # another tool's name when its output was imported
    started: str  # RFC 3339, UTC
    ended: str
    outcome: Outcome
    reason: str = ""  # why it is not complete
    configuration: Configuration
    cluster: Cluster | None = None
    environment: Environment = field(default_factory=Environment)
    method: Method = field(default_factory=Method)
    link: Link = field(default_factory=Link)
    placement: tuple[Place, ...] = ()
    steps: Steps | None = None
    worlds: tuple[World, ...] = ()  # of an elastic job, in time
    sweep: tuple[SweepPoint, ...] = ()
    link_results: tuple[LinkResult, ...] = ()
    traffic: tuple[TrafficCount, ...] = ()  # by node and message size
    priorities: tuple[PriorityCount, ...] = ()  # by node and RDMA port
    regime: RegimeResult | None = None  # of the workload `regimes`
    contention: tuple[CpuContention, ...] = ()  # by node
    proofs: tuple[Proof, ...] = ()
    paths: tuple[Path, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    def proof(self, name: str) -> Verdict:
        """Return whether this proof holds; unknown when nobody tried it."""
        return next((each.verdict for each in self.proofs if each.name == name), Verdict.UNKNOWN)
