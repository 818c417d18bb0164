"""The programs by which a guest in memory is administered: packages, kernel modules, services, users."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.fakes.program import Program, filled, operands
from tests.fakes.sh import NoMeaning, Streams

if TYPE_CHECKING:
    from tests.fakes.guest import FakeGuest


def identity(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    match words:
        case ["-u"]:
            streams.out += f"{guest.users.get(guest.acting, 1000)}\n"
        case ["-un"]:
            streams.out += f"{guest.acting}\n"
        case ["-u", name] if name in guest.users:
            streams.out += f"{guest.users[name]}\n"
        case ["-gn", name] if name in guest.users:
            streams.out += f"{name}\n"  # every user has a group of that name
        case ["-u" | "-gn", name]:
            streams.err += f"id: '{name}': no such user\n"
            return 1
        case _:
            raise NoMeaning(f"id {words}")
    return 0


def install(guest: FakeGuest, words: list[str], _streams: Streams) -> int:
    """Make a folder with mode and owner, or a copy of a file with its folders and its mode."""
    match words:
        case ["-d", "-m", mode, "-o", owner, "-g", group, folder]:
            guest.folders.add(folder)
            guest.folder_modes[folder] = (int(mode, 8), f"{owner}:{group}")
            return 0
        case ["-D", "-m", mode, source, target] if source in guest.files:
            guest.files[target] = replace(guest.files[source], mode=int(mode, 8))
            return 0
    raise NoMeaning(f"install {words}")


def dpkg_query(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    shape, status = "", 0
    for word in words:
        if word.startswith("-f="):
            shape = word.removeprefix("-f=").replace("\\n", "\n")
        elif word not in ("-W", "-f"):
            if word.startswith("${"):
                shape = word.replace("\\n", "\n")
                continue
            version = guest.packages.get(word)
            if version is None:
                streams.err += f"dpkg-query: no packages found matching {word}\n"
                status = 1
                continue
            known = {"db:Status-Abbrev": "ii ", "Status": "install ok installed", "Package": word, "Version": version}
            streams.out += filled(shape, r"\$\{([\w:-]+)\}", known)
    return status


def apt_get(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    rest, wanted = [], iter(words)
    for word in wanted:
        if word in ("-o", "-t"):
            next(wanted)
        elif not word.startswith("-"):
            rest.append(word)
    if rest[:1] == ["update"]:
        return 0
    if rest[:1] != ["install"]:
        raise NoMeaning(f"apt-get {words}")
    for each in rest[1:]:
        name, _, version = each.partition("=")
        if name not in guest.available or (version and guest.available[name] != version):
            streams.err += f"E: Unable to locate package {name}\n"
            return 100
    if guest.disk_full:
        streams.err += "E: You don't have enough free space in /var/cache/apt/archives/.\n"
        return 100
    guest.packages |= {each.partition("=")[0]: guest.available[each.partition("=")[0]] for each in rest[1:]}
    return 0


def modprobe(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    name = operands(words, "modprobe")[0].replace("-", "_")
    if name not in guest.loadable:
        streams.err += f"modprobe: FATAL: Module {words[0]} not found in directory /lib/modules/x\n"
        return 1
    guest.modules.add(name)
    return 0


def lsmod(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    streams.out += "Module                  Size  Used by\n" + "".join(
        f"{each} 16384 0\n" for each in sorted(guest.modules)
    )
    return 0


def systemctl(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    from tests.fakes.guest import Service  # noqa: PLC0415 - they know each other

    now = "--now" in words
    match [word for word in words if word not in ("--now", "-q", "--quiet")]:
        case ["daemon-reload"] | ["daemon-reexec"]:
            return 0
        case ["is-active", name]:
            active = name in guest.services and guest.services[name].active
            streams.out += "active\n" if active else "inactive\n"
            return 0 if active else 3
        case ["is-enabled", name]:
            enabled = name in guest.services and guest.services[name].enabled
            streams.out += "enabled\n" if enabled else "disabled\n"
            return int(not enabled)
        case [("enable" | "disable" | "start" | "stop" | "restart" | "reload") as verb, name]:
            if name not in guest.services:
                streams.err += f"Failed to {verb} {name}.service: Unit {name}.service not found.\n"
                return 5
            was = guest.services[name]
            active = (was.active or now) if verb == "enable" else was.active and not now
            guest.services[name] = {
                "enable": Service(active, enabled=True),
                "disable": Service(active, enabled=False),
                "stop": Service(active=False, enabled=was.enabled),
            }.get(verb, Service(active=True, enabled=was.enabled))
            return 0
    raise NoMeaning(f"systemctl {words}")


def sysctl(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    match [word for word in words if word != "-q"]:
        case ["-n", name] if name in guest.sysctls:
            streams.out += f"{guest.sysctls[name]}\n"
        case ["-n", name]:
            streams.err += f"sysctl: cannot stat /proc/sys/{name.replace('.', '/')}: No such file or directory\n"
            return 255
        case ["-w", pair]:
            name, _, value = pair.partition("=")
            guest.sysctls[name] = value
        case ["-p", path] if path in guest.files:
            pairs = (line.partition("=") for line in guest.files[path].text.splitlines() if "=" in line)
            guest.sysctls |= {name.strip(): value.strip() for name, _, value in pairs}
        case _:
            raise NoMeaning(f"sysctl {words}")
    return 0


KNOWN: dict[str, Program] = {
    "apt-get": apt_get,
    "dpkg-query": dpkg_query,
    "id": identity,
    "install": install,
    "lsmod": lsmod,
    "modprobe": modprobe,
    "systemctl": systemctl,
    "sysctl": sysctl,
}
