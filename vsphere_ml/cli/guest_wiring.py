"""Builds what a cluster's guests are entered and configured with: connections, playbooks, settings and secrets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from vsphere_ml.cli.wiring import SystemClock
    from vsphere_ml.core.guest import Playbook, Sensitive
    from vsphere_ml.core.spec import ClusterSpec
    from vsphere_ml.flows.guests import Given
    from vsphere_ml.guest.fields import Source
    from vsphere_ml.ssh.guests import SshGuests

MESH_KEY, MESH_PUBLIC_KEY = "mesh_key", "mesh_public_key"


def folder(cluster: str) -> Path:
    """Return where a cluster's pinned host keys, keys and logs lie; VSML_STATE_DIR overrides where clusters do."""
    import platformdirs

    return Path(os.environ.get("VSML_STATE_DIR") or platformdirs.user_state_dir("vsml")).absolute() / "guests" / cluster


def guests(spec: ClusterSpec, clock: SystemClock, parallel: int = 32) -> SshGuests:
    """Return the cluster's guests over SSH."""
    from vsphere_ml.config.guest_secrets import secret
    from vsphere_ml.ssh.guests import SshGuests

    source = spec.guest.sudo_password
    password = secret("sudo_password", source, f"{spec.guest.user}@{spec.name}", os.environ) if source else None
    return SshGuests(
        access=spec.guest, folder=folder(spec.name), clock=clock, sudo_password=password, parallel=parallel
    )


def playbooks(spec: ClusterSpec) -> tuple[Playbook, ...]:
    """Return the playbooks that the cluster file names, each valid as a whole and with every file it brings there."""
    from vsphere_ml.guest import playbook

    if not spec.guest.playbooks:
        raise ConfigError(
            "the cluster file names no playbooks",
            code="playbook.none",
            target="guest.playbooks",
            hint='[guest] with playbooks = ["base"], or with paths of your own such as "./mine.toml"',
        )
    found = read_playbooks(spec)
    for each in found:
        for source in playbook.sources(each):
            _there(source, each)
    return found


def read_playbooks(spec: ClusterSpec) -> tuple[Playbook, ...]:
    """Return the playbooks that the cluster file names, perhaps none, whether what they bring there exists or not."""
    from vsphere_ml.config.positions import positions
    from vsphere_ml.guest import playbook

    beside = spec.file.parent if spec.file else Path()
    paths = [playbook.find(name, beside) for name in spec.guest.playbooks]
    return tuple(
        playbook.load(path, values=spec.guest.settings, values_from=beside, positions=positions) for path in paths
    )


def given(spec: ClusterSpec, wanted: tuple[Playbook, ...]) -> Given:
    """Return the file's settings and secrets; a key pair for the nodes' mesh is made where a playbook wants one."""
    from vsphere_ml.config.guest_secrets import secret
    from vsphere_ml.core.guest import Sensitive
    from vsphere_ml.flows.guests import Given
    from vsphere_ml.ssh.keys import key_pair

    values = dict(spec.guest.settings)
    secrets: dict[str, Sensitive] = {
        name: secret(name, source, f"{name}@{spec.name}", os.environ) for name, source in spec.guest.secrets.items()
    }
    kinds = {getattr(step, "KIND", "") for book in wanted for step in book.steps}
    if "ssh_mesh" in kinds and MESH_KEY not in secrets:
        pair = key_pair(folder(spec.name) / "mesh", spec.name)
        secrets[MESH_KEY] = Sensitive(pair.private.read_text(encoding="utf-8"))
        values.setdefault(MESH_PUBLIC_KEY, pair.public)
    return Given(values=values, secrets=secrets)


def _there(source: Source, book: Playbook) -> None:
    """Refuse what cannot be brought to any guest, before one is touched."""
    if source.is_datastore:
        raise ConfigError(
            f"playbook {book.name} wants {source}; files on datastores are not fetched yet",
            code="playbook.datastore",
            target=str(source),
            hint="copy it to this machine with `govc datastore.download`, and give its path here",
        )
    if not source.is_url and not Path(source).is_file():
        raise ConfigError(
            f"playbook {book.name} wants {source}, which is not there",
            code="playbook.file-missing",
            target=str(source),
            hint="correct its path; it starts at the playbook's folder",
        )
