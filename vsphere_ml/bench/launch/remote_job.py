"""A job in its guests: files laid out, started, watched, ended, collected. All it needs is the `Shell` port."""

from __future__ import annotations

import base64
import json
import shlex
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.bench.model.job import FOLDER, MARK, PATH, SCRIPT, STOP, USER_MARK, RunIn
from vsphere_ml.core.errors import BenchError
from vsphere_ml.core.hints import CommandLine, Hint
from vsphere_ml.core.nodes.container import NAME
from vsphere_ml.core.units import parse_integer
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from vsphere_ml.bench.launch.launchers import Launch
    from vsphere_ml.bench.model.job import Job
    from vsphere_ml.core.model.guest import Probe, Shell

WORKLOADS = Path(__file__).parents[1] / "workloads"
ALL_WORKLOADS = tuple(sorted(each.name for each in WORKLOADS.glob("[a-z]*.py")))
CHUNK = 900_000  # bytes of an answer; `ask` keeps a mebibyte
PIECE = 200_000  # of what is looked at while it runs
SHOWN = 30_000  # of an output that is shown
NODE_VARIABLES = "node.json"  # that ranks of this node get, as rank.py reads them
OUTPUTS = ("job.out", "job.err")
NOTHING_PRINTED: Mapping[str, int] = {}
KILLS = 10  # times, a second apart, that what does not end is killed
RUN_S = 120.0  # for a command that a guest which answers has done in a second
GRACE_S = 1  # for a benchmark's processes to end when they are asked to
KILL_S = 15  # after its limit, before a job that does not end is killed
POLL_S = 10  # between two looks of a job at whether it was forgotten
FORGOTTEN_MIN = 3  # a job ends itself when nobody has looked after it for so many minutes

# The job's own pid 1, so to speak: it leaves its exit status, and ends the job when vsml is gone. It has a PATH of its
# own, so that one which ranks are given cannot take its programs away.
_SCRIPT = """\
#!/bin/sh
cd {folder} || exit 1
: >alive
timeout -k {kill} {limit} env -i {variables} {command} >job.out 2>job.err </dev/null &
job=$!
# Once the script is gone, the job's number may be given to anybody: only a child of the script is ended.
(while sleep {poll} && grep -qs "^PPid:[[:space:]]*$$\\$" /proc/$job/status; do
    [ -n "$(find alive -mmin -{forgotten})" ] || kill -TERM $job
done) &
watch=$!
wait $job
echo $? >rc.new
mv rc.new rc
kill $watch
"""
# Waits in the guest, so that the end is known soon and nobody has to ask often: asking costs the guest time.
# The script leaves its status before it ends, so the status is looked for after the script was seen to be gone. That it
# is gone is printed and never concluded from silence: a guest that is short of time or processes says nothing at all.
_PEEK = """\
cd {folder} || {{ echo gone; exit; }}
i=0 state=running
while [ ! -e rc ] && [ -d /proc/{pid} ] && [ $i -lt {turns} ]; do sleep 0.5; i=$((i + 1)); done
[ -d /proc/{pid} ] || state=gone
[ ! -s rc ] || read -r state <rc
echo "$state"
tail -c +{offset} rank-0.jsonl 2>/dev/null | head -c {piece}
"""
# The last of what was printed since a place, in bytes: what a job prints is any bytes.
_PRINTED = """\
cd {folder} && size=$(wc -c <{name}) || exit 1
from={offset}
[ $((size - from)) -le {most} ] || from=$((size - {most}))
echo $from
tail -c +$((from + 1)) {name} | head -c $((size - from)) | base64
"""
# What ends jobs from outside: a full file system, and since the job began the kernel, for lack of memory.
_FAULTS = """\
df -P {root} | awk 'NR == 2 && $4 < 64 {{ print "the file system " $6 " is full" }}'
began=$(stat -c %Y {folder}/job.sh) || exit 0
began=$(($(cut -d. -f1 /proc/uptime) - $(date +%s) + began))
dmesg 2>/dev/null | awk -F '[][. ]+' -v began=$began '
/Killed process/ && $2 >= began {{ sub(/^\\[[^]]*\\] */, ""); print "the kernel: " $0 }}' | tail -n 3
"""
# NCCL logs its channels at the beginning, and what went wrong stands at the end.
_LOGS = """\
cd {folder} || exit 1
for file in job.out job.err; do
    [ -e $file ] || continue
    if [ "$(wc -c <$file)" -le {most} ]; then cat $file; continue; fi
    head -c {half} $file
    printf '\\n[vsml left out the middle of %s]\\n' $file
    tail -c {half} $file
done
"""
_RANKS = f"{MARK}|{USER_MARK}|HOROVOD_RANK|OMPI_COMM_WORLD_RANK|PMI_RANK|TORCHELASTIC_RUN_ID"
_MARKED = f"""\
for file in $(grep -lzE '^({_RANKS})=' /proc/[0-9]*/environ 2>/dev/null); do
    pid=${{file#/proc/}} pid=${{pid%/environ}}
    command=$(tr '\\0\\t\\n' '   ' <"/proc/$pid/cmdline" 2>/dev/null | cut -c1-200)
    [ -n "$command" ] || continue
    marks=$(tr '\\0' '\\n' <"$file" 2>/dev/null)
    mark=$(printf '%s\\n' "$marks" | sed -n 's/^{MARK}=//p' | head -n 1)
    job=$(printf '%s\\n' "$marks" | sed -n 's/^{USER_MARK}=//p' | head -n 1)
    printf '%s\\t%s\\t%s\\t%s\\n' "$pid" "$mark" "$job" "$command"
done
"""


# Returns as soon as all have ended.
_END = """\
kill -TERM {pids} 2>/dev/null
i=0
any() {{ for pid in {pids}; do kill -0 $pid 2>/dev/null && return 0; done; return 1; }}
while [ $i -lt $((2 * {grace})) ] && any; do sleep 0.5; i=$((i + 1)); done
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _StaleProcess:
    """A process of a distributed job. `run_id` is empty when no benchmark started it."""

    pid: int
    run_id: str
    command: str
    job_id: str = ""  # of the user's job that it belongs to


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPiece:
    """What a job printed into one of its outputs; `start` is later than asked for where it printed too much to show."""

    start: int  # bytes before it
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """What is new of a job that runs; `status` is its launcher's exit status once it has ended."""

    status: int | None
    text: str  # more of rank 0's lines
    printed: Mapping[str, OutputPiece] = field(default_factory=dict)  # by output
    gone: bool = False  # its script ended and left no status, or its folder is gone


def find_stale_processes(shell: Probe) -> tuple[_StaleProcess, ...]:
    """Return the processes of distributed jobs in the guest."""
    lines = shell.ask({"marked": _MARKED})["marked"].out.splitlines()
    rows = (line.split("\t", 3) for line in lines)
    return tuple(
        _StaleProcess(pid=int(row[0]), run_id=row[1], job_id=row[2], command=row[3])
        for row in rows
        if len(row) == 4  # noqa: PLR2004
    )


def stop_processes(shell: Shell) -> tuple[_StaleProcess, ...]:
    """End every process that carries a run's mark, and return those that were there.

    BenchError `bench.stale-processes` when some go on.
    """
    return end_processes(shell, lambda each: bool(each.run_id))


def end_processes(
    shell: Shell, is_meant: Callable[[_StaleProcess], bool], grace_s: int = GRACE_S
) -> tuple[_StaleProcess, ...]:
    """End the processes that are meant, after so many seconds by force, and return those that were there."""

    def find() -> tuple[_StaleProcess, ...]:
        return tuple(each for each in find_stale_processes(shell) if is_meant(each))

    there = left = find()
    if not there:
        return ()
    shell.run(_END.format(pids=_pids(there), grace=grace_s), timeout_s=grace_s + 60)
    # Again and again: what a killed parent had just started is found only then, and a busy guest takes its time.
    for _ in range(KILLS):
        left = find()
        if not left:
            return there
        shell.run(f"kill -KILL {_pids(left)} 2>/dev/null; sleep 1", timeout_s=60)
    raise BenchError(
        f"{shell.name}: {len(left)} processes cannot be ended",
        code="bench.stale-processes",
        target=shell.name,
        hint=CommandLine(f"vsml ssh {shell.name} -- ps -fp {_pids(left).replace(' ', ',')}"),
        details=tuple(f"{each.pid}: {each.command}" for each in left),
    )


def _pids(processes: Sequence[_StaleProcess]) -> str:
    return " ".join(str(each.pid) for each in processes)


def foreign_ranks_error(node: str, processes: Sequence[_StaleProcess]) -> BenchError:
    """Return the error for ranks in a guest that no benchmark started: vsml does not end them, and cannot measure."""
    jobs = sorted({each.job_id for each in processes} - {""})
    whose = (
        f"of the job {', '.join(jobs)} run there" if jobs else "of a distributed job run there that vsml did not start"
    )
    return BenchError(
        f"{node}: {len(processes)} processes {whose}",
        code="bench.foreign-job",
        target=node,
        hint=Hint("wait for its end, or: ", CommandLine(f"vsml job stop {jobs[0]}"))
        if jobs
        else "wait for its end, or end it",
        details=tuple(f"{each.pid}: {each.command}" for each in processes),
    )


def busy_guest_error(node: str, run_id: str) -> BenchError:
    """Return the error for a guest in which a run is looked after by another vsml."""
    return BenchError(
        f"{node}: the benchmark {run_id} runs there, and its vsml looks after it",
        code="bench.busy",
        target=node,
        hint="wait for its end; a run whose vsml is gone can be replaced after a minute",
    )


def lay_out(
    shell: Shell, job: Job, how: Launch, script: Path | None = None, workloads: Collection[str] = ALL_WORKLOADS
) -> None:
    """Bring what every node needs: the folder, which is the job's user's alone, scripts, the launcher's files.

    `workloads` are those of our programs that the job may start.
    """
    user = shlex.quote(job.runtime.user)
    owner = f"{job.runtime.user}:"
    shell.run(
        f"install -d -m 755 {' '.join(dict.fromkeys((FOLDER, job.root)))} && rm -rf {job.folder} && "
        f'install -d -m 700 -o {user} -g "$(id -gn {user})" {job.folder} {job.folder}/bin',
        timeout_s=RUN_S,
    )
    for name in workloads:
        shell.write(f"{job.folder}/{name}", (WORKLOADS / name).read_text(encoding="utf-8"), owner=owner)
    if script is not None:
        shell.put(script, f"{job.folder}/{SCRIPT}/{script.name}")
    for name, text in how.files.items():
        shell.write(f"{job.folder}/{name}", text, mode=0o755, owner=owner)
    if own := job.node_variables.get(shell.name):
        shell.write(f"{job.folder}/{NODE_VARIABLES}", json.dumps(dict(own)), owner=owner)


def start(shell: Shell, job: Job, how: Launch) -> int:
    """Start the job in its first guest and return at once: the pid, in the guest, of what lives as long as its script.

    BenchError `bench.not-started` when the guest prints no pid.
    """
    script = _SCRIPT.format(
        folder=job.folder,
        kill=KILL_S,
        limit=round(job.limit_s),
        variables=shlex.join(f"{name}={value}" for name, value in how.variables.items()),
        command=shlex.join(how.command),
        forgotten=FORGOTTEN_MIN,
        poll=POLL_S,
    )
    shell.write(f"{job.folder}/job.sh", script, mode=0o700, owner=f"{job.runtime.user}:")
    own = shlex.join(("env", "-i", f"PATH={PATH}", f"{MARK}={job.run_id}", "sh", f"{job.folder}/job.sh"))
    text = shell.run(f"setsid {enter_command(job)} {own} </dev/null >/dev/null 2>&1 & echo $!", timeout_s=RUN_S).text
    if parse_integer(text) is None:
        raise BenchError(
            f"{shell.name}: the benchmark could not be started",
            code="bench.not-started",
            target=shell.name,
            details=tuple(text.splitlines()[:5]),
        )
    return int(text)


def enter_command(job: Job) -> str:
    """Return what brings a command to where ranks run, as their user."""
    if job.runtime.within is RunIn.CONTAINER:
        return f"docker exec {NAME}"
    return f"runuser -u {shlex.quote(job.runtime.user)} --"


def peek(
    shell: Probe, job: Job, pid: int, offset: int, wait_s: float, *, printed: Mapping[str, int] = NOTHING_PRINTED
) -> JobProgress:
    """Return what is new since `offset` bytes of rank 0's lines, after up to `wait_s` seconds or at the job's end.

    `printed` are those of its outputs to be shown too, each with the bytes that are known of it.
    """
    turns = round(2 * wait_s)
    text = _PEEK.format(folder=job.folder, pid=pid, turns=turns, offset=offset + 1, piece=PIECE)
    outputs = {
        name: _PRINTED.format(folder=job.folder, name=name, offset=known, most=SHOWN) for name, known in printed.items()
    }
    answers = shell.ask({"peek": text, **outputs})
    first, _, rest = answers["peek"].out.partition("\n")
    return JobProgress(
        status=parse_integer(first),
        text=rest,
        printed={name: _parse_output(answers[name].out) for name in outputs if answers[name].ok},
        gone=first == "gone",
    )


def _parse_output(answer: str) -> OutputPiece:
    start, _, encoded = answer.partition("\n")
    return OutputPiece(start=int(start), data=base64.b64decode(encoded))


def reported_faults(shell: Probe, job: Job) -> tuple[str, ...]:
    """Return what in the guest ends jobs: a full file system, the kernel's killing for memory."""
    return tuple(shell.ask({"faults": _FAULTS.format(root=FOLDER, folder=job.folder)})["faults"].out.splitlines())


def stop(shell: Shell, job: Job) -> None:
    """Ask the job to come to its end: its ranks agree on the step after which they do."""
    shell.run(f"touch {job.folder}/{STOP}", timeout_s=60)


def refresh_files(shell: Shell, job: Job) -> None:
    """Show the job that it is still wanted."""
    shell.run(f"touch {job.folder}/alive", timeout_s=60)


def collect(shell: Probe, job: Job) -> str:
    """Return all the lines that ranks in this guest have left."""
    return read_all_output(shell, f"cat {job.folder}/rank-*.jsonl 2>/dev/null")


def logs(shell: Probe, job: Job) -> str:
    """Return what the launcher and its ranks printed, standard output first; of a long one its two ends."""
    most = CHUNK // 2
    return shell.ask({"log": _LOGS.format(folder=job.folder, most=most, half=most // 2)})["log"].out


def result(shell: Probe, job: Job, name: str) -> str:
    """Return a file that the job's program wrote into its folder; empty when it wrote none."""
    return read_all_output(shell, f"cat {job.folder}/{name} 2>/dev/null")


def end(shell: Shell, job: Job) -> None:
    """End what is left of the job in the guest, and take its folder away."""
    stop_processes(shell)
    shell.run(f"rm -rf {job.folder}", timeout_s=RUN_S)


def read_all_output(shell: Probe, command: str) -> str:
    parts: list[str] = []
    while True:
        offset = sum(len(part.encode()) for part in parts)
        piece = shell.ask({"piece": f"{command} | tail -c +{offset + 1} | head -c {CHUNK}"})["piece"].out
        parts.append(piece)
        if len(piece.encode()) < CHUNK:
            return "".join(parts)
