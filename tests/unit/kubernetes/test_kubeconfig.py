"""Which kubeconfig counts: the files of KUBECONFIG as one, the first one's word first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from vsphere_ml.core.errors import ConfigError
from vsphere_ml.kubernetes.api.kubeconfig import read_kubeconfig

if TYPE_CHECKING:
    from pathlib import Path


def write(file: Path, server: str, **more: object) -> Path:
    cluster = {"name": "one", "cluster": {"server": server, "certificate-authority": "ca.crt"}}
    file.write_text(yaml.safe_dump({"clusters": [cluster], "contexts": [], "users": [], **more}))
    return file


def test_files_are_merged_and_the_first_one_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write(tmp_path / "first", "https://one")
    second = write(tmp_path / "second", "https://two", **{"current-context": "lab"})
    monkeypatch.setenv("KUBECONFIG", f"{first}:{tmp_path / 'none'}:{second}")
    merged = read_kubeconfig()
    (cluster,) = merged["clusters"]
    assert cluster["cluster"] == {"server": "https://one", "certificate-authority": str(tmp_path / "ca.crt")}
    assert merged["current-context"] == "lab"


NO_KUBECONFIGS = (
    "[",
    "- a list",
    None,
    "clusters: 5",
    "clusters: [1]",
    "users: {name: one}",
    "clusters: [{name: one, cluster: 3}]",
    "contexts: [{context: {}}]",
    f"name: {'x' * (1 << 20)}",
)


@pytest.mark.parametrize("text", NO_KUBECONFIGS)
def test_what_is_no_kubeconfig_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    file = tmp_path / "config"
    if text is not None:
        file.write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(file))
    with pytest.raises(ConfigError) as raised:
        read_kubeconfig()
    assert raised.value.code == "kubernetes.no-kubeconfig"


def test_without_the_variable_it_is_the_user_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube" / "config", "https://own")
    assert read_kubeconfig()["clusters"][0]["cluster"]["server"] == "https://own"
