"""The names of the cluster's nodes, in every guest."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from vsphere_ml.core.model.guest import Step, StepNeed
from vsphere_ml.guest.steps.system.content import Content, block, block_probe
from vsphere_ml.guest.steps.system.files import check_absolute, lines_of, read_existing
from vsphere_ml.guest.steps.system.shell import q
from vsphere_ml.guest.templates import render
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Shell


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsFile(Step):
    """Every node's name and address in /etc/hosts; the rest of the file stays."""

    KIND: ClassVar[str] = "hosts_file"

    @property
    def title(self) -> str:
        return "/etc/hosts"

    def probes(self, facts: GuestFacts) -> Mapping[str, str]:
        # Debian and Ubuntu give a machine's own name to 127.0.1.1, where no other rank can reach it.
        find = '{sub(/#.*/, "")} $1 == "127.0.1.1" {for (i = 2; i <= NF; i++) if ($i == n) print}'
        own = f"awk -v n={q(facts.name)} '{find}'"
        return {"block": block_probe("/etc/hosts", _name(facts)), "own": f"{own} /etc/hosts"}

    def drift(self, seen: Mapping[str, CommandAnswer], facts: GuestFacts) -> str | None:
        if seen["own"].text:
            return f"/etc/hosts says that {facts.name} is 127.0.1.1"
        return None if seen["block"].out == _lines(facts) else "/etc/hosts does not name every node"

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        mode, owner, text = read_existing(shell, "/etc/hosts", facts)
        previous = "".join(f"{line}\n" for line in lines_of(text) if not _names_itself(line, facts.name))
        shell.write("/etc/hosts", block(previous, _name(facts), _lines(facts)), mode=mode, owner=owner)
        return StepNeed.NOTHING


def _name(facts: GuestFacts) -> str:
    return f"cluster {facts.cluster}"


def _lines(facts: GuestFacts) -> str:
    return render.render(render.shipped_template("hosts"), render.guest_values(facts), "hosts")


def _names_itself(line: str, name: str) -> bool:
    words = line.partition("#")[0].split()
    return words[:1] == ["127.0.1.1"] and name in words[1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostfile(Step):
    """The hostfile of mpirun and horovodrun: each node with as many slots as it has GPUs."""

    KIND: ClassVar[str] = "hostfile"

    path: str = "/etc/vsml/hostfile"

    def __post_init__(self) -> None:
        check_absolute("path", self.path)

    @property
    def title(self) -> str:
        return f"hostfile {self.path}"

    def probes(self, facts: GuestFacts) -> Mapping[str, str]:
        return {"hostfile": self._content(facts).probe}

    def drift(self, seen: Mapping[str, CommandAnswer], facts: GuestFacts) -> str | None:
        return self._content(facts).drift(seen["hostfile"])

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        self._content(facts).put(shell)
        return StepNeed.NOTHING

    def _content(self, facts: GuestFacts) -> Content:
        text = render.render(render.shipped_template("hostfile"), render.guest_values(facts), "hostfile")
        return Content(path=self.path, text=text)
