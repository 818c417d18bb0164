"""Runs in the launcher of an MPIJob: asks each worker what it has, runs mpirun, and prints what the ranks left.

All of it goes to standard output, a line of JSON each between what mpirun prints, since a pod's log is what everybody
may read who may run a job. Runs with the image's interpreter (Python 3.9 and newer).

    by_mpijob.py --folder FOLDER --programs /opt/vsml-bench --limit 3600 -- mpirun -np 2 python3 FOLDER/rank.py ...
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SCHEMA = "vsml.bench.pod/1"
HOST_FILE = "/etc/mpi/hostfile"
PROBES = "probes.json"
FILES = "files.tar.gz"  # of the user, as they are to lie in the folder
LAID_OUT = "laid-out"  # a file as old as the last that was copied
TRIES, PAUSE_S = 15, 2.0  # for a worker's name to be known, and its sshd to answer
WORK = "work"
MOST_BYTES = 4 << 20  # of what ranks of all pods made, as base64: a kubelet keeps 10 MiB of a log
KILL_S = 15
PARALLEL = 16  # workers that are entered at a time
PROBE_S = 60
TIMEOUT = 124  # as timeout(1) has it


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--folder", required=True, help="the job's own, the same in all pods")
    parser.add_argument("--programs", help="the folder of what ranks run, in this pod")
    parser.add_argument("--limit", type=float, default=0.0, help="seconds for the command")
    parser.add_argument("--survey", action="store_true", help="answer the folder's probes, and nothing more")
    parser.add_argument("--collect", action="store_true", help="print what ranks made in their folder, too")
    parser.add_argument("command", nargs="*", help="mpirun, with all its words")
    given = parser.parse_args()
    if given.survey:
        json.dump(survey(Path(given.folder)), sys.stdout)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    hosts = read_hosts(Path(HOST_FILE).read_text(encoding="utf-8"))
    for host, text in zip(hosts, prepare(given, hosts)):  # noqa: B905 - `strict` is not in Python 3.9
        print_line({"kind": "survey", "host": host, "answers": json.loads(text)})
    status = run(given.command, given.limit)
    read = f"cat {shlex.quote(given.folder)}/rank-*.jsonl 2>/dev/null || :"
    for host, lines in zip(hosts, on_each(hosts, read)):  # noqa: B905 - `strict` is not in Python 3.9
        print_line({"kind": "ranks", "host": host, "text": lines.decode("utf-8", "replace")})
    print_line({"kind": "ranks", "host": "", "text": own_ranks(Path(given.folder))})
    most = MOST_BYTES // len(hosts)
    for host, data in zip(hosts, on_each(hosts, made_files(given.folder, most)) if given.collect else ()):  # noqa: B905
        print_line({"kind": "files", "host": host, "archive": data.decode() if len(data) <= most else ""})
    print_line({"kind": "ended", "status": status})
    return status


def read_hosts(text: str) -> list[str]:
    """Return the workers of a host file, whichever MPI it is for: `NAME slots=1`, or `NAME:1`."""
    return [line.split()[0].partition(":")[0] for line in text.splitlines() if line.strip()]


def prepare(given: argparse.Namespace, hosts: list[str]) -> list[bytes]:
    """Bring what ranks run to every pod, and return what each worker answers to the probes.

    To this pod too: where mpirun starts ranks here, they shall be seen.
    """
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as made:
        for file in sorted(Path(given.programs).iterdir()):
            if file.is_file():  # a ConfigMap's files are links into a folder beside them
                entry = tarfile.TarInfo(file.name)
                entry.size, entry.mode = file.stat().st_size, 0o644
                with file.open("rb") as content:
                    made.addfile(entry, content)
    folder = shlex.quote(given.folder)
    # With times of now: what is newer than the last of it was made by the job.
    own = f"{{ [ ! -e {FILES} ] || tar -xmf {FILES}; }} && touch {LAID_OUT}"
    command = f"rm -rf {folder} && mkdir -p {folder}/{WORK} && cd {folder} && tar -xf - && {own}"
    subprocess.run(["sh", "-c", command], input=archive.getvalue(), check=True)  # noqa: S603, S607 - our own words
    ask = [*interpreter(), f"{given.folder}/by_mpijob.py", "--folder", given.folder, "--survey"]
    return on_each(hosts, f"{command} && {shlex.join(ask)}", archive.getvalue())


def on_each(hosts: list[str], command: str, data: bytes = b"") -> list[bytes]:
    with ThreadPoolExecutor(PARALLEL) as pool:
        return list(pool.map(lambda host: on_host(host, command, data), hosts))


def on_host(host: str, command: str, data: bytes = b"") -> bytes:
    """Return what a command on a worker printed; tried again while the worker cannot be reached."""
    for left in reversed(range(TRIES)):
        done = subprocess.run(["ssh", host, command], input=data, stdout=subprocess.PIPE, check=False)  # noqa: S603, S607
        if done.returncode == 0:
            return done.stdout
        if done.returncode != 255 or not left:  # noqa: PLR2004 - ssh's own
            break
        time.sleep(PAUSE_S)
    sys.stderr.write(f"{host}: ssh ended with status {done.returncode}\n")
    print_line({"kind": "unreachable", "host": host, "status": done.returncode})
    sys.exit(done.returncode)


def interpreter() -> list[str]:
    """The interpreter by its path here: sshd hands on no PATH."""
    path = os.environ.get("LD_LIBRARY_PATH")
    own = [f"LD_LIBRARY_PATH={path}"] if path else []
    return ["env", f"PATH={os.environ.get('PATH', os.defpath)}", *own, shutil.which("python3") or sys.executable]


def survey(folder: Path) -> dict[str, list[object]]:
    """Answer each probe: its exit status, and what it printed."""
    probes = json.loads((folder / PROBES).read_text(encoding="utf-8"))
    return {name: list(answer(text)) for name, text in probes.items()}


def answer(text: str) -> tuple[int, str]:
    try:
        done = subprocess.run(["sh", "-c", text], capture_output=True, timeout=PROBE_S, check=False)  # noqa: S603, S607
    except subprocess.TimeoutExpired:
        return TIMEOUT, ""
    return done.returncode, done.stdout.decode("utf-8", "replace")


def run(command: list[str], limit_s: float) -> int:
    """Run mpirun, its output passed on, and return its status."""
    sys.stdout.flush()
    program = subprocess.Popen(command)  # noqa: S603 - what we were told to run
    try:
        return program.wait(limit_s or None)
    except subprocess.TimeoutExpired:
        program.terminate()
        try:
            program.wait(KILL_S)
        except subprocess.TimeoutExpired:
            program.kill()
        return TIMEOUT


def made_files(folder: str, most: int) -> str:
    """Return the command that prints what ranks made in the folder of their work, as an archive in base64.

    Of one that is larger it prints a byte more than so many.
    """
    newer = f"find {WORK} -newer {LAID_OUT} ! -type d ! -path '*/__pycache__/*' -print0"
    packed = "tar -czf - --null --no-recursion -T - 2>/dev/null | base64 -w 0"
    return f"cd {shlex.quote(folder)} && {newer} | {packed} | head -c {most + 1}"


def own_ranks(folder: Path) -> str:
    return "".join(file.read_text(encoding="utf-8") for file in sorted(folder.glob("rank-*.jsonl")))


def print_line(line: dict[str, object]) -> None:
    # Behind whatever mpirun left of a line.
    sys.stdout.write("\n" + json.dumps({"schema": SCHEMA, **line}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
