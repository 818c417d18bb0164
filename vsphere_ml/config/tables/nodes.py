"""Makes the nodes of a cluster from its `[[nodes]]` blocks: names, addresses and hosts dealt out, gaps reported."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from vsphere_ml.config.compose import ComposedBlock, compose, flatten_block
from vsphere_ml.config.fields import clip
from vsphere_ml.config.positions import format_path
from vsphere_ml.config.reading import report_unknown, unknown_name
from vsphere_ml.config.tables import addresses, names
from vsphere_ml.core.catalog import adapters
from vsphere_ml.core.catalog.boards import power_of_two
from vsphere_ml.core.catalog.profiles import board_of
from vsphere_ml.core.model.device_kinds import GpuKind, NicKind
from vsphere_ml.core.model.spec import GpuRequest, Latency, NicRequest, NodeSpec
from vsphere_ml.core.nodes import gpu
from vsphere_ml.core.rules import check
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.config.compose import Keys
    from vsphere_ml.config.mistakes import Mistakes
    from vsphere_ml.config.positions import KeyPath
    from vsphere_ml.config.schema import NodeKeys, Nodes

_NEEDED = (("cpus",), ("memory",), ("network", "port_group"))
_EXAMPLES = {"cpus": "16", "memory": '"64GiB"', "profile": '"A100-40C"', "device": '"A100"', "port_group": '"vm-mgmt"'}
_DEFAULT_MODEL = NicRequest().model
# Keys that a node's pattern does not hold; lists among them.
_OF_EACH = frozenset(
    {("host",), ("network", "address"), ("network", "gateway"), ("network", "dns"), ("nic", "address")}
)


@dataclass(slots=True)
class NodeNames:
    """The nodes made so far, and who has which name and address."""

    defaults: NodeKeys | None
    profiles: Mapping[str, NodeKeys | None]  # None: it is there, and wrong
    mistakes: Mistakes
    nodes: list[NodeSpec] = field(default_factory=list)
    _wrong_profiles: list[KeyPath] = field(init=False)
    _flat: dict[KeyPath, Keys] = field(default_factory=dict)
    _gateways: dict[str, KeyPath] = field(default_factory=dict)
    _names: dict[str, KeyPath] = field(default_factory=dict)
    _patterns: dict[tuple[object, ...], dict[str, Any]] = field(default_factory=dict)  # those with nothing wrong
    _addresses: dict[str, tuple[str, KeyPath]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._wrong_profiles = [("profile", name) for name, each in self.profiles.items() if not each]

    def add(self, at: KeyPath, block: Nodes) -> None:
        """Make the nodes of one block."""
        written = names.expand_names(block.name, block.count, (*at, "name"), self.mistakes)
        called = self._named(at, written)
        composed = self._composed(at, block)
        complete = self._needed(composed)
        self._mmio(composed)
        given = addresses.deal_addresses(composed, called, len(written), self.mistakes)
        self._distinct({name: each.address for name, each in given.items()}, composed.place("network", "address"))
        self._gateway(composed)
        fast = addresses.of_roce(composed, called, len(written), self.mistakes)
        for number in range(max(map(len, fast.values()), default=0)):
            of_one = {name: each[number] for name, each in fast.items() if number < len(each)}
            self._distinct(of_one, composed.place("nic", "address"))
        hosts = self._hosts(at, block, called)
        if complete:
            pattern = self._pattern(tuple(block.use or ()), composed)  # its parts are shared by all nodes of the block
            for name in called:
                host = hosts.get(name) or composed.get("host")
                first, *more = fast.get(name) or (None,)
                self.nodes.append(
                    NodeSpec(
                        **pattern,
                        name=name,
                        address=given.get(name),
                        host=host,
                        roce_address=first,
                        more_roce_addresses=tuple(filter(None, more)),
                    )
                )

    def _named(self, at: KeyPath, written: list[str]) -> list[str]:
        """Return the names of a block's nodes that no other node has."""
        path = (*at, "name")
        preserved = []
        for name in written:
            why = names.refusal(name)
            if why is not None:
                self.mistakes.add(path, why)
            elif (first := self._names.get(name.casefold())) is not None:
                self.mistakes.add(
                    path, f"there is another node `{name}`: {format_path(first)}{self.mistakes.line(first)}"
                )
            else:
                self._names[name.casefold()] = path
                preserved.append(name)
        return preserved

    def _composed(self, at: KeyPath, block: Nodes) -> ComposedBlock:
        blocks = [self._shared(("defaults",), self.defaults)] if self.defaults else []
        for index, name in enumerate(block.use or ()):
            if name not in self.profiles:
                unknown_name(name, (*at, "use", index), self.profiles, self.mistakes, "profile")
            elif profile := self.profiles[name]:
                blocks.append(self._shared(("profile", name), profile))
        return compose([*blocks, (at, flatten_block(at, block))])

    def _shared(self, at: KeyPath, block: NodeKeys) -> tuple[KeyPath, Keys]:
        """Return the keys of a table that many blocks are made of, taken apart once."""
        if at not in self._flat:
            self._flat[at] = flatten_block(at, block)
        return at, self._flat[at]

    def _needed(self, composed: ComposedBlock) -> bool:
        """Return whether a block has all that its nodes need; what is missing is reported, unless its cause is."""
        which = (
            "gpu",
            "device" if composed.get("gpu", "kind", default=GpuKind.VGPU).spec.is_passthrough else "profile",
        )
        missing = [path for path in (*_NEEDED[:2], which, *_NEEDED[2:]) if path not in composed.keys]
        for path in missing:
            if not self._explained(composed, path):
                self.mistakes.add(
                    (*composed.at, *path),
                    "is missing, here and in the profiles and defaults this block is made of",
                    f"{'.'.join(path)} = {_EXAMPLES[path[-1]]}",
                )
        return not missing

    def _explained(self, composed: ComposedBlock, path: tuple[str, ...]) -> bool:
        """Return whether a mistake that is reported already is why a key is missing."""
        blocks = [*composed.blocks, ("defaults",), *self._wrong_profiles]
        return any(self.mistakes.is_reported((*at, *path)) for at in blocks) or self.mistakes.has_report_inside(
            (*composed.at, "use")
        )

    def _mmio(self, composed: ComposedBlock) -> None:
        """Report when MMIO was set to less than NVIDIA's table asks for."""
        mmio, profile = composed.get("mmio_gib"), composed.get("gpu", "profile")
        board = board_of(profile) if profile else None
        if mmio is None or board is None or board.mmio_table_gib is None:
            return
        count = composed.get("gpu", "count", default=1)
        least = power_of_two(board.mmio_table_gib * count)
        if mmio < least:
            self.mistakes.add(
                composed.place("mmio_gib"),
                f"{mmio} GiB is less than the {least} GiB that {count} × {profile} needs by NVIDIA's table "
                "(rule efi-and-mmio)",
                f"mmio_gib = {least}, or leave it out",
            )

    def _pattern(self, use: tuple[str, ...], composed: ComposedBlock) -> dict[str, Any]:
        """Return the fields that the nodes of a block have in common; what is wrong with them is reported."""
        alike = (use, *((path, each.value) for path, each in composed.own.items() if path not in _OF_EACH))
        pattern = self._patterns.get(alike)
        if pattern is None:
            pattern = _common_fields(composed)
            node = NodeSpec(name="", **pattern)
            right = [self._possible(composed, node), self._legal(composed, node)]  # each says what is wrong
            if all(right):
                self._patterns[alike] = pattern
        return pattern

    def _possible(self, composed: ComposedBlock, pattern: NodeSpec) -> bool:
        """Return whether a site can give such GPUs, also beside such a NIC; why none can is reported."""
        asked, nic = pattern.gpu, pattern.nic
        if (why := gpu.refusal(asked)) is not None:
            self.mistakes.add(composed.place("gpu", _contradicting_key(composed, asked)), why)
        elif (why := gpu.nic_refusal(asked, nic)) is not None:
            self.mistakes.add(composed.place("nic", "kind"), why)

        if (meant := adapters.suggest_model(nic.model)) and nic.kind.spec.exists:
            text = f"`{clip(nic.model)}` is the name of no adapter; did you mean {meant}?"
            self.mistakes.add(composed.place("nic", "model"), text)
            return False
        return why is None

    def _gateway(self, composed: ComposedBlock) -> None:
        """Keep the gateway of static addresses, which no node of any block may have."""
        gateway = composed.get("network", "gateway")
        if gateway is not None and composed.get("network", "address"):
            self._gateways.setdefault(gateway, composed.place("network", "gateway"))

    def check_gateways(self) -> None:
        """Report gateways that are the address of a node, once all nodes are there."""
        for gateway, place in self._gateways.items():
            if gateway in self._addresses:
                self.mistakes.add(place, f"{gateway} is also the address of a node")

    def _legal(self, composed: ComposedBlock, pattern: NodeSpec) -> bool:
        """Return whether its nodes break no rule on any site; that one is reported. The others come with a plan."""
        broken = [*check.errors_of_node(pattern)]
        for each in broken:
            self.mistakes.add(composed.place(*each.key), each.words, f"vsml rules why {each.rule}")
        return not broken

    def _distinct(self, given: Mapping[str, str], place: KeyPath) -> None:
        for name, each in given.items():
            ip = each.partition("/")[0]
            other, was = self._addresses.setdefault(ip, (name, place))
            if (other, was) != (name, place):
                whose = f"`{name}` and `{other}` would both have" if other != name else f"`{name}` would have twice"
                self.mistakes.add(place, f"{whose} {ip}")

    def _hosts(self, at: KeyPath, block: Nodes, called: list[str]) -> dict[str, str]:
        """Return the host of each node that `hosts` names."""
        path = (*at, "hosts")
        if block.hosts is None:
            return {}
        if block.host is not None:
            self.mistakes.add(path, "`host` and `hosts` are both set; leave one of them out")
        if isinstance(block.hosts, dict):
            known = set(called)
            for name in block.hosts:
                if name not in known:
                    report_unknown((*path, name), called, self.mistakes, "node of this block")
            return block.hosts
        if called and len(called) % len(block.hosts):
            self.mistakes.add(
                path,
                f"{len(called)} nodes cannot be dealt out evenly to {len(block.hosts)} hosts",
                "name as many hosts as nodes, or a number that divides them",
            )
        return {name: block.hosts[index % len(block.hosts)] for index, name in enumerate(called)}


def _contradicting_key(composed: ComposedBlock, asked: GpuRequest) -> str:
    """Return which key of `gpu` contradicts the others."""
    if not asked.is_passthrough and asked.profile and (asked.device or asked.label):
        return "device" if asked.device else "label"
    return "kind" if composed.get("gpu", "kind") else "profile"


def _common_fields(composed: ComposedBlock) -> dict[str, Any]:
    """Return the fields of a block's nodes without what each node has of its own."""
    return {
        "cpus": composed.get("cpus"),
        "memory": composed.get("memory"),
        "disk": composed.get("disk"),
        "gpu": _gpu(composed),
        "nic": _nic(composed),
        "port_group": composed.get("network", "port_group"),
        "numa_node": composed.get("numa"),
        "mmio_gib": composed.get("mmio_gib"),
        "peer_to_peer": composed.get("peer_to_peer", default=True),
        "latency": composed.get("latency", default=Latency.NORMAL),
        "hardware_version": composed.get("hardware_version"),
        "extra_config": composed.table("extra_config"),
    }


def _gpu(composed: ComposedBlock) -> GpuRequest:
    profile: str = composed.get("gpu", "profile", default="")
    kind: GpuKind | None = composed.get("gpu", "kind")
    return GpuRequest(
        kind=kind or gpu.kind_of(profile),
        profile=profile,
        device=composed.get("gpu", "device", default=""),
        label=composed.get("gpu", "label", default=""),
        count=composed.get("gpu", "count", default=1),
    )


def _nic(composed: ComposedBlock) -> NicRequest:
    return NicRequest(
        kind=composed.get("nic", "kind", default=NicKind.AUTO),
        model=composed.get("nic", "model", default=_DEFAULT_MODEL),
        count=composed.get("nic", "count", default=1),
        port_group=composed.get("nic", "port_group"),
    )
