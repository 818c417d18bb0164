"""How fast `vsml provision` is, each figure against a limit or a peer measured in the same run.

    make bench-provision

Two parts. *Act*: 64 VMs on a lab where a clone takes two seconds and a power-on one; the limit is the longest chain of
tasks that must follow each other. *Look and plan*: 1,000 hosts and 10,000 VMs; the peers read the same properties and
make nothing of them: pyVmomi in bulk, and `govc collect`, one process for each type of object, all at once.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyVim.connect import Disconnect, SmartConnect
from pyVmomi import vim, vmodl

from benchmarks import bare_provision
from vsphere_ml.config.load import load
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.core.plan.diff import diff
from vsphere_ml.flows.site.read_site import scope
from vsphere_ml.lab import build, server
from vsphere_ml.vsphere.connection.session import connect
from vsphere_ml.vsphere.connection.tls import Trust
from vsphere_ml.vsphere.gateway import Gateway
from vsphere_ml.vsphere.inventory import hosts, read_inventory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.lab.state import Lab
    from vsphere_ml.vsphere.connection.session import Session

HERE = Path(__file__).parent
VSML = Path(sys.executable).with_name("vsml")
# A clone of 2 s, then two power-ons of 1 s: those of a host's second NUMA node follow those of the first, so that ESXi
# takes the GPUs that each was placed on.
CHAIN_S, WAVES = 4.0, 2
ACT_LIMIT, LOOK_LIMIT, LOOK_LIMIT_GOVC = 1.05, 1.0, 2.0
ROUNDS = 5
PAGE = 1000


@contextmanager
def running(topology: str, *, guests: bool = False) -> Iterator[Lab]:
    """Run a lab of its own called `bench`, and take it down."""
    with tempfile.TemporaryDirectory() as state:
        os.environ["VSML_STATE_DIR"] = state
        lab, _ = server.start_lab(str(HERE / topology), name="bench", guests=guests)
        try:
            yield lab
        finally:
            server.stop_lab("bench")


def main() -> int:
    print(machine())
    remaining = [act(), look_and_plan()]
    return 0 if all(remaining) else 1


def act() -> bool:
    """Time whole provisions of 64 VMs; the limit is for the median."""
    print(f"\nact: 64 VMs on 16 hosts, chain of tasks {CHAIN_S:.1f} s, limit {ACT_LIMIT} ×")
    times, beside = [], []
    for _ in range(ROUNDS):
        with running("sixteen.toml"):  # a fresh one, so that every round meets the same
            times.append(one_provision())
        with running("sixteen.toml") as lab:
            beside.append(act_bare(lab))
    ratios = [ours / bare for ours, bare in zip(times, beside, strict=True)]
    print(f"  beside pyVmomi alone: median {statistics.median(ratios):.2f}; that takes {spread(beside)} of the chain")
    return verdict("act", [seconds / CHAIN_S for seconds in times], ACT_LIMIT)


def act_bare(lab: Lab) -> float:
    """Return how long pyVmomi alone takes over clones and both waves of power-ons. It reads nothing back."""
    words = [sys.executable, "-m", bare_provision.__name__, "64", str(WAVES)]
    environment = os.environ | govc_environment(lab)
    seconds = float(subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout)
    print(f"  pyVmomi alone {seconds:.2f} s")
    return seconds


def spread(seconds: Sequence[float]) -> str:
    """Return the least and the most of these as shares of the chain."""
    return f"{min(seconds) / CHAIN_S:.2f} to {max(seconds) / CHAIN_S:.2f}"


def one_provision() -> float:
    file = str(HERE / "sixteen-cluster.toml")
    begun = time.monotonic()
    answers = vsml("provision", file, "--yes", "--parallel", "64")
    full = time.monotonic() - begun
    acting = float(answers["data"]["seconds"])
    print(f"  act {acting:.2f} s   whole command, with start, look, plan and second look {full:.2f} s")
    return acting


def machine() -> str:
    """Return when and on what a benchmark runs."""
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {platform.platform()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )


def vsml(*arguments: str) -> dict[str, Any]:
    done = subprocess.run([VSML, *arguments, "-o", "json"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"vsml {' '.join(arguments)} failed:\n{done.stdout}\n{done.stderr}")
    envelope: dict[str, Any] = json.loads(done.stdout)
    return envelope


def look_and_plan() -> bool:
    """Time look and plan against the bare read, in turn, so that a machine that drifts harms both."""
    print(
        f"\nlook and plan: 1,000 hosts, 10,000 VMs, limits {LOOK_LIMIT} × pyVmomi's bulk read and "
        f"{LOOK_LIMIT_GOVC} × govc's"
    )
    with running("scale-1000.toml") as lab:
        session = connect(lab.address, lab.username, lab.password(), Trust(ca_file=lab.ca_file), timeout_s=300)
        bare = connect_bare(lab)
        ratios = [one_look(session, bare, lab) for _ in range(ROUNDS)]
        Disconnect(bare)
        session.close()
    print(f"  peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    over_bare, over_govc = zip(*ratios, strict=True)
    remaining = [
        verdict("look and plan over pyVmomi", over_bare, LOOK_LIMIT),
        verdict("look and plan over govc", over_govc, LOOK_LIMIT_GOVC),
    ]
    return all(remaining)


def connect_bare(lab: Lab) -> Any:
    """Sign in with pyVmomi alone."""
    host, _, port = lab.address.rpartition(":")
    trust = ssl.create_default_context(cafile=lab.ca_file)
    return SmartConnect(host=host, port=int(port), user=lab.username, pwd=lab.password(), sslContext=trust)


def one_look(session: Session, instance: Any, lab: Lab) -> tuple[float, float]:
    """Return what a look and plan takes of pyVmomi's bulk read, and of govc's."""
    spec = load(HERE / "scale-cluster.toml")
    govc, _ = timed(lambda: govc_read(lab))
    bare, objects = timed(lambda: bare_read(instance.RetrieveContent()))
    ours, _ = timed(lambda: plan(session, spec))
    print(f"  pyVmomi {bare:.2f} s ({objects} objects)   govc {govc:.2f} s   look and plan {ours:.2f} s")
    return ours / bare, ours / govc


def timed(work: Any) -> tuple[float, Any]:
    begun = time.monotonic()
    result = work()
    return time.monotonic() - begun, result


def plan(session: Session, spec: ClusterSpec) -> int:
    inventory = Gateway(session).read_site(scope(spec))
    return len(list(diff(spec, solve(spec, inventory), inventory).changes))


def bare_read(content: Any) -> int:
    """Read the properties that a look reads, by pyvmomi alone, and make nothing of them."""
    wanted = read_inventory.WANTED  # the very same properties
    view = content.viewManager.CreateContainerView(content.rootFolder, list(wanted), True)
    found = list(retrieve(content.propertyCollector, view, wanted))
    view.Destroy()
    scoped = [each for each in found if isinstance(each.obj, vim.HostSystem)][:100]
    found += retrieve_of(content.propertyCollector, scoped, vim.HostSystem, (*hosts.REACH, *hosts.DEVICES))
    held = {vm for each in scoped for name, vm in graphics(each)}
    return len(found) + len(list(held))


def govc_environment(lab: Lab) -> dict[str, str]:
    """Return how govc signs in to a lab."""
    return {
        "GOVC_URL": lab.url,
        "GOVC_USERNAME": lab.username,
        "GOVC_PASSWORD": lab.password(),
        "GOVC_TLS_CA_CERTS": str(lab.ca_file),
        "GOVC_DATACENTER": "lab-dc",
    }


def govc_read(lab: Lab) -> None:
    """Read the properties that a look reads, by one govc for each type of object and one for the hosts' devices."""
    reads: list[tuple[str, Any, tuple[str, ...]]]
    reads = [("/lab-dc", kind, paths) for kind, paths in read_inventory.WANTED.items()]
    reads.append(("/lab-dc/host/gpu-01", vim.HostSystem, (*hosts.REACH, *hosts.DEVICES)))
    environment = os.environ | govc_environment(lab) | {"GOVC_PERSIST_SESSION": "false"}
    collect = [str(build.govc()), "collect", "-json", "-type"]
    processes = [
        subprocess.Popen([*collect, kind._wsdlName, place, *paths], env=environment, stdout=subprocess.DEVNULL)  # noqa: SLF001
        for place, kind, paths in reads
    ]
    statuses = [each.wait() for each in processes]
    if any(statuses):
        raise SystemExit("govc collect failed")


def graphics(each: Any) -> Iterator[tuple[str, Any]]:
    for prop in each.propSet:
        if prop.name == "config.graphicsInfo":
            for info in prop.val:
                yield from ((info.pciId, vm._GetMoId()) for vm in info.vm or ())  # noqa: SLF001


def retrieve(collector: Any, view: Any, wanted: Any) -> Iterator[Any]:
    kinds = vmodl.query.PropertyCollector
    walk = kinds.TraversalSpec(name="view", type=vim.view.ContainerView, path="view", skip=False)
    start = kinds.ObjectSpec(obj=view, skip=True, selectSet=[walk])
    yield from pages(collector, [start], [kinds.PropertySpec(type=k, pathSet=list(p)) for k, p in wanted.items()])


def retrieve_of(collector: Any, objects: list[Any], kind: Any, paths: tuple[str, ...]) -> Iterator[Any]:
    kinds = vmodl.query.PropertyCollector
    starts = [kinds.ObjectSpec(obj=each.obj, skip=False) for each in objects]
    yield from pages(collector, starts, [kinds.PropertySpec(type=kind, pathSet=list(paths))])


def pages(collector: Any, starts: list[Any], properties: list[Any]) -> Iterator[Any]:
    kinds = vmodl.query.PropertyCollector
    spec = kinds.FilterSpec(objectSet=starts, propSet=properties)
    page = collector.RetrievePropertiesEx([spec], kinds.RetrieveOptions(maxObjects=PAGE))
    while page is not None:
        yield from page.objects
        page = collector.ContinueRetrievePropertiesEx(page.token) if page.token else None


def verdict(what: str, ratios: Sequence[float], limit: float) -> bool:
    median = statistics.median(ratios)
    preserved = median <= limit
    print(
        f"  {what}: median {median:.2f} × (from {min(ratios):.2f} to {max(ratios):.2f}), "
        f"limit {limit}: {'kept' if preserved else 'NOT kept'}"
    )
    return preserved


if __name__ == "__main__":
    sys.exit(main())
