"""How fast a look at guests that are as they should be is, against a bare SSH loop in the same run.

    make bench-guests

32 lab guests, each with its own sshd in its own network namespace. *Ours* is the guest part of `vsml configure
--dry-run`: from the end of the look at vCenter to the answer. The *bare loop* is paramiko in as many threads: it signs
in, asks the same questions as root in as many round trips, and makes nothing of the answers. The loop that only says
`true`, and OpenSSH with a process for each guest, are for information. All guests share this machine's cores with the
client, so what a question costs a guest weighs here 32 times as much as on hosts of their own.
"""

from __future__ import annotations

import shlex
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import paramiko

from benchmarks.provision import machine, running, vsml
from vsphere_ml.cli.wiring import guest_wiring
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.config.load import load
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.ports.events import InventoryRead
from vsphere_ml.flows.guests import boot, configure, guests
from vsphere_ml.flows.guests.guests import GuestPhase
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.guest.converge import check_all
from vsphere_ml.lab.guests import needs
from vsphere_ml.ssh.keys.key_pairs import key_pair
from vsphere_ml.vsphere.connection.session import connect
from vsphere_ml.vsphere.connection.tls import Trust
from vsphere_ml.vsphere.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from vsphere_ml.core.model.guest import GuestFacts, Playbook
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.ports.events import Event
    from vsphere_ml.core.ports.vcenter import GuestPlace
    from vsphere_ml.flows.guests.guests import StepInputs
    from vsphere_ml.lab.state import Lab
    from vsphere_ml.ssh.guests import SshGuests

GUESTS = PARALLEL = 32
ROUNDS = 9
LIMIT = 1.5
HERE = Path(__file__).parent
# The guests' packages come from the lab's own repository, since lab guests have no internet.
GUEST_TABLE = """
[guest]
key_file = "{key}"
playbooks = ["base", "roce", "driver", "mpi"]
[guest.settings]
doca_url = "file:/opt/vsml-lab"
doca_trusted = "true"
driver_file = "{driver}"
[guest.secrets]
licence_token = {{ file = "token" }}
"""


@dataclass(slots=True)
class Asked:
    """A `Probe` that keeps what it is asked, and answers nothing."""

    name: str
    scripts: list[str] = field(default_factory=list)

    def ask(self, commands: Mapping[str, str]) -> Mapping[str, CommandAnswer]:
        self.scripts.append("\n".join(f"({command}\n) 2>&1 </dev/null" for command in commands.values()))
        return dict.fromkeys(commands, CommandAnswer(1, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Guests that are as their playbooks say, and what it takes to look at them."""

    spec: ClusterSpec
    playbooks: Sequence[Playbook]
    gateway: Gateway
    guests: SshGuests
    given: StepInputs
    places: Sequence[GuestPlace]
    scripts: Mapping[str, Sequence[str]]  # what a check asks each guest, a script for each round trip
    key: paramiko.PKey

    def ours(self) -> float:
        """Return how long a dry run takes from the end of the look at vCenter on."""
        began: list[float] = []

        def notify(event: Event) -> None:
            if isinstance(event, InventoryRead):
                began.append(time.monotonic())

        report = configure.configure(
            RunContext(self.spec, self.gateway, notify, SystemClock()),
            GuestPhase(
                guests=self.guests,
                playbooks=tuple(self.playbooks),
                given=self.given,
                notify=lambda _event: None,
                wait_s=300.0,
            ),
            approve=lambda _plan: False,
            dry_run=True,
        )
        ended = time.monotonic()
        if report.plan or report.error:
            raise SystemExit(f"the guests are not as they should be: {report.plan}")
        return ended - began[-1]

    def bare(self) -> float:
        """Return how long paramiko takes for the same questions."""
        return self._loop(lambda place: self._say(place, self.scripts[place.name]))

    def truth(self) -> float:
        """Return how long paramiko takes when no guest has anything to do."""
        return self._loop(lambda place: self._say(place, ["true"] * len(self.scripts[place.name])))

    def openssh(self) -> float:
        """Return how long OpenSSH takes for the same questions, with a process for each round trip."""
        return self._loop(self._by_openssh)

    def _loop(self, visit: Callable[[GuestPlace], None]) -> float:
        began = time.monotonic()
        with ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(visit, self.places))
        return time.monotonic() - began

    def _say(self, place: GuestPlace, scripts: Sequence[str]) -> None:
        stream = socket.create_connection((place.address, 22))
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = paramiko.SSHClient()
        client.load_host_keys(str(self.guests.known_hosts.path))
        client.connect(
            place.address,
            username=self.spec.guest.user,
            pkey=self.key,
            sock=stream,
            allow_agent=False,
            look_for_keys=False,
        )
        for script in scripts:
            _, out, _ = client.exec_command(as_root(script))
            out.read()
            out.channel.recv_exit_status()
        client.close()

    def _by_openssh(self, place: GuestPlace) -> None:
        target = self.guests.target(place)
        for script in self.scripts[place.name]:
            words = shlex.split(target.by_hand)
            subprocess.run([*words, as_root(script)], stdin=subprocess.DEVNULL, capture_output=True, check=False)


def as_root(script: str) -> str:
    return shlex.join(["sudo", "-n", "sh", "-c", script])


def main() -> int:
    if missing := needs.missing_need():
        print(f"cannot run: {missing}", file=sys.stderr)
        return 1
    print(machine())
    with tempfile.TemporaryDirectory() as folder, running("sixteen.toml", guests=True) as lab:
        return 0 if measured(made(Path(folder), lab)) else 1


def measured(site: Site) -> bool:
    """Time each way in turn, so that a machine that drifts harms all, and compare ours with the bare loop."""
    asked = sum(len(book.steps) for book in site.playbooks)
    trips = len(next(iter(site.scripts.values())))
    print(f"{len(site.places)} guests, {asked} steps of {len(site.playbooks)} playbooks, {trips} round trip each\n")
    site.ours(), site.bare()  # the first of each imports and warms
    rows = [[option() for option in (site.ours, site.bare, site.truth, site.openssh)] for _ in range(ROUNDS)]
    for row in rows:
        print("  ours {:.2f} s   bare loop {:.2f} s   only `true` {:.2f} s   OpenSSH {:.2f} s".format(*row))
    ratios = [ours / bare for ours, bare, *_ in rows]
    median = statistics.median(ratios)
    preserved = median <= LIMIT
    print(
        f"  ours / bare loop: median {median:.2f} (from {min(ratios):.2f} to {max(ratios):.2f}), "
        f"limit {LIMIT}: {'kept' if preserved else 'NOT kept'}"
    )
    return preserved


def made(folder: Path, lab: Lab) -> Site:
    """Build the VMs and bring their guests to the playbooks, by the real commands."""
    file = folder / "cluster.toml"
    pair = key_pair(folder / "key", "bench")
    (driver,) = (lab.password_file.parent / "guests" / "packages").glob("nvidia-linux-grid-*.deb")
    (folder / "token").write_text("a licence token for the lab")
    (folder / "token").chmod(0o600)
    table = GUEST_TABLE.format(key=pair.private, driver=driver)
    file.write_text((HERE / "guests-cluster.toml").read_text() + table)
    vsml("provision", str(file), "--yes", "--parallel", str(GUESTS))
    return site(file, lab)


def site(file: Path, lab: Lab) -> Site:
    clock = SystemClock()
    spec = load(file)
    playbooks = guest_wiring.playbooks(spec)
    given = guest_wiring.step_inputs(spec, playbooks)
    entered = guest_wiring.guests(spec, clock, PARALLEL)
    gateway = Gateway(connect(lab.address, lab.username, lab.password(), Trust(ca_file=lab.ca_file), timeout_s=300))
    run = RunContext(spec, gateway, lambda _event: None, clock)
    found = boot.wait_ready(run, boot.read_running_site(run), entered, boot.start_deadline(60.0, clock))
    facts = guests.facts(spec, found, entered, given)
    return Site(
        spec=spec,
        playbooks=playbooks,
        gateway=gateway,
        guests=entered,
        given=given,
        places=found.places,
        scripts={name: asked(playbooks, each) for name, each in facts.items()},
        key=paramiko.Ed25519Key.from_private_key_file(str(spec.guest.key_file)),
    )


def asked(playbooks: Sequence[Playbook], facts: GuestFacts) -> Sequence[str]:
    probe = Asked(facts.name)
    check_all(playbooks, probe, facts)
    return probe.scripts


if __name__ == "__main__":
    sys.exit(main())
