"""Lays out descriptions of public transcripts (tests/cases/transcripts) as their programs print them.

Written after what the pages show, and after the programs' sources where these are public: mstflint's mlxcfg_ui.cpp,
rdma-core's devinfo.c, MLNX_OFED's show_gids.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vsphere_ml.core.model.guest import CommandAnswer

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = Path(__file__).parents[1] / "cases" / "transcripts" / "transcripts.toml"
Described = dict[str, Any]


def list_transcripts(tool: str = "") -> list[Described]:
    """Return the descriptions of a program; of all when it is not given."""
    every: list[Described] = tomllib.loads(FILE.read_text())["transcript"]
    return [each for each in every if tool in {"", each["tool"]}]


def lay_out(described: Described) -> CommandAnswer:
    """Return what the program printed, with its exit status."""
    lines = _LAYOUTS[described["tool"]](described)
    return CommandAnswer(described.get("status", 0), "\n".join(lines) + "\n", described.get("error", ""))


def _mst(described: Described) -> Iterator[str]:
    yield "MST devices:" if "plain" in described else "PCI devices:"
    yield "------------"
    yield from described.get("plain", ())
    if "plain" not in described:
        yield "DEVICE_TYPE         MST                PCI        RDMA    NET                           NUMA"
    for kind, device, address, rest in described.get("rows", ()):
        yield f"{kind:<19} {device:<18} {address}            {rest}"


def _mlxconfig(described: Described) -> Iterator[str]:
    if not described["columns"]:
        return
    gap = described.get("gap", 16)
    yield from ("", "Device #1:", "----------", "", "Device type:    ConnectX", "")
    yield f"{'Configurations:':<45}" + "".join(f"{each:<{gap}}" for each in described["columns"])
    for name, *values in described["rows"]:
        star, bare = ("*", name[1:]) if name.startswith("*") else (" ", name)
        yield f"{star}        {bare:<36}" + "".join(f"{each:<{gap}}" for each in values)


def _licence(described: Described) -> Iterator[str]:
    for state in described["states"]:
        yield f"        License Status                    : {state}"


def _ibv_devinfo(described: Described) -> Iterator[str]:
    for device, state, largest, active in described["devices"]:
        yield f"hca_id:\t{device}"
        yield "\ttransport:\t\t\tInfiniBand (0)"
        if described.get("unopened"):
            yield "\tDevice ports:"
        yield "\t\tport:\t1"
        yield f"\t\t\tstate:\t\t\t{state}"
        yield f"\t\t\tmax_mtu:\t\t{largest}"
        yield f"\t\t\tactive_mtu:\t\t{active}"
        yield "\t\t\tlink_layer:\t\tEthernet"
        for each in described.get("more", ()):
            name, _, value = each.partition(": ")
            yield f"\t\t\t{name}:\t\t{value}"


def _ats(described: Described) -> Iterator[str]:
    yield from (f"\t\t{line}" for line in described["lines"])


def _show_gids(described: Described) -> Iterator[str]:
    between = "\t" if described.get("tabs") else "  "
    yield between.join(("DEV", "PORT", "INDEX", "GID", "IPv4", "VER", "DEV"))
    yield between.join(("---", "----", "-----", "---", "------------", "---", "---"))
    for device, port, index, address, version, interface in described["rows"]:
        gid = _mapped(address) if address else "fe80:0000:0000:0000:a288:c2ff:fe5b:03ec"
        yield between.join((device, str(port), str(index), gid, address, version, interface))
    yield f"n_gids_found={len(described['rows'])}"


def _mapped(address: str) -> str:
    numbers = [int(each) for each in address.split(".")]
    return f"0000:0000:0000:0000:0000:ffff:{numbers[0]:02x}{numbers[1]:02x}:{numbers[2]:02x}{numbers[3]:02x}"


def _topology(described: Described) -> Iterator[str]:
    between = "\t" if described.get("tabs") else "    "
    gpus = [f"GPU{at}" for at in range(described["gpus"])]
    tail = {"CPU Affinity": "0-55,112-167", "NUMA Affinity": "0", "GPU NUMA ID": "N/A"}
    yield between.join(("", *gpus, *described["nics"], *described["tail"]))
    for at, cells in enumerate(described["rows"]):
        yield between.join((gpus[at], *cells[:at], " X ", *cells[at:], *(tail[each] for each in described["tail"])))
    yield ""
    yield "Legend:"
    yield "  X    = Self"


def _lspci(described: Described) -> Iterator[str]:
    for address, kind, ids, more in described["rows"]:
        yield f"{address} {kind}: {ids}{more}"


def _esxcli(described: Described) -> Iterator[str]:
    kind = f'xmlns="urn:vim25" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="{described["kind"]}"'
    yield f"<obj {kind}>"
    yield from (f"<{name}>{text}</{name}>" for name, text in described.get("object", ()))
    for row in described.get("rows", ()):
        yield "<DataObject>" + "".join(f"<{name}>{text}</{name}>" for name, text in row) + "</DataObject>"
    yield "</obj>"


_LAYOUTS = {
    "esxcli": _esxcli,
    "mst": _mst,
    "mlxconfig": _mlxconfig,
    "licence": _licence,
    "ibv_devinfo": _ibv_devinfo,
    "ats": _ats,
    "show_gids": _show_gids,
    "topology": _topology,
    "lspci": _lspci,
}
