"""How long whole commands take, as a user types them, each against a peer or a limit in the same run.

    make bench-commands

*Provision*: 8 and 64 VMs on a lab where a clone takes two seconds and a power-on one, against pyVmomi alone with all
tasks at once (`bare_provision`) and against as many govc in parallel as there are VMs. *Again*: the same command when
nothing is missing. *Start*: `vsml --help` against `import typer`, and one TAB in bash. *Run*: `vsml run -- true` on 32
lab guests against paramiko in as many threads (root on Linux). All take turns, so that a machine that drifts harms all.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import bare_provision
from benchmarks.commands import Command, Verdict, cluster_file, on_fresh_lab, spread, timed
from benchmarks.provision import HERE, VSML, govc_environment, machine, running
from vsphere_ml.lab import build
from vsphere_ml.lab.guests import needs
from vsphere_ml.ssh.keys.key_pairs import key_pair

if TYPE_CHECKING:
    from collections.abc import Sequence

ROUNDS = 5
SHORT_ROUNDS = 15  # of commands below a second
HOSTS = 16  # of sixteen.toml
MORE_S = {8: 1.0, 64: 1.2}  # so much longer than pyVmomi alone may a provision take
AGAIN_S, TAB_S = 0.8, 0.15
HELP_RATIO, RUN_RATIO = 2.0, 1.2
GUEST_TABLE = '[guest]\nkey_file = "{key}"\nplaybooks = ["base"]\n'


def main() -> int:
    print(machine())
    verdicts = [*provisions(8), *provisions(64), again(), *starts(), *runs()]
    print()
    for each in verdicts:
        print(each)
    return 0 if all(each.holds for each in verdicts) else 1


def provisions(number: int) -> list[Verdict]:
    """Time provisions of so many VMs, each on a fresh lab; the second figure is the number of calls to vCenter."""
    print(f"\nprovision of {number} VMs, whole commands")
    rows = [[one(number) for one in (ours, bare, by_govc)] for _ in range(ROUNDS)]
    for row in rows:
        print(
            "  vsml {:.2f} s, {} calls   pyVmomi alone {:.2f} s, {} calls   govc {:.2f} s, {} calls".format(
                *sum(row, ())
            )
        )
    more = statistics.median(row[0][0] - row[1][0] for row in rows)
    govc = statistics.median(row[0][0] / row[2][0] for row in rows)
    return [
        Verdict(what=f"{number} VMs over pyVmomi alone", value=more, limit=MORE_S[number], unit=" s"),
        Verdict(what=f"{number} VMs against parallel govc", value=govc, limit=1.0, unit=" ×"),
    ]


def ours(number: int) -> tuple[float, int]:
    return on_fresh_lab(lambda folder, _: Command([str(VSML), "provision", cluster_file(folder, number), "--yes"]))


def bare(number: int) -> tuple[float, int]:
    words = [sys.executable, "-m", bare_provision.__name__, str(number)]
    return on_fresh_lab(lambda _, lab: Command(words, govc_environment(lab)))


def by_govc(number: int) -> tuple[float, int]:
    """Time as many shells as VMs, each with one govc after the other."""
    return on_fresh_lab(lambda folder, lab: Command(["sh", govc_script(folder, number)], govc_environment(lab)))


GOVC_STEPS = """vm.clone -vm {template} -on=false -host {host} -ds {store} -c {cpus} -m {memory} {vm}
vm.change -vm {vm} -memory-pin=true {extra}
gpu.vm.add -vm {vm} -profile {profile}
vm.power -on {vm}
"""


def govc_script(folder: Path, number: int) -> str:
    """Write the shell script that makes the VMs with govc; each shell signs in once and keeps its session."""
    govc, extra = build.govc(), " ".join(f"-e {key}={value}" for key, value in bare_provision.EXTRA.items())
    lines = ["set -e"]
    for at in range(number):
        steps = GOVC_STEPS.format(
            template=bare_provision.TEMPLATE,
            host=f"/lab-dc/host/gpu/esx-{at % HOSTS + 1:02}.lab.test",
            store=bare_provision.DATASTORE,
            cpus=bare_provision.CPUS,
            memory=bare_provision.MEMORY_MIB,
            profile=bare_provision.PROFILE,
            vm=f"govc-{at + 1:02}",
            extra=extra,
        )
        commands = " && ".join(f"{govc} {step}" for step in steps.splitlines())
        lines.append(f'(export GOVMOMI_HOME={folder}/{at}; {commands}) & all="$all $!"')
    lines.append("for each in $all; do wait $each; done")
    script = folder / "govc.sh"
    script.write_text("\n".join(lines))
    return str(script)


def again() -> Verdict:
    """Time a provision that finds nothing to do."""
    with tempfile.TemporaryDirectory() as folder, running("sixteen.toml"):
        words = [str(VSML), "provision", cluster_file(Path(folder), 8), "--yes"]
        timed(words)
        times = [timed(words) for _ in range(SHORT_ROUNDS)]
    print(f"\nprovision of 8 VMs that are there: {spread(times)}")
    return Verdict(what="8 VMs again", value=statistics.median(times), limit=AGAIN_S, unit=" s")


def starts() -> list[Verdict]:
    """Time the help against the import of what draws it, and one TAB."""
    tab = {"_VSML_COMPLETE": "complete_bash", "COMP_WORDS": "vsml pro", "COMP_CWORD": "1"}
    rows = [
        (
            timed([str(VSML), "--help"]),
            timed([sys.executable, "-c", "import typer"]),
            timed([str(VSML)], tab),
        )
        for _ in range(SHORT_ROUNDS)
    ]
    for what, times in zip(("vsml --help", "import typer", "TAB"), zip(*rows, strict=True), strict=True):
        print(f"{what}: {spread(times)}")
    return [
        Verdict(
            what="--help over `import typer`",
            value=statistics.median(row[0] / row[1] for row in rows),
            limit=HELP_RATIO,
            unit=" ×",
        ),
        Verdict(what="TAB", value=statistics.median(row[2] for row in rows), limit=TAB_S, unit=" s"),
    ]


def runs() -> list[Verdict]:
    """Time a command on 32 guests against paramiko alone; nothing where guests cannot run."""
    if missing := needs.missing_need():
        print(f"no guests: {missing}", file=sys.stderr)
        return []
    with tempfile.TemporaryDirectory() as folder, running("sixteen.toml", guests=True):
        home = Path(folder)
        key = key_pair(home / "key", "bench").private
        file = home / "cluster.toml"
        file.write_text((HERE / "guests-cluster.toml").read_text() + GUEST_TABLE.format(key=key))
        timed([str(VSML), "provision", str(file), "--yes"])
        words = [str(VSML), "run", "-f", str(file), "--", "true"]
        addresses = addresses_of(file)
        timed(words)
        rows = [(timed(words), bare_loop(addresses, key)) for _ in range(SHORT_ROUNDS)]
    for what, times in zip(("vsml run -- true, 32 guests", "paramiko alone"), zip(*rows, strict=True), strict=True):
        print(f"{what}: {spread(times)}")
    ratio = statistics.median(ours / bare for ours, bare in rows)
    return [Verdict(what="run over paramiko alone", value=ratio, limit=RUN_RATIO, unit=" ×")]


def addresses_of(file: Path) -> list[str]:
    """Return user@address of every guest."""
    done = subprocess.run([VSML, "ssh-config", str(file)], capture_output=True, text=True, check=True)
    words = [line.split() for line in done.stdout.splitlines() if line.split()]
    users, hosts = ([each[1] for each in words if each[0] == name] for name in ("User", "HostName"))
    return [f"{user}@{host}" for user, host in zip(users, hosts, strict=True)]


BARE_LOOP = """
import sys
from concurrent.futures import ThreadPoolExecutor
import paramiko
key = paramiko.Ed25519Key.from_private_key_file(sys.argv[1])
def visit(target):
    user, address = target.split("@")
    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
    client.connect(address, username=user, pkey=key, allow_agent=False, look_for_keys=False)
    client.exec_command("true")[1].channel.recv_exit_status()
    client.close()
with ThreadPoolExecutor(len(sys.argv) - 2) as pool:
    list(pool.map(visit, sys.argv[2:]))
"""


def bare_loop(addresses: Sequence[str], key: Path) -> float:
    return timed([sys.executable, "-c", BARE_LOOP, str(key), *addresses])


if __name__ == "__main__":
    sys.exit(main())
