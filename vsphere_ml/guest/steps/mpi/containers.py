"""The container that MPI starts ranks in, by `docker exec` or by an sshd of its own."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, ClassVar

from vsphere_ml.core.model.guest import Step, StepNeed
from vsphere_ml.core.nodes.container import NAME, SHARED, SHARES
from vsphere_ml.guest.playbooks.fields import FieldError, check_pattern
from vsphere_ml.guest.steps.mpi.images import IMAGE
from vsphere_ml.guest.steps.system.content import Content
from vsphere_ml.guest.steps.system.files import check_absolute
from vsphere_ml.guest.steps.system.shell import words
from vsphere_ml.guest.templates import render
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Shell

_CONF = "/etc/vsml/container/sshd_config"
_NCCL_CONF = "/etc/nccl.conf"
_SIZE = re.compile(r"\d+[bkmg]?")
_PORTS = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSshd(Step):
    """A running container on the guest's network, with GPUs, RDMA devices, and the SSH mesh of root.

    NVIDIA's images have no sshd: ranks are started through the guest's own, by `docker exec`. With `port` the container
    runs one, Horovod's documented way; it shows the guest's host keys, so the pinned keys hold for it too.

    NCCL finds in it what the guest's nccl.conf says, and the topology file that this names. A container keeps the files
    that it was started with, also when others take their place in the guest.
    """

    KIND: ClassVar[str] = "container_sshd"

    image: str
    port: int = 0  # of its sshd; 0: it has none
    shared_memory: str = "1g"
    devices: tuple[str, ...] = ("/dev/infiniband",)
    volumes: tuple[str, ...] = ()
    topology: str = "/etc/vsml/nccl-topology.xml"  # which the step nccl_topology writes

    def __post_init__(self) -> None:
        check_pattern("image", self.image, IMAGE, "a container image")
        check_pattern("shared_memory", self.shared_memory, _SIZE, "a size such as 1g")
        if not 0 <= self.port <= _PORTS:
            raise FieldError("port", "expected 1 to 65535, or 0 for none")
        check_absolute("topology", self.topology)
        for device in self.devices:
            check_absolute("devices", device)
        for volume in self.volumes:
            if not volume.startswith("/") or ":/" not in volume:
                raise FieldError("volumes", f"`{volume}` is not of the form /in/the/guest:/in/the/container")

    @property
    def title(self) -> str:
        return f"container {NAME}" + (f" with sshd on port {self.port}" if self.port else "")

    def probes(self, _facts: GuestFacts) -> Mapping[str, str]:
        shape = '{{.State.Running}} {{index .Config.Labels "vsml.digest"}}'
        asked = {"container": f"docker inspect -f '{shape}' {NAME}", "shares": SHARES, "nccl": self._sees_nccl_files}
        return asked | ({"conf": self._conf.probe, "listening": self._listening} if self.port else {})

    def drift(self, seen: Mapping[str, CommandAnswer], facts: GuestFacts) -> str | None:
        if self.port and (drift := self._conf.drift(seen["conf"])):
            return drift
        running, _, digest = seen["container"].text.partition(" ")
        if running != "true":
            return f"container {NAME} does not run"
        if digest != self._digest(facts):
            return f"container {NAME} was started for something else"
        if not seen["shares"].ok:
            return f"container {NAME} does not share {SHARED} with the guest"
        if not seen["nccl"].ok:
            return f"container {NAME} does not see the guest's {_NCCL_CONF} and {self.topology}"
        return f"no sshd listens on port {self.port}" if self.port and not seen["listening"].ok else None

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        if self.port:
            self._conf.put(shell)
        # Docker makes a folder of a file that is not there.
        shell.run(f"for each in {words(self._nccl_files)}; do mkdir -p ${{each%/*}}/ && touch $each; done")
        shell.run(f"docker rm -f {NAME} >/dev/null 2>&1 || :")
        shell.run(f"docker run -d --label vsml.digest={self._digest(facts)} {words(self._arguments(facts))}")
        if self.port:
            shell.run(f"i=0; until {self._listening}; do i=$((i + 1)); test $i -le 30 || break; sleep 1; done")
        return StepNeed.NOTHING

    def _arguments(self, facts: GuestFacts) -> list[str]:
        gpus = ["--runtime=nvidia", "--gpus", "all"] if facts.gpus else []
        of_sshd = ("/etc/ssh:/etc/vsml/host:ro", f"{_CONF}:/etc/vsml/sshd_config:ro") if self.port else ()
        of_nccl = (f"{each}:{each}:ro" for each in self._nccl_files)
        mounts = ("/root/.ssh:/root/.ssh:ro", *of_sshd, f"{SHARED}:{SHARED}", *of_nccl)
        serve = "mkdir -p /run/sshd && exec /usr/sbin/sshd -D -e -f /etc/vsml/sshd_config"
        return [
            f"--name={NAME}",
            "--restart=unless-stopped",
            "--network=host",
            "--cap-add=IPC_LOCK",
            "--ulimit=memlock=-1",
            f"--shm-size={self.shared_memory}",
            *gpus,
            *(f"--device={device}" for device in self.devices),
            *(f"--volume={volume}" for volume in (*mounts, *self.volumes)),
            self.image,
            "bash",
            "-c",
            serve if self.port else "exec sleep infinity",
        ]

    def _digest(self, facts: GuestFacts) -> str:
        text = "\n".join([*self._arguments(facts), *([self._conf.digest] if self.port else [])])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def _nccl_files(self) -> tuple[str, str]:
        return _NCCL_CONF, self.topology

    @property
    def _sees_nccl_files(self) -> str:
        numbers = f"stat -c %d:%i {words(self._nccl_files)}"
        return f'here=$({numbers}) && [ "$here" = "$(docker exec {NAME} {numbers} 2>/dev/null)" ]'

    @property
    def _listening(self) -> str:
        return f"ss -Hltn 'sport = :{self.port}' | grep -q ."

    @property
    def _conf(self) -> Content:
        text = render.render(render.shipped_template("container-sshd_config"), {"port": self.port}, _CONF)
        return Content(path=_CONF, text=text)
