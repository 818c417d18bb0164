"""cloud-init's part in a lab guest: metadata and user data, as the shell commands of a boot."""

from __future__ import annotations

import base64
import gzip
from shlex import quote
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vsphere_ml.lab.guests.boot.firstboot import LabFirstBoot

_SSHD = """\
Port 22
HostKey /etc/ssh/ssh_host_ed25519_key
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
UseDNS no
PermitRootLogin prohibit-password
MaxStartups 200
MaxSessions 200
Subsystem sftp internal-sftp
AcceptEnv LANG LC_*
"""


def decode_guestinfo(extra_config: Mapping[str, str], name: str) -> dict[str, Any]:
    """Return `guestinfo.metadata` or `guestinfo.userdata` as it was before it was encoded; empty when not given."""
    return _mapping(_decode_text(extra_config, name))


def _decode_text(extra_config: Mapping[str, str], name: str) -> str:
    return _decode(extra_config.get(f"guestinfo.{name}", ""), extra_config.get(f"guestinfo.{name}.encoding", ""))


def _decode(text: str, encoding: str) -> str:
    """Undo the encodings that cloud-init's datasource VMware knows; any other is taken for none, as it does."""
    if encoding not in {"base64", "b64", "gzip+base64", "gz+b64"}:
        return text
    raw = base64.b64decode(text)
    return (gzip.decompress(raw) if encoding.startswith("gz") else raw).decode()


def _mapping(text: str) -> dict[str, Any]:
    """Return what YAML has as a mapping, empty when it is something else; ValueError when it is no YAML."""
    try:
        read = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {error}") from error
    return read if isinstance(read, dict) else {}


def userdata(extra_config: Mapping[str, str]) -> dict[str, Any]:
    """Return the cloud-config; empty for user data of another kind, which lab guests have no use for."""
    text = _decode_text(extra_config, "userdata")
    return _mapping(text) if text.startswith("#cloud-config") else {}


def hostname(metadata: Mapping[str, Any], fallback: str) -> str:
    """Return the guest's name."""
    return str(metadata.get("local-hostname") or metadata.get("hostname") or fallback)


def addresses(metadata: Mapping[str, Any], adapters: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Return the static addresses with their prefix lengths, by the number of each adapter that an entry matches."""
    return {
        number: str(each)
        for ethernet in _ethernets(metadata)
        for number, adapter in enumerate(adapters)
        if _matches(ethernet.get("match") or {}, number, adapter)
        for each in (ethernet.get("addresses") or ())[:1]
    }


def _matches(match: Mapping[str, Any], number: int, adapter: Mapping[str, Any]) -> bool:
    """Return whether netplan takes an adapter for the entry's; one without a match is taken for the first's.

    A PVRDMA adapter's network device is a vmxnet3 (Linux, vmw_pvrdma/pvrdma_main.c: function 0 of the same slot).
    """
    driver = "mlx5_core" if adapter.get("kind") in ("sriov", "passthrough") else "vmxnet3"
    seen = {"driver": driver, "macaddress": str(adapter.get("mac", "")).lower()}
    return all(str(value).lower() == seen.get(key) for key, value in match.items()) if match else number == 0


def nameservers(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the addresses of the name servers."""
    lists = [(each.get("nameservers") or {}).get("addresses") or () for each in _ethernets(metadata)]
    return tuple(str(address) for addresses in lists for address in addresses)


def _ethernets(metadata: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    network = metadata.get("network") or {}
    if isinstance(network, str):  # encoded by itself
        network = _mapping(_decode(network, str(metadata.get("network.encoding", ""))))
    return list((network.get("ethernets") or {}).values())


def boot(first_boot: LabFirstBoot, network: list[str]) -> str:
    """Return the commands of every boot; users, keys and files are made at the first one."""
    lines = [
        f"hostname {quote(first_boot.hostname)}",
        *network,
        'if [ "$first" ]; then',
        *_first_boot_files(first_boot),
        "fi",
    ]
    path = "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return "\n".join([*lines, path, ": >/run/vsml-lab/booted", ""])


def _first_boot_files(first_boot: LabFirstBoot) -> Iterator[str]:
    name, userdata = first_boot.hostname, first_boot.userdata
    names = f"{name}.{first_boot.domain} {name}" if first_boot.domain else name
    yield write_file("/etc/hostname", f"{name}\n")
    yield write_file("/etc/hosts", f"127.0.0.1 localhost\n127.0.1.1 {names}\n::1 localhost ip6-localhost\n")
    if first_boot.dns or first_boot.search:
        search = f"search {' '.join(first_boot.search)}\n" if first_boot.search else ""
        yield "rm -f /etc/resolv.conf"  # it may be a link to what the machine's resolver writes
        yield write_file("/etc/resolv.conf", search + "".join(f"nameserver {each}\n" for each in first_boot.dns))
    yield write_file("/etc/ssh/sshd_config", _SSHD)
    yield write_file("/root/.bashrc", "")
    # There is no way to the internet, so apt sees the lab's own packages and no others.
    yield write_file("/etc/apt/sources.list.d/vsml-lab.list", "deb [trusted=yes] file:/opt/vsml-lab ./\n")
    yield "ssh-keygen -q -t ed25519 -N '' -C '' -f /etc/ssh/ssh_host_ed25519_key"
    for user in userdata.get("users") or ():
        if isinstance(user, dict):
            yield from _user(user)
    for file in userdata.get("write_files") or ():
        yield write_file(str(file["path"]), str(file.get("content", "")), file_mode(file.get("permissions", "0644")))


def file_mode(permissions: object) -> str:
    """Return a file's mode in octal digits; unquoted, `0644` is an octal number of YAML 1.1, as it is to cloud-init."""
    return f"{permissions:04o}" if isinstance(permissions, int) else str(permissions)


def _user(user: Mapping[str, Any]) -> Iterator[str]:
    name = str(user["name"])
    shell = str(user.get("shell") or "/bin/bash")
    yield f"id {quote(name)} >/dev/null 2>&1 || useradd -m -s {quote(shell)} -k /nowhere {quote(name)}"
    # sshd without PAM takes `!`, which useradd writes, for a locked account.
    yield f"usermod -p '*' {quote(name)}"
    keys = "".join(f"{key}\n" for key in user.get("ssh_authorized_keys") or ())
    yield f"user_home=$(getent passwd {quote(name)} | cut -d: -f6)"
    yield f'mkdir -p "$user_home/.ssh" && printf %s {quote(keys)} >"$user_home/.ssh/authorized_keys"'
    yield f'chmod 700 "$user_home/.ssh" && chown -R {quote(name)}: "$user_home"'
    if sudo := user.get("sudo"):
        rules = sudo if isinstance(sudo, list) else [sudo]
        text = "".join(f"{name} {rule}\n" for rule in rules)
        yield write_file("/etc/sudoers.d/90-cloud-init-users", text, "0440")


def write_file(path: str, text: str, mode: str = "0644") -> str:
    at = quote(path)
    return f'mkdir -p "$(dirname {at})" && printf %s {quote(text)} >{at} && chmod {quote(mode)} {at}'
