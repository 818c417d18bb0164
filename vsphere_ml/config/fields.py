"""Kinds of values in a cluster file. Each refuses in our words; none repeats what may be a secret."""

from __future__ import annotations

import re
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, ip_address, ip_interface
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator
from pydantic_core import PydanticCustomError

from vsphere_ml.config.secrets import thumbprints
from vsphere_ml.config.tables import ranges
from vsphere_ml.core.catalog import reserved_keys
from vsphere_ml.core.model.device_kinds import GpuKind, NicKind
from vsphere_ml.core.model.spec import HostKeys
from vsphere_ml.core.nearest import nearest_name
from vsphere_ml.core.nodes import gpu
from vsphere_ml.core.plan.describe import clip as clip  # noqa: PLC0414 - its readers are this module's
from vsphere_ml.core.tools.roce import MTUS
from vsphere_ml.core.units import GIB, MIB, Bytes, parse_size

if TYPE_CHECKING:
    from collections.abc import Callable

OURS = "vsml"  # the type of every refusal made here
LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.IGNORECASE | re.ASCII)
_SERVER = re.compile(r"(?:\[[0-9a-f:.]+\]|[a-z0-9]([a-z0-9.-]*[a-z0-9])?)(?::(\d{1,5}))?", re.IGNORECASE | re.ASCII)
_ENVIRONMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}=?")
_MEMORY_STEP = 4 * MIB
_MOST_DISK = 62 << 40  # bytes of a virtual disk: VMware's KB 2058287
# Nobody documents a limit: this is what 64 GPUs take by the largest figure of NVIDIA's table (core/boards.py).
_MOST_MMIO_GIB = 32768
_PORTS = 65536
_THIS_NETWORK = IPv4Network("0.0.0.0/8")
# Of a VM since ESXi 7.0 Update 1, by "Maximum Virtual Machine Memory" of VMware's Virtual Machine Administration 7.0
# (GUID-81E25CBB-16D9-416B-AD6F-5A96D7CD0A2D); "24 TB" in other pages is this, rounded.
_MOST_MEMORY = 24560 * GIB
_HOST = re.compile(
    r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?\.?|[0-9a-f]*:[0-9a-f:.]+(%[a-z0-9_.-]+)?", re.IGNORECASE | re.ASCII
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")  # XML carries none of them
_DOMAIN = re.compile(rf"({LABEL.pattern})(\.({LABEL.pattern}))*\.?", re.IGNORECASE | re.ASCII)
_PLAYBOOKS = 64
_SETTINGS = 256  # of one table: each node of a block carries them


def refuse(message: str, hint: str = "") -> NoReturn:
    """Refuse a value with a sentence of ours."""
    raise PydanticCustomError(OURS, "{message}", {"message": message, "hint": hint})


def value_kind(value: object) -> str:
    """Return what kind of thing a TOML value is, in words; never the value itself."""
    if value == []:
        return "an empty list"
    kinds: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a fraction", str: "text"}
    kinds |= {list: "a list", dict: "a table"}
    return kinds.get(type(value), "a date or a time")


def refuse_type(expected: str, value: object) -> NoReturn:
    refuse(f"expected {expected}, found {value_kind(value)}")


def _parse_text(call: Callable[[str], Any], value: str) -> Any:
    """Return what a function of the core makes of a text; its ValueError becomes our refusal."""
    try:
        return call(value)
    except ValueError as error:
        return refuse(clip(str(error), 300))


def _text(value: str) -> str:
    if not value.strip():
        refuse("is empty")
    if not value.isprintable():
        refuse("has characters in it that cannot be printed")
    return value


def _size(value: object) -> Bytes:
    if not isinstance(value, str):
        refuse_type("a size in quotes such as 64GiB", value)
    size: Bytes = _parse_text(parse_size, value)
    if size <= 0:
        refuse(f"`{clip(value)}` is nothing; write a size such as 64GiB")
    return size


def _memory(value: object) -> Bytes:
    size = _size(value)
    if size > _MOST_MEMORY:
        refuse(f"`{clip(str(value))}` is more than the {_MOST_MEMORY // GIB} GiB that a VM can have")
    if size % _MEMORY_STEP:
        refuse(f"`{clip(str(value))}` is not a multiple of 4 MiB, as vSphere wants a VM's memory")
    return size


def _label(value: str) -> str:
    if not LABEL.fullmatch(value):
        refuse(f"`{clip(value)}` is not a name; use letters, digits and hyphens, at most 63, no hyphen at either end")
    return value


def _host(value: str) -> str:
    if not _HOST.fullmatch(value):
        refuse(f"`{clip(value)}` is neither a host name nor an address")
    return value


def _domain(value: str) -> str:
    if not _DOMAIN.fullmatch(value):
        refuse(f"`{clip(value)}` is not a domain; write one such as train.example.com")
    return value


def _names(value: object) -> list[str]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(each, str) for each in texts):
        refuse_type('text such as "node-[01-16]", or a list of names', value)
    return texts


def _addresses(value: object) -> tuple[str, ...]:
    """Return the addresses, ranges expanded; none at all for `dhcp`."""
    if value == "dhcp":
        return ()
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(each, str) for each in texts):
        refuse('expected "dhcp", an address such as "10.0.0.11/24", a range such as "10.0.0.[11-26]/24", or a list')
    return tuple(_address(each) for text in texts for each in _parse_text(ranges.expand, text))


def _address(text: str) -> str:
    try:
        interface = ip_interface(text)
    except ValueError:
        refuse(f"`{clip(text)}` is not an address with a prefix; write one such as 10.0.0.11/24")
    if "/" not in text:
        refuse(f"`{clip(text)}` has no prefix; write how long the network's is, such as {text}/24")
    if (why := _refusal(interface)) is not None:
        refuse(f"`{text}` {why}")
    bits = interface.max_prefixlen - interface.network.prefixlen  # that tell the network's addresses apart
    if bits > 1 and int(interface) & ((1 << bits) - 1) in {0, (1 << bits) - 1}:
        refuse(f"`{text}` is the network's own or its broadcast address, not one of a node")
    return interface.with_prefixlen


def _refusal(interface: IPv4Interface | IPv6Interface) -> str | None:
    """Return why no node can have this address."""
    ip = interface.ip
    if interface.network.prefixlen == 0:
        return "has a prefix of 0, which makes the whole internet its network"
    if ip.is_loopback or ip.is_multicast or ip.is_unspecified:
        kind = "loopback" if ip.is_loopback else "multicast" if ip.is_multicast else "unspecified"
        return f"is a {kind} address, not one of a node" if kind != "unspecified" else "is no address of a node"
    if ip.version == 4 and (ip in _THIS_NETWORK or ip.is_reserved):  # noqa: PLR2004
        return "is reserved, not an address of a node"
    return None


def _ip(value: str) -> str:
    try:
        return str(ip_address(value))
    except ValueError:
        return refuse(f"`{clip(value)}` is not an IP address")


def choice(kind: type[Any]) -> Callable[[object], Any]:
    """Return a check that takes the values of an enumeration."""
    return lambda value: _choice(value, kind)


def _choice(value: object, kind: type[Any], shown: list[Any] | None = None) -> Any:
    """Return the value of an enumeration; only the values in `shown` are offered in a refusal."""
    known = [f"`{each}`" for each in shown or kind]
    if not isinstance(value, str):
        refuse_type(f"{'one of ' if len(known) > 1 else ''}{', '.join(known)}", value)
    if value in {str(each) for each in kind}:
        return kind(value)
    near = nearest_name(value, [str(each) for each in kind])
    meant = f"; did you mean `{near}`?" if near else ""
    return refuse(f"`{clip(value)}` is {'none of' if len(known) > 1 else 'not'} {', '.join(known)}{meant}")


def _profile(value: str) -> str:
    refusal = _parse_text(gpu.profile_refusal, value)
    if refusal is not None:
        refuse(clip(refusal, 300))
    return value.strip()


def _gpu_device(value: str) -> str:
    _parse_text(gpu.device_ids, value)
    return value.strip()


def _model(value: str) -> str:
    if not re.search(r"[A-Za-z0-9]", value):
        refuse(f"`{clip(value)}` is not a model; write one such as ConnectX-6 Dx")
    return value


def _numa(value: object) -> int | None:
    if value == "auto":
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        refuse('expected "auto" or the number of a NUMA node, 0 or more')
    return value


def _mmio(value: int) -> int:
    if value < 2 or value & (value - 1):  # noqa: PLR2004
        refuse(f"{clip(str(value), 20)} is not a power of two; write GiB such as 128, 256 or 512")
    if value > _MOST_MMIO_GIB:
        refuse(f"{clip(str(value), 20)} GiB is more than {_MOST_MMIO_GIB} GiB, which no VM needs", "leave it out")
    return value


def _disk(value: object) -> Bytes:
    size = _size(value)
    if size > _MOST_DISK:
        refuse(f"`{clip(str(value), 40)}` is more than 62 TiB, the most that vSphere gives a virtual disk")
    return size


def _server(value: str) -> str:
    """Return `host` or `host:port`; a URL's scheme and `/sdk` are dropped."""
    if "@" in value:
        refuse("has a user in it; write host or host:port", "put the user into vcenter.username")
    bare = value.removeprefix("https://").removesuffix("/").removesuffix("/sdk")
    match = _SERVER.fullmatch(bare)
    if match is None or (match[2] and not 0 < int(match[2]) < _PORTS):
        refuse(f"`{clip(value)}` is not a server; write host or host:port, such as vcenter.example.com")
    return bare


def _thumbprint(value: str) -> str:
    try:
        return thumbprints.tidy(value)
    except ValueError as error:
        return refuse(str(error), thumbprints.HINT)


def _environment(value: str) -> str:
    if not _ENVIRONMENT.fullmatch(value):
        refuse("is not the name of an environment variable", 'env = "VSML_VCENTER_PASSWORD"')
    return value


def _one_of_three(value: object) -> object:
    if not isinstance(value, dict):
        refuse("expected where the secret is, not the secret itself", 'password = { env = "VSML_VCENTER_PASSWORD" }')
    return value


def _extra_key(value: str) -> str:
    if not value.strip() or not value.isprintable():
        refuse("is not the name of a setting")
    if value.casefold().startswith("guestinfo.vsml."):
        refuse("is one of vsml's own marks, and cannot be set")
    if (instead := reserved_keys.refusal(value)) is not None:
        refuse(*instead)
    return value


def _setting(value: str) -> str:
    if _CONTROLS.search(value):
        refuse("has control characters in it, which vCenter does not take")
    return value


def _settings(value: dict[str, str]) -> dict[str, str]:
    if len(value) > _SETTINGS:
        refuse(f"has {len(value)} settings; at most {_SETTINGS} are possible")
    return value


def _limit_playbooks(value: list[str]) -> list[str]:
    if len(value) > _PLAYBOOKS:
        refuse(f"names {len(value)} playbooks; at most {_PLAYBOOKS} are possible")
    return value


def _check_placing(value: object) -> list[str] | dict[str, str]:
    if isinstance(value, dict) and value and all(isinstance(each, str) and each for each in value.values()):
        return {name: _text(host) for name, host in value.items()}
    if isinstance(value, list) and value and all(isinstance(each, str) and each for each in value):
        for each in value:
            _text(each)
        return [name for each in value for name in _parse_text(ranges.expand, each)]
    return refuse('expected a list of host names, or a table such as { node-01 = "esx-03" }')


def _patterns(value: list[str]) -> list[str]:
    return [name for each in value for name in (_parse_text(ranges.expand, each) if ranges.is_range(each) else [each])]


def _fingerprint(value: str) -> str:
    if not _FINGERPRINT.fullmatch(value):
        refuse(
            "is not the fingerprint of an SSH host key; write it as `ssh-keygen -l` prints it, SHA256:…",
            "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub",
        )
    return value.rstrip("=")


def _host_keys(value: object) -> HostKeys | dict[str, str]:
    if isinstance(value, dict) and value and all(isinstance(each, str) for each in value.values()):
        return {name: _fingerprint(each) for name, each in value.items()}
    kind: HostKeys = _choice(value, HostKeys)
    return kind


def _esx_host_keys(value: object) -> HostKeys | dict[str, str]:
    if isinstance(value, dict):
        return _host_keys(value)
    kind: HostKeys = _choice(value, HostKeys, shown=[HostKeys.PINNED, HostKeys.FIRST_USE])
    if kind is HostKeys.PUBLISHED:
        refuse("ESXi hosts do not publish their SSH host keys to vCenter", '{ "esx-01.example.com" = "SHA256:…" }')
    return kind


Text = Annotated[str, AfterValidator(_text)]
Host = Annotated[Text, AfterValidator(_host)]
Domain = Annotated[Text, AfterValidator(_domain)]
Label = Annotated[str, AfterValidator(_label)]
Size = Annotated[Bytes, PlainValidator(_size, json_schema_input_type=str)]
Disk = Annotated[Bytes, PlainValidator(_disk, json_schema_input_type=str)]
Memory = Annotated[Bytes, PlainValidator(_memory, json_schema_input_type=str)]
Names = Annotated[list[str], PlainValidator(_names, json_schema_input_type=str | list[str])]
Addresses = Annotated[tuple[str, ...], PlainValidator(_addresses, json_schema_input_type=str | list[str])]
Ip = Annotated[str, AfterValidator(_ip)]
GpuKindField = Annotated[GpuKind, PlainValidator(choice(GpuKind), json_schema_input_type=GpuKind)]
NicKindField = Annotated[NicKind, PlainValidator(choice(NicKind), json_schema_input_type=NicKind)]
Profile = Annotated[Text, AfterValidator(_profile)]
GpuDevice = Annotated[Text, AfterValidator(_gpu_device)]
Model = Annotated[Text, AfterValidator(_model)]
Numa = Annotated[int | None, PlainValidator(_numa, json_schema_input_type=int | Literal["auto"])]
Mmio = Annotated[int, AfterValidator(_mmio)]
Server = Annotated[Text, AfterValidator(_server)]
Thumbprint = Annotated[Text, AfterValidator(_thumbprint)]
Fingerprint = Annotated[Text, AfterValidator(_fingerprint)]
HostKeysField = Annotated[
    HostKeys | dict[str, str], PlainValidator(_host_keys, json_schema_input_type=HostKeys | dict[str, str])
]
EsxHostKeysField = Annotated[
    HostKeys | dict[str, str], PlainValidator(_esx_host_keys, json_schema_input_type=HostKeys | dict[str, str])
]
Environment = Annotated[Text, AfterValidator(_environment)]
Setting = Annotated[str, AfterValidator(_setting)]
ExtraConfig = Annotated[dict[Annotated[str, AfterValidator(_extra_key)], Setting], AfterValidator(_settings)]
Playbooks = Annotated[list[Text], AfterValidator(_limit_playbooks)]
Placing = Annotated[
    list[str] | dict[str, str], PlainValidator(_check_placing, json_schema_input_type=list[str] | dict[str, str])
]
HostPatterns = Annotated[list[Text], AfterValidator(_patterns)]
WhereTheSecretIs = BeforeValidator(_one_of_three)
Cpus = Annotated[int, Field(ge=1, le=960)]
Count = Annotated[int, Field(ge=1, le=ranges.MOST)]
GpuCount = Annotated[int, Field(ge=1, le=16)]
VirtualFunctions = Annotated[int, Field(ge=1, le=127)]  # of a port: the most that NVIDIA's driver hands out
Port = Annotated[int, Field(ge=1, lt=_PORTS)]
NicCount = Annotated[int, Field(ge=1, le=8)]
Priority = Annotated[int, Field(ge=0, le=7)]  # of IEEE 802.1p
Dscp = Annotated[int, Field(ge=0, le=63)]
Mtu = Annotated[int, Field(ge=MTUS[0], le=MTUS[-1])]
HardwareVersion = Annotated[int, Field(ge=17, le=99)]
