"""Which API server, and as whom: the kubeconfig, found as kubectl finds it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import yaml

from vsphere_ml.core.bounded_file import read_bytes
from vsphere_ml.core.errors import ConfigError, NotPossible

if TYPE_CHECKING:
    from vsphere_ml.core.ports.kubernetes import KubernetesApi

DEFAULT = "~/.kube/config"
_LISTS = ("clusters", "contexts", "users")
_LARGEST = 1 << 20  # bytes
_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


def connect(context: str = "") -> KubernetesApi:
    """Return the API server of a context of the kubeconfig, its current one where none is named.

    ConfigError `kubernetes.no-kubeconfig` where there is none, NotPossible `kubernetes.no-client` without lightkube.
    """
    try:
        from lightkube import Client, ConfigError as BadConfig, KubeConfig  # noqa: I001, PLC0415 - an extra

        from vsphere_ml.kubernetes.api.client import LightkubeApi  # noqa: PLC0415 - needs it too
    except ImportError as error:
        raise NotPossible(
            "the client for Kubernetes is not installed",
            code="kubernetes.no-client",
            target="lightkube",
            hint="pip install 'vsml[kubernetes]'",
        ) from error
    try:
        config = KubeConfig.from_dict(read_kubeconfig()).get(context or None)
        return LightkubeApi(Client(config, trust_env=False))
    except (BadConfig, KeyError, TypeError, ValueError, OSError) as error:
        raise _no_kubeconfig(f"the kubeconfig cannot be used: {error}") from error


def read_kubeconfig() -> dict[str, Any]:
    """Return the files of KUBECONFIG as one, as kubectl merges them: of what two of them say the first counts.

    ConfigError `kubernetes.no-kubeconfig` when none of them is there, or one is no kubeconfig.
    """
    paths = [Path(each) for each in os.environ.get("KUBECONFIG", "").split(os.pathsep) if each]
    found = [path for path in paths or [Path(DEFAULT).expanduser()] if path.is_file()]
    if not found:
        raise _no_kubeconfig("there is no kubeconfig")
    merged: dict[str, Any] = {each: [] for each in _LISTS}
    for path in found:
        _merge(merged, _read_file(path))
    return merged


def _read_file(path: Path) -> dict[str, Any]:
    """Return a file's content, with the files that it names by their full paths."""
    try:
        content = yaml.safe_load(read_bytes(path, _LARGEST).decode())
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise _no_kubeconfig(f"{path} cannot be read: {str(error).splitlines()[0]}") from error
    if not _is_kubeconfig(content):
        raise _no_kubeconfig(f"{path} is no kubeconfig")
    for each in (*(content.get("clusters") or ()), *(content.get("users") or ())):
        body = each.get("cluster") or each.get("user") or {}
        for name in _FILES:
            if isinstance(body.get(name), str):
                body[name] = str(path.parent / body[name])
    return content


def _is_kubeconfig(content: object) -> TypeGuard[dict[str, Any]]:
    """Return whether there are lists of named clusters, contexts and users, as far as there are any."""
    if not isinstance(content, dict):
        return False
    lists = {name: content.get(name) or [] for name in _LISTS}
    return all(
        isinstance(each, dict) and isinstance(each.get("name"), str) and isinstance(each.get(name[:-1], {}), dict)
        for name, found in lists.items()
        for each in (found if isinstance(found, list) else [None])
    )


def _merge(merged: dict[str, Any], more: dict[str, Any]) -> None:
    for name in _LISTS:
        known = {each["name"] for each in merged[name]}
        merged[name] += [each for each in more.get(name) or () if each["name"] not in known]
    if more.get("current-context"):
        merged.setdefault("current-context", more["current-context"])


def _no_kubeconfig(why: str) -> ConfigError:
    return ConfigError(
        why, code="kubernetes.no-kubeconfig", target="KUBECONFIG", hint="export KUBECONFIG=FILE, or --context NAME"
    )
