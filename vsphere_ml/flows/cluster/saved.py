"""A plan as a file: written today, carried out later, refused when the site or the file has changed since.

A saved plan is never decoded into changes. A fresh plan is made and must say the same, word for word; so a file that
somebody edited can ask for nothing that vsml would not do anyway.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NewType, TypeAlias, TypedDict

from vsphere_ml.core import codec, json_memory, json_text
from vsphere_ml.core.errors import ConfigError, NotPossible
from vsphere_ml.core.model.spec import Evacuation
from vsphere_ml.core.nodes.firstboot import FirstBoot, in_words
from vsphere_ml.core.plan.describe import describe_saved
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.core.model.inventory import HostRef, Inventory, PciAddress
    from vsphere_ml.core.model.placement import Locality, NodePlacement, Pairing
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.plan.plan import Plan
    from vsphere_ml.flows.cluster.proposal import Proposal
    from vsphere_ml.flows.guests.configure import GuestPlan

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
# A change's fields by name, and its kind as `change`; a dataclass among them has its own kind as `type`.
SavedChange = NewType("SavedChange", dict[str, Any])

SCHEMA = "vsml.plan/4"
HOSTS = "hosts"  # the stage before all others


class FirstBootForm(TypedDict):
    """A new guest's first-boot data; the data itself is there by its digest alone."""

    type: Literal["FirstBoot"]
    by: Literal["cloud-init", "customization"]
    user: str
    address: str
    digest: str


class SavedStage(TypedDict):
    """A stage of a plan; changes to one VM keep their order, a change to the site waits for all before it."""

    title: str
    changes: list[SavedChange]


class _SavedPlaybook(TypedDict):
    name: str
    digest: str


class _SavedGuests(TypedDict):
    """What playbooks change in guests: `pending` by node as `playbook: step`; `after_boot`: nodes that do not run."""

    playbooks: list[_SavedPlaybook]
    after_boot: list[str]
    unreachable: list[str]
    pending: dict[str, list[str]]


class _SavedPlacement(TypedDict):
    """Where a node sits: the GPUs that are counted on, and the NICs' physical functions."""

    node: str
    host: HostRef
    host_name: str
    numa_node: int | None
    pairing: Pairing
    profile: str
    gpus: tuple[PciAddress, ...]
    nics: tuple[PciAddress, ...]
    locality: Locality
    why: str


class SavedDocument(TypedDict):
    """A plan for `vsml provision --plan`. It is never decoded into changes: a fresh plan must come out the same."""

    schema: str
    cluster: str
    spec: str
    only: list[str]
    site: str
    stages: list[SavedStage]
    guests: _SavedGuests | None
    placements: list[_SavedPlacement]
    notes: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReadStage:
    """One stage of it; each change by its kind and fields."""

    title: str
    changes: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPlan:
    """What a plan file says."""

    cluster: str
    spec: str  # digest of the spec it was made from
    site: str  # which vCenter and data centre
    stages: tuple[_ReadStage, ...]
    guests: Any  # None: they are left alone
    placements: tuple[Any, ...]
    notes: tuple[str, ...]
    only: tuple[str, ...] = ()  # the nodes that were asked for; none: all
    file: str = ""  # that it was read from


def save(proposal: Proposal, spec: ClusterSpec) -> str:
    """Return the plan as the text of a file. It holds no secret: a spec has none."""
    document: SavedDocument = {
        "schema": SCHEMA,
        "cluster": spec.name,
        "spec": digest(spec),
        "only": list(spec.only_names),
        "site": site_of(proposal.inventory),
        "stages": stages_of(proposal.plan),
        "guests": guests_of(proposal.guests),
        "placements": [_placement_fields(placement) for placement in proposal.plan.placements],
        "notes": list(proposal.plan.notes),
    }
    return json.dumps(codec.encode(document), indent=2, ensure_ascii=False) + "\n"


def load(text: str, file: str) -> SavedPlan:
    """Return a plan file's content; ConfigError `plan.unreadable` when it is none."""
    if json_memory.memory(text) > json_memory.MOST:
        raise _unreadable_error(file, f"reading it takes more than {json_memory.MOST >> 20} MiB of memory")
    try:
        document = json_text.parse(text)
    except ValueError as error:
        raise _unreadable_error(file, f"it is not JSON: {error}") from None
    if not isinstance(document, dict) or not str(document.get("schema", "")).startswith("vsml.plan/"):
        raise _unreadable_error(file, "it is not a plan that `vsml plan --save` wrote")
    if document["schema"] != SCHEMA:
        raise _unreadable_error(file, f"its schema is {document['schema']}, this vsml reads {SCHEMA}")
    del document["schema"]
    try:
        return replace(codec.decode(SavedPlan, document), file=file)
    except codec.Mismatch as error:
        raise _unreadable_error(file, str(error)) from None


def refuse_stale(saved: SavedPlan, proposal: Proposal, spec: ClusterSpec) -> None:
    """Raise NotPossible `plan.stale` unless this fresh proposal is the saved one."""
    inventory, fresh, guests = proposal.inventory, stages_of(proposal.plan), guests_of(proposal.guests)
    stages = codec.encode(saved.stages)
    if saved.cluster != spec.name:
        differs = [f"it is for cluster {saved.cluster}, not {spec.name}"]
    elif saved.site != site_of(inventory):
        differs = [f"it was made for {saved.site}, this is {site_of(inventory)}"]
    elif saved.only != spec.only_names:
        differs = [f"it is for {_words(list(saved.only)) if saved.only else 'all nodes'}"]
    elif saved.spec != digest(spec):
        differs = ["the cluster's file was changed since", *_differences(stages, fresh)]
    elif stages != fresh:
        differs = _differences(stages, fresh)
    elif saved.guests != guests:
        differs = list(_guest_differences(saved.guests, guests))
    else:
        return
    raise NotPossible(
        f"the plan in {saved.file} is not what would be done now",
        code="plan.stale",
        target=saved.file,
        hint="save a new one with `vsml plan --save`, and look at it",
        details=tuple(differs),
    )


def digest(spec: ClusterSpec) -> str:
    """Return a fingerprint of the spec: where the file lies and how vCenter is reached do not matter."""
    guest = (spec.guest.user, spec.guest.first_boot, spec.guest.domain, spec.guest.playbooks, spec.guest.settings)
    ready: dict[str, object] = {
        "kinds": sorted(spec.host_config.kinds),
        "virtual_functions": spec.host_config.virtual_functions,
    }
    if spec.host_config.evacuate is not Evacuation.SHUT_DOWN:  # fingerprints of plans without it stay as they were
        ready |= {"evacuate": spec.host_config.evacuate}
    asked = (ready,) if spec.host_config else ()
    source = replace(spec.source, ovf=spec.source.ovf.rpartition("/")[2])
    wanted = (spec.name, spec.location, source, spec.nodes, spec.spread, spec.anti_affinity, guest, *asked)
    text = json.dumps([_encode_value(part) for part in wanted], sort_keys=True)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def site_of(inventory: Inventory) -> str:
    return f"{inventory.about}, data centre {inventory.datacenter}"


def stages_of(plan: Plan) -> list[SavedStage]:
    """Return a plan's stages as a file and `-o json` show them."""
    stages: tuple[tuple[str, tuple[object, ...]], ...] = (
        (HOSTS, plan.host_changes),
        *((stage.title, stage.changes) for stage in plan.stages),
    )
    return [
        {"title": title, "changes": [_encode_change(change) for change in changes]}
        for title, changes in stages
        if changes
    ]


def _encode_change(change: object) -> SavedChange:
    fields = {key: _encode_value(each) for key, each in _fields(change).items()}
    return SavedChange({"change": type(change).__name__, **fields})


def guests_of(plan: GuestPlan | None) -> _SavedGuests | None:
    """Return what is missing in guests as a plan file shows it: steps by name, since the words may differ each time."""
    if plan is None:
        return None
    return {
        "playbooks": [{"name": book.name, "digest": book.digest} for book in plan.playbooks],
        "after_boot": list(plan.after_boot),
        "unreachable": [guest.node for guest in plan.unreachable],
        "pending": {
            guest.node: [f"{each.playbook}: {outcome.step}" for each in guest.convergences for outcome in each.pending]
            for guest in plan.guests
            if guest.is_pending
        },
    }


def _guest_differences(saved: Json, fresh: _SavedGuests | None) -> Iterator[str]:
    """Yield in words how what is missing in guests differs."""
    if not isinstance(saved, dict) or fresh is None:
        yield "the guests are left alone now" if fresh is None else "the guests were left alone in it"
        return
    if saved.get("playbooks") != fresh["playbooks"]:
        yield "the playbooks were changed since"
    for key, what, present in (
        ("after_boot", "guests that boot first", fresh["after_boot"]),
        ("unreachable", "guests that cannot be asked", fresh["unreachable"]),
    ):
        if saved.get(key) != present:
            yield f"{what}: {_words(present)} now, {_words(saved.get(key))} in the plan"
    before, now = saved.get("pending"), fresh["pending"]
    if isinstance(before, dict):
        for node in sorted({*before, *now}):
            if before.get(node) != now.get(node):
                yield f"{node} needs {_words(now.get(node))} now, {_words(before.get(node))} in the plan"


def _words(value: object) -> str:
    return ", ".join(str(each) for each in value) if isinstance(value, list) and value else "none"


def _placement_fields(placement: NodePlacement) -> _SavedPlacement:
    """Return a placement without the picture of the VM that exists there."""
    return {
        "node": placement.node.name,
        "host": placement.host,
        "host_name": placement.host_name,
        "numa_node": placement.numa_node,
        "pairing": placement.pairing,
        "profile": placement.profile,
        "gpus": placement.gpus,
        "nics": placement.nics,
        "locality": placement.locality,
        "why": placement.why,
    }


def _fields(value: object) -> dict[str, Any]:
    """Return a dataclass's fields, mappings in the order of their keys: equal plans are equal texts."""
    fields = codec.fields(value).items()
    return {key: dict(sorted(each.items())) if isinstance(each, Mapping) else each for key, each in fields}


def _encode_value(value: object) -> Json:
    encoded: Json = codec.encode(value, _saved_form)
    return encoded


def _saved_form(value: object) -> object:
    """Return what a plan file has for a value: a dataclass with its type's name, for members of a union.

    First-boot data is there by its digest alone.
    """
    match value:
        case FirstBoot():
            return _first_boot_form(value)
        case _ if dataclasses.is_dataclass(value):
            return {"type": type(value).__name__, **_fields(value)}
        case _:
            return str(value)


def _first_boot_form(data: FirstBoot) -> FirstBootForm:
    return {
        "type": "FirstBoot",
        "by": "cloud-init" if data.customization is None else "customization",
        "user": data.user,
        "address": in_words(data.address),
        "digest": data.digest,
    }


def _differences(saved: Sequence[SavedStage], fresh: Sequence[SavedStage]) -> list[str]:
    """Return what only one of the two plans would do, in words."""
    before, now = _by_title(saved), _by_title(fresh)
    gone = [f"no longer needed: {title}" for title in before if title not in now]
    new = [f"needed now: {title}" for title in now if title not in before]
    other = [f"other than planned: {title}" for title in now if title in before and before[title] != now[title]]
    return [*gone, *new, *other] or ["the same changes in another order"]


def _by_title(stages: Sequence[SavedStage]) -> dict[str, Any]:
    changes = [change for stage in stages for change in stage["changes"]]
    return {describe_saved(str(change.get("change", "?")), change): change for change in changes}


def _unreadable_error(file: str, why: str) -> ConfigError:
    return ConfigError(
        f"{file} cannot be read as a plan: {why}",
        code="plan.unreadable",
        target=file,
        hint="write one with `vsml plan --save FILE`",
    )
