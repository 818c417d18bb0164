"""The password: from where the file says, else environment, keyring or a prompt. Says which, and shows none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.config.secrets.environment import VariableNames, families, unused_variables
from vsphere_ml.config.secrets.secret_file import read_secret
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.secret import Secret
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from vsphere_ml.core.model.spec import SecretSource

    Prompt = Callable[[str], str]
    Keyring = Callable[[str, str], str | None]

SERVICE = "vsml"  # in the keyring, when the file names none
VARIABLE = "VSML_VCENTER_PASSWORD"


@dataclass(frozen=True, slots=True)
class _FoundSecret:
    """A secret, and where it was found."""

    secret: Secret
    where: str


@dataclass(frozen=True, slots=True)
class Account:
    """Whose password is looked for."""

    server: str
    username: str

    def __str__(self) -> str:
        return f"{self.username}@{self.server}"


def keyring_lookup(service: str, account: str) -> str | None:
    """Return a password of the system's keyring; ConfigError `secret.keyring` when there is no keyring to ask."""
    import keyring  # noqa: PLC0415 - slow to import, and rarely needed
    from keyring.errors import KeyringError  # noqa: PLC0415

    try:
        return keyring.get_password(service, account)
    except (KeyringError, RuntimeError, OSError) as error:
        raise ConfigError(
            f"the keyring cannot be read: {type(error).__name__}",
            code="secret.keyring",
            target=account,
            hint=f"set {VARIABLE}, or vcenter.password = {{ file = … }}",
        ) from error


def password(
    source: SecretSource,
    account: Account,
    environ: Mapping[str, str],
    prompt: Prompt | None = None,
    keyring: Keyring = keyring_lookup,
) -> _FoundSecret:
    """Return the password: from the source the file names and nowhere else, or environment, keyring, prompt, in order.

    Raises ConfigError `secret.missing`, `secret.keyring`, `env.invalid`, or as `read_secret`.
    """
    if source.env is not None:
        return _from_variable(source.env, environ)
    if source.file is not None:
        return _FoundSecret(_from_file(source.file), str(source.file))
    if source.keyring is not None:
        return _read_keyring(source.keyring, account, keyring)
    known = families(environ)
    return (
        _from_environment(known, account)
        or _from_default_keyring(account, keyring)
        or _from_prompt(account, prompt, known)
    )


def _from_variable(name: str, environ: Mapping[str, str]) -> _FoundSecret:
    value = environ.get(name, "").strip("\r\n")
    if not value:
        raise _missing_secret(f"the environment variable {name} is not set", name, f"read -rs {name} && export {name}")
    return _FoundSecret(Secret(value), name)


def _from_file(path: Path) -> Secret:
    """Return a file's first line; nobody else may be able to read the file."""
    line = read_secret(path, "the password file", first_line=True)
    if not line:
        raise _missing_secret("the password file is empty", str(path), "write the password into its first line")
    return Secret(line)


def _read_keyring(service: str, account: Account, keyring: Keyring) -> _FoundSecret:
    text = keyring(service, str(account))
    if not text:
        raise _missing_secret(f"the keyring has no password of {account}", service, f"keyring set {service} {account}")
    return _FoundSecret(Secret(text), _keyring_place(service, account))


def _keyring_place(service: str, account: Account) -> str:
    return f"keyring, service {service}, account {account}"


def _from_environment(known: tuple[VariableNames, ...], account: Account) -> _FoundSecret | None:
    for family in known:
        if family.password is not None and not family.other_login(account.server, account.username):
            return _FoundSecret(*family.password)
    return None


def _from_default_keyring(account: Account, keyring: Keyring) -> _FoundSecret | None:
    """Return the keyring's password; a machine without a keyring is no mistake when nobody asked for one."""
    try:
        text = keyring(SERVICE, str(account))
    except ConfigError:
        return None
    return _FoundSecret(Secret(text), _keyring_place(SERVICE, account)) if text else None


def _from_prompt(account: Account, prompt: Prompt | None, known: tuple[VariableNames, ...]) -> _FoundSecret:
    try:
        text = prompt(f"password of {account}: ") if prompt else ""
    except EOFError:
        text = ""
    if text:
        return _FoundSecret(Secret(text), "prompt")
    left_alone = "".join(f"; {each}" for each in unused_variables(known, account.server, account.username))
    raise _missing_secret(
        f"no password for {account}{left_alone}", account.server, f"read -rs {VARIABLE} && export {VARIABLE}"
    )


def _missing_secret(message: str, target: str, hint: str) -> ConfigError:
    return ConfigError(message, code="secret.missing", target=target, hint=hint)
