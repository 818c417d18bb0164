"""Secrets that guests are given: from where the cluster file says, and from nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.config.secrets.passwords import keyring_lookup
from vsphere_ml.config.secrets.secret_file import read_secret
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from vsphere_ml.config.secrets.passwords import Keyring
    from vsphere_ml.core.model.spec import SecretSource


def secret(
    name: str, source: SecretSource, account: str, environ: Mapping[str, str], keyring: Keyring = keyring_lookup
) -> Secret:
    """Return the secret, a file's as a whole but for the line end; `account` is whose it is in a keyring.

    Raises ConfigError `secret.missing`, `secret.keyring`, or as `read_secret`.
    """
    if source.file is not None:
        found, hint = _of_file(name, source.file), f"write it into {source.file}"
    elif source.keyring is not None:
        service = source.keyring
        found, hint = keyring(service, account) or "", f"keyring set {service} {account}"
    else:
        variable = source.env or ""
        found, hint = environ.get(variable, "").strip("\r\n"), f"read -rs {variable} && export {variable}"
    if not found:
        raise ConfigError(
            f"there is no `{name}` where the cluster file says it is", code="secret.missing", target=name, hint=hint
        )
    return Secret(found)


def _of_file(name: str, path: Path) -> str:
    text = read_secret(path, f"the file of `{name}`")
    # A private key wants its last line end; whatever is one line is meant without it.
    return text if text.count("\n") > 1 else text.rstrip("\r\n")
