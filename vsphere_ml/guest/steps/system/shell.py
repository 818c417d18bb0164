"""Pieces of POSIX shell that several steps use. Every value that comes from outside is quoted here."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import ConfigError, GuestError
from vsphere_ml.guest.playbooks.fields import FileSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vsphere_ml.core.model.guest import GuestFacts, Shell
    from vsphere_ml.core.secret import Secret

q = shlex.quote
_TRIES = 30  # with ten seconds in between
# No letter of these means anything to a shell, to systemd or to Docker.
_PROXY = re.compile(r"(https?://[A-Za-z0-9._~:/\[\]%-]+)?")
_SPARED = re.compile(r"[A-Za-z0-9.:/*_, -]*")
APT = "apt-get -y --no-install-recommends -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold"


def words(texts: Iterable[str]) -> str:
    """Return texts as words of a shell command."""
    return " ".join(q(each) for each in texts)


def with_proxy(command: str, facts: GuestFacts) -> str:
    """Return a command that downloads, with the cluster's proxy around it when there is one."""
    if not facts.values.get("proxy"):
        return command
    check_proxy(facts.values)
    settings = [f"{name}={q(value)}" for name, value in proxy_settings(facts.values["proxy"], facts)]
    return f"export {' '.join(settings)}; {command}"


def check_proxy(values: Mapping[str, str]) -> None:
    """Raise ConfigError `guest.proxy` when the setting `proxy` is no address, or one with a password."""
    proxy = values.get("proxy", "")
    if (refusal := FileSource(proxy).refusal) is not None:
        why = refusal
    elif not _PROXY.fullmatch(proxy):
        why = "is not an address such as http://proxy.example.com:3128"
    elif not _SPARED.fullmatch(values.get("no_proxy", "")):
        raise ConfigError("`no_proxy` is not a list of names and addresses", code="guest.proxy", target="no_proxy")
    else:
        return
    raise ConfigError(f"`proxy` {why}", code="guest.proxy", target="proxy")


def proxy_settings(proxy: str, facts: GuestFacts) -> list[tuple[str, str]]:
    """Return a proxy as environment variables, in both spellings: programs differ in which one they read."""
    spared = ",".join(["localhost", "127.0.0.1", *_peer_names(facts), *_split_list(facts.values.get("no_proxy", ""))])
    return [
        (spelling, value)
        for name, value in (("http_proxy", proxy), ("https_proxy", proxy), ("no_proxy", spared))
        for spelling in (name, name.upper())
    ]


def install(shell: Shell, packages: Iterable[str], facts: GuestFacts, options: str = "", *, more: str = "") -> None:
    """Install packages by apt without a question, after a look at what its repositories have. `more` is not quoted."""
    with_options = f" {options}" if options else ""
    _refresh(shell, with_proxy(f"apt-get{with_options} update", facts))
    wanted = f"{APT}{with_options} install {words(packages)}{more}"
    shell.run(with_proxy(f"export DEBIAN_FRONTEND=noninteractive; {wanted}", facts), timeout_s=3600)


# A kernel that was not built by the distribution's default compiler names its own: `…-gcc-12 (Ubuntu 12.3.0-…)` in
# Ubuntu 22.04 under its kernel 6.8. Modules must be built by that one.
_COMPILER = "sed -n 's/.*[-(]\\(gcc-[0-9][0-9]*\\) (.*/\\1/p' /proc/version"
WITH_COMPILER = f'cc=$({_COMPILER}); if command -v "${{cc:-none}}" >/dev/null; then export CC="$cc"; fi'


def install_build_tools(shell: Shell, facts: GuestFacts) -> None:
    """Install what builds kernel modules: the running kernel's headers, DKMS, and the compiler that built the kernel.

    DKMS skips a build without headers, and the package that wanted it is installed all the same.
    """
    install(shell, ["build-essential", "dkms"], facts, more=' "linux-headers-$(uname -r)"')
    known = 'apt-cache show "$cc" >/dev/null 2>&1'
    needed = f'test -n "$cc" && ! command -v "$cc" >/dev/null && {known}'
    add = f'export DEBIAN_FRONTEND=noninteractive; {APT} install "$cc"'
    shell.run(with_proxy(f"cc=$({_COMPILER}); if {needed}; then {add}; fi", facts), timeout_s=3600)


def _refresh(shell: Shell, update: str) -> None:
    """Update apt's lists. A guest that just came up does so itself, and apt waits for dpkg's lock, not for this one."""
    for _ in range(_TRIES):
        try:
            shell.run(update)
        except GuestError as error:
            if not any("Could not get lock" in line for line in error.details):
                raise
            shell.run("sleep 10")
        else:
            return
    shell.run(update)


def secret(facts: GuestFacts, name: str) -> Secret:
    """Return a secret the cluster was given; GuestError `guest.secret-missing` when it was not."""
    if name not in facts.secrets:
        raise GuestError(
            reason=f"the secret `{name}` is needed, and the cluster file names no source for it",
            code="guest.secret-missing",
            target=facts.name,
            hint=f"say where `{name}` comes from, or leave the step out",
        )
    return facts.secrets[name]


def given_value(facts: GuestFacts, name: str) -> str:
    """Return a value the cluster was given; GuestError `guest.value-missing` when it was not."""
    if name not in facts.values:
        raise GuestError(
            reason=f"the value `{name}` is needed, and nobody set it",
            code="guest.value-missing",
            target=facts.name,
            hint=f"set `{name}` for the cluster's guests",
        )
    return facts.values[name]


def _peer_names(facts: GuestFacts) -> list[str]:
    return [each for peer in facts.peers for each in (peer.name, peer.address)]


def _split_list(text: str) -> list[str]:
    return text.replace(",", " ").split()
