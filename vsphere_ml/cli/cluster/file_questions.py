"""What `vsml init` asks: only what options leave open and a site has more than one of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.cli.consent import Declined
from vsphere_ml.config.load import load_text
from vsphere_ml.config.starter import StarterAnswers, fill_in
from vsphere_ml.core.errors import ConfigError, NotPossible
from vsphere_ml.core.nearest import nearest_name
from vsphere_ml.core.report import file_choices
from vsphere_ml.flows.site.new_file import largest_kind
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.cli.cluster.init import InitOptions
    from vsphere_ml.cli.terminal import Terminal
    from vsphere_ml.core.model.inventory import Inventory, Network, Vm
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.report.file_choices import GpuCluster
    from vsphere_ml.flows.site.new_file import NodeKind

USUAL_NODES = 2
TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """What a new file says, and how many of its nodes would fit at most."""

    answers: StarterAnswers
    most: int


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of one run; each has a first choice, which Enter takes."""

    terminal: Terminal
    given: InitOptions

    def refuse_without_answers(self) -> None:
        """Raise ConfigError `confirm.needed` where nobody can be asked and nothing says to take the first choices."""
        if not self.given.yes and not self.terminal.interactive:
            raise ConfigError(
                "there is no terminal to ask on; nothing was written",
                code="confirm.needed",
                hint="add --yes to take the first choice of each, or --blank for a file to fill in",
            )

    def ask_all(self, inventory: Inventory, vcenter: Mapping[str, str], file: str) -> NewFile:
        """Return the answers. Raises NotPossible `site.nothing-free` where no GPU is free."""
        cluster = self._cluster(inventory)
        template = self._template(inventory)
        networks = file_choices.networks(inventory, cluster, template)
        network = self._choose("VM network", "--network", [each.name for each in networks], self.given.network)
        first = StarterAnswers(
            name=file_choices.cluster_name(inventory),
            vcenter=vcenter,
            datacenter=inventory.datacenter,
            cluster=cluster.name,
            template=template.name,
            datastore=self._choose(
                "datastore", "--datastore", file_choices.datastores(inventory, cluster), self.given.datastore
            ),
            network=network,
            gpu=cluster.gpus[0],
            nic_model="",
            nic_network=self._nic_network(cluster, networks, network),
            prefix=file_choices.node_prefix(inventory),
            nodes=1,
            cpus=1,
            memory_gib=1,
        )
        kind, most = largest_kind(cluster, inventory, lambda kind: _spec(first, kind, file))
        return NewFile(answers=replace(_with_kind(first, kind), nodes=self._number(most)), most=most)

    def _cluster(self, inventory: Inventory) -> GpuCluster:
        found = {each.name: each for each in file_choices.gpu_clusters(inventory)}
        if not found:
            raise NotPossible(
                f"no host of {inventory.datacenter} has a free GPU that a VM can be given",
                code="site.nothing-free",
                target=inventory.datacenter,
                hint="`vsml inventory` shows who holds them; `vsml init --blank` writes a file to fill in",
            )
        notes = {name: f"{each.free_gpus} free GPUs on {len(each.hosts)} hosts" for name, each in found.items()}
        return found[self._choose("compute cluster", "--cluster", list(found), self.given.cluster, notes)]

    def _template(self, inventory: Inventory) -> Vm:
        found = {each.name: each for each in file_choices.templates(inventory)}
        return found[self._choose("template", "--template", list(found), self.given.template)]

    def _nic_network(self, cluster: GpuCluster, networks: Sequence[Network], management: str) -> str:
        if not cluster.nic_models:
            return ""
        found = file_choices.fast_networks(networks, management)
        names, notes = [each.name for each in found], {each.name: f"MTU {each.mtu}" for each in found if each.mtu}
        return self._choose("network of the fast NICs", "--nic-network", names, self.given.nic_network, notes)

    def _number(self, most: int) -> int:
        usual = min(USUAL_NODES, most)
        if self.given.nodes is not None or self.given.yes:
            return _checked_number(str(self.given.nodes or usual), most)
        for _ in range(TRIES):
            typed = self._answer(f"nodes, at most {most} [{usual}]: ")
            try:
                return _checked_number(typed or str(usual), most)
            except ConfigError as error:
                self.terminal.say(error.message)
        return _checked_number(typed, most)

    def _choose(
        self, what: str, option: str, names: Sequence[str], given: str | None, notes: Mapping[str, str] | None = None
    ) -> str:
        """Return one of the names; it is asked for only where there are several and no option says which."""
        if not names:
            raise NotPossible(
                f"there is no {what} that could be named",
                code="site.not-found",
                target=what,
                hint="`vsml init --blank` writes a file to fill in",
            )
        if given is not None:
            return _checked_name(given, what, option, names)
        if len(names) == 1 or self.given.yes:
            self.terminal.say(f"{what}: {names[0]}")
            return names[0]
        return self._ask(what, option, names, notes or {})

    def _ask(self, what: str, option: str, names: Sequence[str], notes: Mapping[str, str]) -> str:
        for number, name in enumerate(names, 1):
            note = f"  {notes[name]}" if name in notes else ""
            self.terminal.say(f"  {number}  {name}{note}")
        typed = ""
        for _ in range(TRIES):
            typed = self._answer(f"{what} [{names[0]}]: ") or names[0]
            if typed not in names and typed.isascii() and typed.isdigit() and 1 <= int(typed) <= len(names):
                typed = names[int(typed) - 1]
            if typed in names:
                return typed
            self.terminal.say(f"`{typed}` is none of these")
        return _checked_name(typed, what, option, names)

    def _answer(self, question: str) -> str:
        """Return what is typed; Enter alone is empty. Raises Declined at the end of input, which chooses nothing."""
        typed = self.terminal.answer(question)
        if typed is None:
            raise Declined("declined; nothing was written", code="confirm.declined")
        return typed


def _with_kind(answers: StarterAnswers, kind: NodeKind) -> StarterAnswers:
    return replace(answers, gpu=kind.gpu, nic_model=kind.nic_model, cpus=kind.cpus, memory_gib=kind.memory_gib)


def _spec(answers: StarterAnswers, kind: NodeKind, file: str) -> ClusterSpec:
    return load_text(fill_in(_with_kind(answers, kind)), file)


def _checked_name(given: str, what: str, option: str, names: Sequence[str]) -> str:
    if given not in names:
        near = nearest_name(given, names)
        raise ConfigError(
            f"there is no {what} `{given}` that could be named",
            code="usage",
            target=option,
            hint=f"did you mean `{near}`?" if near else f"there are: {', '.join(names)}",
        )
    return given


def _checked_number(typed: str, most: int) -> int:
    if not (typed.isascii() and typed.isdigit() and 1 <= int(typed) <= most):
        raise ConfigError(
            f"`{typed}` is no number of nodes from 1 to {most}",
            code="usage",
            target="--nodes",
            hint=f"give --nodes {most}; once the file is written, `vsml capacity` says what prevents one more",
        )
    return int(typed)
