"""Drives the installed `vsml` command as a person or a script would: a process, a pipe or a terminal, files on disk."""

from __future__ import annotations

import base64
import io
import json
import os
import ssl
import subprocess
import sys
import urllib.request
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pexpect
import pytest

from tests.schemas.check import check_answer
from tests.waiting import until
from vsphere_ml.cli import app
from vsphere_ml.lab import build, folders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Of the last one: compiling anew what a command imports takes half its CPU time.
OTHER_TOOLS = ("VSML_", "GOVC_", "VSPHERE_", "VMWARE_", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONDONTWRITEBYTECODE")
DEADLINE_S = 600  # of one command: none takes nearly as long, even where ten others want the CPUs
HELD_MS = 3_600_000  # how long a task takes that is held until the test lets it go

QUAD = """\
[cluster]
name = "train"

[vcenter]
lab = "default"

[location]
datacenter = "lab-dc"
cluster = "gpu"
folder = "train"
datastore = "vsan"

[source]
template = "ubuntu-22.04-gpu"

[defaults]
cpus = 16
memory = "64GiB"
gpu = { profile = "A100-40C" }
nic = { model = "ConnectX-6 Dx", port_group = "roce" }
network = { port_group = "vm-mgmt" }

[[nodes]]
name = "node-[01-04]"
"""
SEED = QUAD.replace("ubuntu-22.04-gpu", "ubuntu-20.04-gpu").replace("node-[01-04]", "node-[01-02]")
FILES = {"quad-8.0u3": QUAD, "seed-7.0u2": SEED}


def program() -> list[str]:
    """Return the installed command; the module where the project is not installed."""
    installed = Path(sys.executable).with_name("vsml")
    return [str(installed)] if installed.exists() else [sys.executable, "-m", "vsphere_ml"]


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """What the command wrote with `-o json`, which is as the schema says."""
        document = json.loads(self.out)
        check_answer(document)
        return document

    @property
    def did_nothing(self) -> bool:
        """Whether the command found nothing to do, and said so."""
        return self.status == 0 and any(line.startswith("nothing to do") for line in self.out.splitlines())


@dataclass(frozen=True)
class Shell:
    """A place to type commands in: a folder, and an environment without what this machine's user has set."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    def vsml(self, *arguments: str, **env: str) -> Ended:
        """Run to the end without a terminal."""
        process = self.start(*arguments, **env)
        out, err = process.communicate(timeout=DEADLINE_S)
        return Ended(process.returncode, out, err)

    def here(self, *arguments: str, **env: str) -> Ended:
        """Run in this process, which saves its start: where a test tries what a command does, and not how it ends."""
        out, err = io.StringIO(), io.StringIO()
        wanted = self.env | env
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.chdir(self.folder)
            patch.setattr(sys, "argv", ["vsml", *arguments])
            for name in set(os.environ) - set(wanted):
                patch.delenv(name)
            for name, value in wanted.items():
                patch.setenv(name, value)
            status = app.run([*arguments])
        return Ended(status, out.getvalue(), err.getvalue())

    def provisioned(self, *more: str) -> None:
        """Provision what the cluster file of this folder says."""
        made = self.here("provision", "--yes", *more)
        assert made.status == 0, made.err

    def start(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        """Start without a terminal, and go on."""
        return subprocess.Popen(
            [*program(), *arguments],
            cwd=self.folder,
            env=self.env | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def terminal(self, *arguments: str, **env: str) -> pexpect.spawn[str]:
        """Start on a terminal of 100 columns."""
        command, *rest = program()
        return pexpect.spawn(
            command,
            [*rest, *arguments],
            cwd=str(self.folder),
            env=self.env | {"TERM": "xterm-256color"} | env,
            encoding="utf-8",
            timeout=DEADLINE_S,
            dimensions=(40, 100),
        )

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return name


@dataclass(frozen=True)
class Lab:
    """A running lab, and its own interface for faults and delays."""

    shell: Shell
    told: dict[str, Any]

    @property
    def password(self) -> str:
        return Path(self.told["password_file"]).read_text().strip()

    def control(self, path: str, body: object = None) -> Any:
        """Ask the lab itself: GET without a body, POST with one."""
        sign_in = base64.b64encode(f"{self.told['username']}:{self.password}".encode()).decode()
        request = urllib.request.Request(
            f"{self.told['control']}/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Basic {sign_in}", "Content-Type": "application/json"},
        )
        trust = ssl.create_default_context(cafile=self.told["ca_file"])
        with urllib.request.urlopen(request, context=trust, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def begun(self, process: subprocess.Popen[str], method: str, calls: int) -> None:
        """Come back once this method has been called so often; the process that calls it must run on till then."""

        def called() -> bool:
            ended = process.poll() is not None
            seen = bool(self.control("calls").get(method, 0) >= calls)
            assert seen or not ended, process.communicate()
            return seen

        until(called, f"{method} was not called {calls} times")

    @property
    def vms(self) -> dict[str, dict[str, Any]]:
        """The VMs as vCenter has them, by name."""
        seen = self.shell.here("inventory", "--lab", "default", "-o", "json")
        assert seen.status == 0, seen.err
        return {vm["name"]: vm for vm in seen.document["data"]["vms"]}


def clean_environment(folder: Path) -> dict[str, str]:
    """Return this machine's environment without what its user has set, with state in the folder."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(OTHER_TOOLS)}
    root = str(Path(__file__).parents[2])
    return env | {
        "VSML_STATE_DIR": str(folder / "state"),
        "VSML_CACHE_DIR": str(folders.cache().parent),
        "PYTHONPATH": root,
        # A keyring that asks would hang a test; there is none here.
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
    }


@pytest.fixture(scope="session")
def _built() -> None:
    build.binary()


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Return a shell in a folder of the test's own; programs the lab was built to are shared."""
    return Shell(tmp_path, clean_environment(tmp_path))


@pytest.fixture
def lab(shell: Shell, _built: None) -> Iterator[Callable[..., Lab]]:
    """Return what starts a lab and writes its cluster file; every lab of the test is stopped at its end."""

    def up(topology: str = "quad-8.0u3", text: str = "") -> Lab:
        started = shell.here("lab", "up", topology, "-o", "json")
        assert started.status == 0, started.err
        shell.write("cluster.toml", text or FILES[topology])
        return Lab(shell, started.document["data"])

    yield up
    shell.here("lab", "down")
