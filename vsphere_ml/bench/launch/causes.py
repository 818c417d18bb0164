"""What a launcher's log gives away about why it failed: patterns as data, each with what to do about it."""

from __future__ import annotations

import re

from vsphere_ml.lazy_dataclass import dataclass

LAST_LINES = 20
# Lines that explain nothing: TensorFlow's greetings, and what horovodrun's own Python says when a rank fails.
_NOISE = re.compile(
    r"oneDNN|absl::InitializeLog|cpu_feature_guard|TF-TRT|rebuild TensorFlow|port\.cc|Process \d+ exit with status"
    r"|^Terminating remaining workers|^RuntimeError: Horovod detected|^Process name: |^Exit code: |^-+$"
)
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\):\n(?:[ ].*\n)*", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cause:
    """A line that means something, and what to type; `{file}` stands where a command takes the cluster file."""

    pattern: str
    why: str
    hint: str

    def advise(self, file: str = "") -> str:
        """Return what to type; `file` is the option that names the cluster file, empty for the default one."""
        return self.hint.replace(" {file}", f" {file}".rstrip())


CAUSES = (
    _Cause(
        pattern=r"connect \[127\.\d+\.\d+\.\d+\]",
        why="a node's own name leads to a loopback address, which no other rank can reach",
        hint='`vsml configure {file}` with the playbook "base", whose hosts file fixes it',
    ),
    _Cause(
        pattern=r"Host key verification failed",
        why="a node's SSH host key is not the one that is pinned in the mesh",
        hint='`vsml configure {file}` with the playbook "mpi"',
    ),
    _Cause(
        pattern=r"Permission denied \(publickey",
        why="the nodes do not let each other in by SSH",
        hint='`vsml configure {file}` with the playbook "mpi"',
    ),
    _Cause(
        pattern=r"Could not resolve hostname|Name or service not known",
        why="a node does not know another one's name",
        hint='`vsml configure {file}` with the playbook "base"',
    ),
    _Cause(
        pattern=r"libmpi\S*\.so\S*: cannot open shared object",
        why="Horovod was built with MPI, and the MPI library is not found",
        hint='name its mpirun: [guest] settings = { mpirun = "/opt/openmpi/bin/mpirun" }',
    ),
    _Cause(
        pattern=r"No space left on device",
        why="a guest's disk or memory disk is full",
        hint="`vsml run {file} -- df -h / /dev/shm /var/tmp`",
    ),
    _Cause(
        pattern=r"CUDA driver version is insufficient for CUDA runtime version",
        why="no NVIDIA driver answers where the ranks run, or one that is older than the CUDA they were built with",
        hint="`vsml verify {file}`, its facts of GPUs and driver; then programs or an image of an older CUDA",
    ),
    _Cause(
        # NCCL makes a memory pool for each communicator since 2.23.4 (src/init.cc), whether or not the device has any:
        # NVIDIA/nccl issue 2101, of VMs with H100XM-80C and NCCL 2.27.5.
        pattern=r"NCCL WARN Cuda failure (?:801 )?'operation not supported'",
        why="NCCL from 2.23 on wants CUDA's memory pools, which a vGPU without unified memory does not have",
        hint='[nodes.extra_config] "pciPassthru0.cfg.enable_uvm" = "1", for each vGPU that is a whole GPU or MIG '
        "instance; or an older NCCL",
    ),
    _Cause(
        pattern=r"CUDA_ERROR_OUT_OF_MEMORY|failed to allocate .* memory|ResourceExhaustedError|OOM when allocating",
        why="a GPU's memory is too small for the model and batch",
        hint="--batch with a smaller number",
    ),
    _Cause(
        pattern=r"IBV_WC_LOC_PROT_ERR|Got completion .*with (?:error |status=)4\b",
        why="an RDMA device was refused the GPU's memory, as PCIe ACS does when it redirects what goes between devices",
        hint="`vsml verify {file}`, its facts ATS and the way from GPU to NIC; or --transport roce, without GPUDirect",
    ),
    _Cause(
        pattern=r"UCX +WARN +transport 'rc' is not available|PML ucx cannot be selected",
        why="UCX finds no RDMA transport: its part for verbs, or the library of the device, is missing there",
        hint='`vsml configure {file}` with the playbook "roce"; an MPI whose UCX has libuct_ib; --transport tcp',
    ),
    _Cause(
        pattern=r"ibv_reg_(?:dmabuf_)?mr\S* failed",
        why="memory could not be registered with the RDMA device",
        hint='`vsml configure {file}` with the playbook "roce", whose limits unlock memory; '
        "`vsml verify {file}` for nvidia-peermem",
    ),
    _Cause(
        pattern=r"IBV_WC_RETRY_EXC_ERR|Got completion .*with (?:error |status=)12\b|ibv_modify_qp\S* failed",
        why="RDMA packets do not arrive: a GID, an MTU or the switches' priority flow control differs on the way",
        hint="`vsml verify {file}`, its facts RDMA and mesh; `vsml bench {file} --workload link`",
    ),
    _Cause(
        pattern=r"Invalid number of GPUs: \d+ requested",
        why="nccl-tests counts more ranks on a host than it has GPUs; guests of one host name are one host to it",
        hint="`vsml run {file} -- hostname`; or --ranks-per-node with as many as a node has GPUs",
    ),
    _Cause(
        pattern=r"Not enough slots|not enough slots available",
        why="the launcher counts fewer slots than ranks",
        hint="--ranks-per-node with the number of ranks that each node is to run",
    ),
    _Cause(
        pattern=r"http_store\.cc:\d+\] Wait timeout",
        why="a rank waited for another one to begin, and it did not in time: it is slow, or has ended",
        hint="`vsml run {file} -- uptime` for a busy guest; or --env HOROVOD_GLOO_TIMEOUT_SECONDS=600",
    ),
    _Cause(
        pattern=r"(?i)connection (reset|closed) by peer|gloo.*timed? ?out|Read timeout",
        why="a rank lost another one: it ended, or the network between them did",
        hint="`vsml bench {file}` again; `vsml run {file} --sudo -- dmesg -T | tail` if it comes back",
    ),
)


def find_cause(log: str) -> _Cause | None:
    """Return the first cause that the log shows, in the table's order."""
    return next((each for each in CAUSES if re.search(each.pattern, log)), None)


def last_lines(log: str) -> tuple[str, ...]:
    """Return the last lines that may explain something."""
    texts = (line for line in _TRACEBACK.sub("", log).splitlines() if line.strip() and not _NOISE.search(line))
    return tuple(texts)[-LAST_LINES:]
