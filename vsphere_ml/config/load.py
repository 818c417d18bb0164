"""From a cluster file to a ClusterSpec, or to every mistake in it at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from vsphere_ml.config import document, schema, sizes
from vsphere_ml.config.hygiene import remove_secrets
from vsphere_ml.config.mistakes import Mistakes
from vsphere_ml.config.reading import read, report_unknown
from vsphere_ml.config.secrets.sources import one_source, source_of
from vsphere_ml.config.tables.guests import access, check_guests
from vsphere_ml.config.tables.hosts import access as hosts_access
from vsphere_ml.config.tables.hosts import check_host_config, check_hosts, host_config
from vsphere_ml.config.tables.nodes import NodeNames
from vsphere_ml.config.tables.paths import path_of
from vsphere_ml.config.tables.roce import check_roce, fabric
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.model.spec import (
    CloneKind,
    ClusterSpec,
    GuestAccess,
    Location,
    NodeSpec,
    Source,
    Spread,
    VCenterSpec,
)

if TYPE_CHECKING:
    from vsphere_ml.config.schema import FileTable
    from vsphere_ml.core.diagnostics import Diagnostic

T = TypeVar("T", bound="FileTable")


def load(path: Path) -> ClusterSpec:
    """Return the cluster a file describes; ConfigError with every mistake, or `config.unreadable`."""
    path = Path(path)
    return load_text(document.text_of(path), path)


def load_text(text: str, file: Path | str = "cluster.toml") -> ClusterSpec:
    """Return the cluster a text describes; its relative paths are relative to the folder of `file`."""
    raw = document.values_of(text, str(file))
    try:
        mistakes = Mistakes(str(file), text)
        values = remove_secrets(raw, mistakes)
        sizes.check(values, mistakes)
        sections = _Sections(values, mistakes)
        spec = _spec(sections, Path(file), mistakes)
    except RecursionError:
        raise document.too_deep(str(file)) from None
    mistakes.check()
    if spec is None:
        raise AssertionError("a file without mistakes has every section it needs")
    return spec


def mistakes_of(text: str, file: Path | str) -> tuple[Diagnostic, ...]:
    """Return the mistakes of a text, none when it is a whole cluster file."""
    try:
        load_text(text, file)
    except ConfigError as error:
        return error.problems
    return ()


class _Sections:
    """The file's top-level tables, each read on its own, so that one's mistakes do not hide another's."""

    def __init__(self, raw: dict[str, Any], mistakes: Mistakes) -> None:
        self.raw = raw
        self.mistakes = mistakes
        for key in raw:
            if key not in schema.ClusterFile.model_fields:
                report_unknown((key,), schema.ClusterFile.model_fields, mistakes, "table")

    def one(self, name: str, model: type[T]) -> T | None:
        """Return a table, or None when it is not there or wrong."""
        return read(model, self.raw[name], (name,), self.mistakes) if name in self.raw else None

    def needed(self, name: str, model: type[T], example: str) -> T | None:
        """Return a table; without it there is a mistake."""
        if name not in self.raw and not self.mistakes.is_reported((name,)):
            self.mistakes.add((name,), "is missing", example)
        return self.one(name, model)

    def profiles(self) -> dict[str, schema.NodeKeys | None]:
        raw = self.raw.get("profile", {})
        if not isinstance(raw, dict):
            self.mistakes.add(("profile",), "expected tables such as [profile.big]")
            return {}
        return {name: read(schema.NodeKeys, each, ("profile", name), self.mistakes) for name, each in raw.items()}

    def nodes(self) -> list[tuple[int, schema.Nodes]]:
        raw = self.raw.get("nodes", [])
        if not isinstance(raw, list) or not raw:
            if not self.mistakes.is_reported(("nodes",)):
                text = (
                    "expected [[nodes]], in double brackets" if raw else "there are none; write at least one [[nodes]]"
                )
                self.mistakes.add(("nodes",), text)
            return []
        blocks = [(at, read(schema.Nodes, each, ("nodes", at), self.mistakes)) for at, each in enumerate(raw)]
        return [(at, block) for at, block in blocks if block is not None]


def _spec(sections: _Sections, file: Path, mistakes: Mistakes) -> ClusterSpec | None:
    cluster = sections.needed("cluster", schema.ClusterTable, '[cluster] with name = "…"')
    source = sections.needed("source", schema.SourceTable, '[source] with template = "…"')
    vcenter = sections.one("vcenter", schema.VCenterTable) or schema.VCenterTable()
    location = sections.one("location", schema.LocationTable) or schema.LocationTable()
    guest = sections.one("guest", schema.GuestTable)
    nodes = _nodes(sections, mistakes)
    _check_login(vcenter, mistakes)
    hosts = sections.one("hosts", schema.HostsTable)
    check_hosts(hosts, mistakes)
    roce = sections.one("roce", schema.Roce)
    configuration = host_config(sections.one("host_config", schema.HostConfigTable))
    check_host_config(configuration, mistakes)
    check_roce(roce, guest, configuration, mistakes)
    if guest is not None:
        check_guests(guest, [node.name for node in nodes], mistakes)
    if source is not None:
        _check_source(source, mistakes)
    if cluster is None or source is None:
        return None
    _one_spread(cluster, mistakes)
    anti_affinity = cluster.spread is Spread.SPREAD if cluster.anti_affinity is None else cluster.anti_affinity
    return ClusterSpec(
        name=cluster.name,
        vcenter=_vcenter(vcenter, file.parent),
        location=_location(location),
        source=_source(source, file.parent),
        nodes=nodes,
        spread=cluster.spread,
        anti_affinity=anti_affinity,
        guest=access(guest, file.parent) if guest is not None else GuestAccess(),
        hosts=hosts_access(hosts, file.parent),
        roce=fabric(roce, guest),
        host_config=configuration,
        file=file,
    )


def _source(table: schema.SourceTable, base: Path) -> Source:
    return Source(
        template=table.template or "",
        library=table.library or "",
        item=table.item or "",
        ovf=str(path_of(table.ovf, base) or ""),
        clone=table.clone,
    )


def _nodes(sections: _Sections, mistakes: Mistakes) -> tuple[NodeSpec, ...]:
    defaults = sections.one("defaults", schema.NodeKeys)
    roster = NodeNames(defaults, sections.profiles(), mistakes)
    for index, block in sections.nodes():
        roster.add(("nodes", index), block)
    roster.check_gateways()
    return tuple(roster.nodes)


def _check_source(source: schema.SourceTable, mistakes: Mistakes) -> None:
    """Report what is missing in [source], or is too much: a template, a library with its item, or an OVF file."""
    keys = [key for key in ("library", "item") if getattr(source, key) is not None]
    others = [key for key in ("template", "ovf") if getattr(source, key) is not None]
    if len(others) + bool(keys) > 1:
        mistakes.add(
            ("source", keys[0] if keys else others[-1]), f"there is a `{others[0]}` already; leave one of them out"
        )
    elif len(keys) == 1:
        other = "item" if keys == ["library"] else "library"
        mistakes.add(("source", keys[0]), f"`{other}` is missing: it takes both to name an item")
    elif not others and not keys and not mistakes.is_reported(("source", "template")):
        mistakes.add(("source", "template"), "is missing", 'template = "…", library = "…" and item = "…", or ovf = "…"')
    if source.ovf is not None and source.clone is CloneKind.LINKED:
        mistakes.add(("source", "clone"), "a linked clone starts from a snapshot, which a deployed template has not")


def _check_login(vcenter: schema.VCenterTable, mistakes: Mistakes) -> None:
    """Report which keys of [vcenter] exclude each other."""
    others = sorted(vcenter.model_fields_set - {"lab"})
    if vcenter.lab is not None and others:
        mistakes.add(
            ("vcenter", "lab"),
            f"a lab brings its own connection; leave out {', '.join(f'`{each}`' for each in others)}, or `lab`",
        )
    verified = [name for name in ("ca_file", "thumbprint") if getattr(vcenter, name) is not None]
    if vcenter.insecure and verified:
        mistakes.add(("vcenter", "insecure"), f"contradicts `{verified[0]}`; leave one of them out")
    one_source(vcenter.password, ("vcenter", "password"), mistakes)


def _one_spread(cluster: schema.ClusterTable, mistakes: Mistakes) -> None:
    if cluster.anti_affinity and cluster.spread is Spread.PACK:
        mistakes.add(
            ("cluster", "anti_affinity"), 'keeps nodes on different hosts, and spread = "pack" puts them together'
        )


def _vcenter(table: schema.VCenterTable, base: Path) -> VCenterSpec:
    return VCenterSpec(
        server=table.server,
        username=table.username,
        password=source_of(table.password, base),
        ca_file=path_of(table.ca_file, base),
        thumbprint=table.thumbprint,
        insecure=bool(table.insecure),
        lab=table.lab,
    )


def _location(table: schema.LocationTable) -> Location:
    return Location(
        datacenter=table.datacenter,
        cluster=table.cluster,
        hosts=tuple(table.hosts or ()),
        folder=table.folder,
        pool=table.pool,
        datastore=table.datastore,
        storage_policy=table.storage_policy,
    )
