"""A job of the user's in its guests: started so that it needs nobody, found again, followed, stopped.

Unlike a benchmark's launch it has no time limit, and nobody has to look after it. Its processes carry a mark of their
own, so that no benchmark ends them.
"""

from __future__ import annotations

import base64
import shlex
from typing import TYPE_CHECKING

from vsphere_ml.bench.launch import remote_job
from vsphere_ml.bench.model.job import PATH, USER_MARK, RunIn
from vsphere_ml.bench.model.user_job import LOG, RECORD, ROOT, WORK, FoundJob, JobState, encode_record, parse_record
from vsphere_ml.core.errors import BenchError
from vsphere_ml.core.hints import CommandLine
from vsphere_ml.core.units import parse_integer
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.bench.launch.launchers import Launch
    from vsphere_ml.bench.model.job import Job
    from vsphere_ml.bench.model.user_job import JobRecord
    from vsphere_ml.core.model.guest import Probe, Shell

ARCHIVE = "work.tar.gz"
CHANGED = "changed.tar.gz"
LAID_OUT = "laid-out"  # a file as old as the last that was copied
PIECE = 600_000  # bytes of a log in one answer, which is a third longer in base64; `ask` keeps a mebibyte
SWEEP = "sweep.sh"
STARTERS = ("by_ssh.py", "rank.py")
CONNECT_S = 15  # for a node to answer at the end
START_S = 10  # for the script to say that it runs
GRACE_S = 10  # for ranks to save what they have
COPY_S = 3600.0

# It leaves its number, so that it is found again, and its exit status, once nothing of the job is left on any node.
SCRIPT = """\
#!/bin/sh
cd {folder} || exit 1
echo $$ >pid.new && mv pid.new pid
{enter} env -i {variables} {command} >{log} 2>&1 </dev/null
echo $? >rc.new
for node in {others}; do
    bin/ssh -o ConnectTimeout={connect} "$node" "env -u {mark} sh {folder}/{sweep}" </dev/null >/dev/null 2>&1 &
done
env -u {mark} sh {sweep}
wait
mv rc.new rc
"""
# Whoever runs it carries no mark; the job's script does, and is spared.
_SWEEP = """\
#!/bin/sh
cd {folder} || exit 1
own=
[ ! -s pid ] || read -r own <pid
find_left() {{
    for file in $(grep -lzsFx {mark}={run_id} /proc/[0-9]*/environ); do
        pid=${{file#/proc/}} pid=${{pid%/environ}}
        [ "$pid" = "$own" ] || echo "$pid"
    done
}}
signal=TERM i=0
while left=$(find_left) && [ -n "$left" ] && [ $i -le {turns} ]; do
    [ $i -gt 0 ] && [ $i -lt {turns} ] || kill -$signal $left 2>/dev/null
    i=$((i + 1))
    [ $i -lt {turns} ] || signal=KILL
    sleep 0.5
done
"""
_START = """\
setsid runuser -u {user} -- {own} </dev/null >/dev/null 2>&1 &
i=0
until [ -s {folder}/pid ] || [ $i -ge {turns} ]; do sleep 0.1; i=$((i + 1)); done
[ ! -s {folder}/pid ] || echo begun
"""
# A number may be given to another process, after a reboot for one: only one that carries the job's mark is the job's.
_STATE = f"""\
state=lost status= ended=
if [ -s "$folder/pid" ] && read -r pid <"$folder/pid" && grep -qzsFx "{USER_MARK}=${{folder##*/}}" "/proc/$pid/environ"
then state={JobState.RUNNING}
elif [ -s "$folder/rc" ]; then state={JobState.ENDED} ended=$(stat -c %Y "$folder/rc"); read -r status <"$folder/rc"
elif [ -e "$folder/stopped" ]; then state={JobState.STOPPED} ended=$(stat -c %Y "$folder/stopped")
fi
"""
_FIND = f"""\
for file in {ROOT}/*/{RECORD}; do
    [ -e "$file" ] || continue
    folder=${{file%/{RECORD}}}
    {_STATE}
    printf '%s\\t%s\\t%s\\t' "$state" "$status" "$ended"
    head -n 1 "$file"
    echo
done
"""
# Waits in the guest for more to be printed: asking costs the guest time. The state is looked at before the log, so that
# of a job that has ended nothing is left to come.
_PEEK = """\
folder={folder} i=0
while [ -e "$folder" ]; do
    {state}
    [ $state = running ] && [ "$(wc -c <"$folder/{log}" 2>/dev/null || echo 0)" -le {offset} ] && [ $i -lt {turns} ] ||
        break
    sleep 0.5
    i=$((i + 1))
done
printf '%s\\t%s\\t%s\\n' "${{state:-lost}}" "$status" "$ended"
tail -c +{start} "$folder/{log}" 2>/dev/null | head -c {piece} | base64
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPiece:
    """More of what a job printed, and what had become of the job before."""

    state: JobState
    status: int | None
    data: bytes
    ended_s: int | None = None


def lay_out(shell: Shell, job: Job, how: Launch, archive: Path | None) -> None:
    """Bring the job's files and the user's folder, which the archive holds, to a node."""
    remote_job.lay_out(shell, job, how, workloads=STARTERS)
    sweep = _SWEEP.format(folder=job.folder, mark=USER_MARK, run_id=job.run_id, turns=2 * GRACE_S)
    shell.write(f"{job.folder}/{SWEEP}", sweep, owner=f"{job.runtime.user}:")
    user = shlex.quote(job.runtime.user)
    unpack = f"cd {job.folder} && mkdir -m 700 {WORK}"
    if archive is not None:
        shell.put(archive, f"{job.folder}/{ARCHIVE}")
        # With times of now: what is newer than the last of it was made by the job.
        unpack += f" && tar -xzmf {ARCHIVE} -C {WORK} && rm -f {ARCHIVE}"
    shell.run(f"runuser -u {user} -- sh -c {shlex.quote(f'{unpack} && touch {LAID_OUT}')}", timeout_s=COPY_S)


def start(shell: Shell, job: Job, how: Launch, record: JobRecord, file: str = "") -> None:
    """Start the job in its first guest and return at once. BenchError `job.not-started` when it does not begin.

    `file` is the option that names the cluster file, with a blank after it.
    """
    owner = f"{job.runtime.user}:"
    script = SCRIPT.format(
        folder=job.folder,
        enter=_enter_command(job),
        variables=shlex.join(f"{name}={value}" for name, value in how.variables.items()),
        command=shlex.join(how.command),
        log=LOG,
        others=shlex.join(node.address for node in job.nodes[1:]),
        connect=CONNECT_S,
        mark=USER_MARK,
        sweep=SWEEP,
    )
    shell.write(f"{job.folder}/job.sh", script, mode=0o700, owner=owner)
    shell.write(f"{job.folder}/{RECORD}", encode_record(record) + "\n", owner=owner)
    own = shlex.join(("env", "-i", f"PATH={PATH}", f"{USER_MARK}={job.run_id}", "sh", f"{job.folder}/job.sh"))
    begin = _START.format(user=shlex.quote(job.runtime.user), own=own, folder=job.folder, turns=10 * START_S)
    answer = shell.run(begin, timeout_s=remote_job.RUN_S)
    if answer.text != "begun":
        raise BenchError(
            f"{shell.name}: the job could not be started",
            code="job.not-started",
            target=shell.name,
            hint=CommandLine(f"vsml run {file}--sudo --only {shell.name} -- ls -l {job.folder}"),
            details=tuple((answer.out + answer.err).splitlines()[:5]),
        )


def _enter_command(job: Job) -> str:
    """Return what brings the command to where ranks run; the script is the guest's, where its number is known."""
    if job.runtime.within is RunIn.CONTAINER:
        return f"{remote_job.enter_command(job)} env -C {job.folder}"
    return ""


def find_jobs(shell: Probe, file: str = "") -> tuple[FoundJob, ...]:
    """Return the jobs whose first node this is; `file` is the option that names the cluster file."""
    hint = CommandLine(f"vsml run {file}--sudo --only {shell.name} -- ls {ROOT}")
    lines = shell.ask({"jobs": _FIND})["jobs"].out.splitlines()
    rows = [line.split("\t", 3) for line in lines if line.count("\t") > 2]  # noqa: PLR2004
    return tuple(
        FoundJob(
            record=parse_record(text, shell.name, hint),
            state=JobState(state),
            status=parse_integer(status),
            ended_s=parse_integer(ended),
        )
        for state, status, ended, text in rows
    )


def peek(shell: Probe, record: JobRecord, offset: int, wait_s: float) -> LogPiece:
    """Return what was printed after so many bytes, as soon as there is any or the job ends, or after `wait_s`."""
    text = _PEEK.format(
        folder=record.root,
        state=_STATE,
        log=LOG,
        offset=offset,
        start=offset + 1,
        turns=round(2 * wait_s),
        piece=PIECE,
    )
    head, _, encoded = shell.ask({"peek": text})["peek"].out.partition("\n")
    state, status, ended = head.split("\t")
    return LogPiece(
        state=JobState(state),
        status=parse_integer(status),
        data=base64.b64decode(encoded),
        ended_s=parse_integer(ended),
    )


def stop(shell: Shell, record: JobRecord) -> int:
    """End the job's processes in a guest, and return how many there were."""
    if shell.name == record.node_names[0]:
        shell.run(f"touch {record.root}/stopped", timeout_s=remote_job.RUN_S)
    ended = remote_job.end_processes(shell, lambda each: each.job_id == record.run_id, GRACE_S)
    return len(ended)


def delete(shell: Shell, record: JobRecord) -> None:
    """Take the job's folder away."""
    shell.run(f"rm -rf {record.root}", timeout_s=COPY_S)


def collect(shell: Probe, record: JobRecord) -> str:
    """Return the lines that the job's ranks left in this guest."""
    return remote_job.read_all_output(shell, f"cat {record.root}/rank-*.jsonl 2>/dev/null")


def nccl_log(shell: Probe, record: JobRecord) -> str:
    """Return what NCCL logged in this guest: the beginning, which has its channels."""
    return shell.ask({"log": f"cat {record.root}/nccl.*.log 2>/dev/null | head -c {remote_job.CHUNK}"})["log"].out


def fetch(shell: Shell, record: JobRecord, to: Path) -> None:
    """Copy what the job has made in a guest, as an archive; on the first node its log too."""
    archive = f"{record.root}/{CHANGED}"
    shell.run(
        f"cd {record.root} && find {WORK} {LOG} -newer {LAID_OUT} ! -type d ! -path '*/__pycache__/*' -print0 "
        f"2>/dev/null | tar -czf {CHANGED} --null --no-recursion -T -",
        timeout_s=COPY_S,
    )
    shell.get(archive, to)
    shell.run(f"rm -f {archive}", timeout_s=remote_job.RUN_S)
