"""What a guest is given for its first boot, as extra config of its VM."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from vsphere_ml.core.model.spec import FirstBootBy
from vsphere_ml.core.nodes.firstboot import (
    ADDRESS_KEY,
    HOST_KEYS,
    MANAGEMENT_MAC,
    NOT_REPORTED,
    Customization,
    FirstBoot,
    in_words,
)
from vsphere_ml.guest.templates import render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec


def first_boots(cluster: ClusterSpec, public_keys: Sequence[str]) -> Mapping[str, FirstBoot]:
    """Return the first-boot data of each node's guest, by node; `public_keys` are lines of authorized_keys."""
    if cluster.guest.first_boot is FirstBootBy.CUSTOMIZATION:
        return {node.name: _customization_data(node, cluster) for node in cluster.nodes}
    userdata = _encode_guestinfo("userdata", _userdata(cluster, public_keys))
    return {
        node.name: FirstBoot(
            user=cluster.guest.user,
            address=node.address,
            keys={
                **_encode_guestinfo("metadata", _metadata(node, cluster)),
                **userdata,
                ADDRESS_KEY: in_words(node.address),
                HOST_KEYS: "",  # a template that booted with our script has left its own
            },
        )
        for node in cluster.nodes
    }


def _customization_data(node: NodeSpec, cluster: ClusterSpec) -> FirstBoot:
    guest = cluster.guest
    return FirstBoot(
        user=guest.user,
        address=node.address,
        keys={ADDRESS_KEY: NOT_REPORTED, HOST_KEYS: ""},
        customization=Customization(
            host_name=node.name,
            domain=guest.domain,
            address=node.address,
            roce_address=node.roce_address,
            more_roce_addresses=node.more_roce_addresses,
            spec=guest.customization_spec,
        ),
    )


def first_boot(node: NodeSpec, cluster: ClusterSpec, public_key: str) -> Mapping[str, str]:
    """Return the extra config that cloud-init's VMware datasource reads: metadata and user data, encoded.

    The guest gets its name, its address, a user with this public key and no password, and a script that publishes
    the SSH host keys at every boot.
    """
    return _encode_guestinfo("metadata", _metadata(node, cluster)) | _encode_guestinfo(
        "userdata", _userdata(cluster, (public_key,))
    )


def host_keys(published: str) -> tuple[tuple[str, str], ...]:
    """Return the host keys a guest published, as pairs of type and key; what is no key is left out."""
    parts = (each.split() for each in published.split(","))
    return tuple((each[0], each[1]) for each in parts if len(each) >= 2)  # noqa: PLR2004


def _metadata(node: NodeSpec, cluster: ClusterSpec) -> str:
    values = {
        "name": node.name,
        "instance": f"{cluster.name}-{node.name}",
        "mac": MANAGEMENT_MAC if node.nic.kind.spec.paravirtual else "",
        "address": node.address.address if node.address else None,
        "gateway": node.address.gateway if node.address else None,
        "dns": node.address.dns if node.address else (),
    }
    return _render_cloud_init("metadata.yaml", values)


def _userdata(cluster: ClusterSpec, public_keys: Sequence[str]) -> str:
    values = {
        "user": cluster.guest.user,
        "public_keys": [key.strip() for key in public_keys],
        "publish": render.shipped_template("cloud-init/publish-hostkeys.sh").rstrip("\n"),
    }
    return _render_cloud_init("userdata.yaml", values)


def _render_cloud_init(name: str, values: Mapping[str, object]) -> str:
    return render.render(render.shipped_template(f"cloud-init/{name}"), values, name)


def _encode_guestinfo(name: str, text: str) -> dict[str, str]:
    encoded = base64.b64encode(text.encode()).decode()
    return {f"guestinfo.{name}": encoded, f"guestinfo.{name}.encoding": "base64"}
