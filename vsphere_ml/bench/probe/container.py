"""The training container of each node: asked in the survey's round trip, and whether ranks can be started in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vsphere_ml.bench.model.job import FOLDER
from vsphere_ml.core.errors import BenchError
from vsphere_ml.core.nodes.container import NAME, SHARES
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.bench.model.job import Tools
    from vsphere_ml.core.model.guest import CommandAnswer

PACKAGES = ("horovod", "tensorflow", "tensorflow_cpu", "keras", "torch", "jax")
# A container's interpreter knows its packages; where their folders lie differs from image to image.
ASK_PACKAGES = f"""\
import importlib.metadata as metadata
for name in {PACKAGES}:
    try:
        print(name + "-" + metadata.version(name) + ".dist-info")
    except metadata.PackageNotFoundError:
        pass
"""
ASK_HOROVOD = 'import importlib.util as u; print(u.find_spec("horovod").submodule_search_locations[0])'
# What an image sets for its own programs. Anything else in it may be a secret.
_OF_IMAGE = re.compile(
    r"^(?P<name>PATH|LD_LIBRARY_PATH|PYTHONPATH|OPAL_PREFIX|(?:OMPI_MCA|UCX|CUDA)_\w+)=(?P<value>.*)$", re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerInfo:
    """The training container of one guest."""

    image: str
    image_id: str
    shares: bool  # the folder that a job's files lie in
    listens: bool  # its sshd, on the port that was asked for
    variables: Mapping[str, str]  # the image's own


def probes(ssh_port: int) -> dict[str, str]:
    """Return what to ask the guest about its container; without a port its ranks need no sshd of its own."""
    asked = {"running": "{{.State.Running}}", "image": "{{.Config.Image}} {{.Image}}"}
    asked["variables"] = "{{range .Config.Env}}{{println .}}{{end}}"
    inspected = {name: f"docker inspect -f '{shape}' {NAME}" for name, shape in asked.items()}
    listens = f"ss -Hltn 'sport = :{ssh_port}' | grep -q ." if ssh_port else "true"
    return inspected | {"shares": SHARES, "listens": listens}


def read(seen: Mapping[str, CommandAnswer]) -> ContainerInfo | None:
    """Return the container as a value; None where none runs, or none was asked for."""
    if "running" not in seen or seen["running"].text != "true":
        return None
    image, _, image_id = seen["image"].text.partition(" ")
    return ContainerInfo(
        image=image,
        image_id=image_id,
        shares=seen["shares"].ok,
        listens=seen["listens"].ok,
        variables={match["name"]: match["value"] for match in _OF_IMAGE.finditer(seen["variables"].out)},
    )


def check(of: Mapping[str, ContainerInfo | None], tools: Tools) -> None:
    """Raise where a node's container cannot be used.

    BenchError `bench.no-container` when it does not run; `bench.container` when it shares no folder, has no sshd, is of
    another image than the others, or when the mesh is not that of its user.
    """
    if tools.user != "root":
        raise BenchError(
            f"in containers ranks run as root, and the mesh is that of {tools.user}",
            code="bench.container",
            target=next(iter(of)),
            hint='[guest] settings = { mesh_user = "root" }, then `vsml configure`',
        )
    for node, container in of.items():
        _check_container(node, container, tools.ssh_port)
    images = {node: container.image_id for node, container in of.items() if container}
    if len(set(images.values())) > 1:
        text = ", ".join(f"{node}: {image}" for node, image in images.items())
        raise _container_error(next(iter(of)), f"the containers are not of one image ({text})")


def _check_container(node: str, container: ContainerInfo | None, ssh_port: int) -> None:
    if container is None:
        raise BenchError(
            f"{node}: container {NAME} does not run",
            code="bench.no-container",
            target=node,
            hint='`vsml configure` with the playbook "container"; or --run-in guest',
        )
    if not container.shares:
        raise _container_error(node, f"container {NAME} does not share {FOLDER} with the guest")
    if not container.listens:
        raise _container_error(node, f"no sshd listens on port {ssh_port}, the container's")


def _container_error(node: str, why: str) -> BenchError:
    return BenchError(
        f"{node}: {why}", code="bench.container", target=node, hint='`vsml configure` with the playbook "container"'
    )
