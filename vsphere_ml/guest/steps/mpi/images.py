"""Container images, and the registries they come from."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, ClassVar

from vsphere_ml.core.model.guest import Step, StepNeed
from vsphere_ml.guest.playbooks.fields import FieldError, FileSource, check_checksum, check_pattern
from vsphere_ml.guest.steps.system.artifact import fetch_artifact
from vsphere_ml.guest.steps.system.content import Content
from vsphere_ml.guest.steps.system.shell import q, secret
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Shell

IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")
_REGISTRY = re.compile(r"[A-Za-z0-9.-]+(:\d+)?")
_NAME = re.compile(r"[a-z0-9_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryLogin(Step):
    """A registry that Docker may pull from. The key is a secret and travels by standard input alone."""

    KIND: ClassVar[str] = "registry_login"

    registry: str = "nvcr.io"
    user: str = "$oauthtoken"  # literally so at NVIDIA's registry
    secret: str = "registry_key"  # noqa: S105 - the secret's name

    def __post_init__(self) -> None:
        check_pattern("registry", self.registry, _REGISTRY, "a registry such as nvcr.io")
        check_pattern("secret", self.secret, _NAME, "the name of a secret")
        if not self.user or self.user.startswith("-"):
            raise FieldError("user", "expected a user name")

    @property
    def title(self) -> str:
        return f"registry {self.registry}"

    def probes(self, _facts: GuestFacts) -> Mapping[str, str]:
        # Only whether there is an entry: config.json holds the key itself.
        return {
            "entry": f"grep -Fq {q(json_key(self.registry))} /root/.docker/config.json",
            "mark": f"cat {q(self._path)}",
        }

    def drift(self, seen: Mapping[str, CommandAnswer], facts: GuestFacts) -> str | None:
        if not seen["entry"].ok:
            return f"Docker is not signed in to {self.registry}"
        return None if seen["mark"].out == self._mark(facts) else f"the sign-in to {self.registry} is an older one"

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        key = secret(facts, self.secret)
        shell.run(
            f"docker --config /root/.docker login --username {q(self.user)} --password-stdin {q(self.registry)}",
            stdin=key,
        )
        Content(path=self._path, text=self._mark(facts), mode=0o600).put(shell)
        return StepNeed.NOTHING

    @property
    def _path(self) -> str:
        return f"/root/.docker/vsml-{self.registry}"

    def _mark(self, facts: GuestFacts) -> str:
        """Return a trace of user and key, by which another key is noticed. It is too short to find the key by."""
        text = f"{self.registry}\n{self.user}\n{secret(facts, self.secret).reveal()}"
        return hashlib.sha256(text.encode()).hexdigest()[:8] + "\n"


def json_key(registry: str) -> str:
    return f'"{registry}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePull(Step):
    """A container image, there before it is needed: from its registry, or from an archive of `docker save`."""

    KIND: ClassVar[str] = "image_pull"

    image: str
    archive: FileSource = FileSource("")
    archive_sha256: str = ""

    def __post_init__(self) -> None:
        check_pattern("image", self.image, IMAGE, "a container image")
        check_checksum("archive_sha256", self.archive, self.archive_sha256)

    @property
    def title(self) -> str:
        return f"image {self.image}"

    def probes(self, _facts: GuestFacts) -> Mapping[str, str]:
        return {"image": f"docker image inspect -f '{{{{.Id}}}}' {q(self.image)}"}

    def drift(self, seen: Mapping[str, CommandAnswer], _facts: GuestFacts) -> str | None:
        return None if seen["image"].ok else f"image {self.image} is not there"

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        if self.archive:
            archive = fetch_artifact(self.archive, shell, facts, self.archive_sha256)
            shell.run(f"docker load -q -i {q(archive)} && rm -f {q(archive)}", timeout_s=7200)
            return StepNeed.NOTHING
        shell.run(f"docker --config /root/.docker pull -q {q(self.image)}", timeout_s=7200)
        return StepNeed.NOTHING
