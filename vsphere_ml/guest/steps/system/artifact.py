"""Files copied to a guest: fetched by the guest itself, or copied from this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import GuestError
from vsphere_ml.guest.steps.system.shell import q, with_proxy

if TYPE_CHECKING:
    from vsphere_ml.core.model.guest import GuestFacts, Shell
    from vsphere_ml.guest.playbooks.fields import FileSource

CACHE = "/var/cache/vsml"


def fetch_artifact(source: FileSource, shell: Shell, facts: GuestFacts, sha256: str = "") -> str:
    """Bring a file to the guest and return its path there; what is not the file that was meant is removed again."""
    path = f"{CACHE}/{source.name}"
    if source.is_url:
        fetch = f"curl -fsSL --retry 3 --connect-timeout 20 -o {q(path + '.part')} -- {q(source)}"
        shell.run(with_proxy(f"mkdir -p {CACHE} && {fetch} && mv {q(path + '.part')} {q(path)}", facts), timeout_s=3600)
    else:
        shell.put(_local(source, facts), path)
    if sha256:
        check = f"echo {q(sha256 + '  ' + path)} | sha256sum -c --quiet -"
        shell.run(f"{check} || {{ rm -f {q(path)}; exit 1; }}")
    return path


def _local(source: FileSource, facts: GuestFacts) -> Path:
    """Return the file on this machine; one of a datastore was downloaded to where `facts.values` says."""
    local = Path(facts.values.get(f"file:{source}", source)).expanduser()
    if not local.is_file():
        where = "was not downloaded from its datastore" if source.is_datastore else "is not on this machine"
        raise GuestError(
            reason=f"{source} {where}",
            code="guest.file-missing",
            target=facts.name,
            hint="correct its path in the playbook or in the cluster file's settings for guests",
        )
    return local
