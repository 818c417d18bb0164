"""The vGPU licence: client configuration token, gridd.conf, nvidia-gridd, and the state read back."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from vsphere_ml.core.model.guest import Step, StepNeed
from vsphere_ml.guest.playbooks.fields import FieldError
from vsphere_ml.guest.steps.system.content import Content
from vsphere_ml.guest.steps.system.shell import secret
from vsphere_ml.guest.templates import render
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Shell

STATE = "nvidia-smi -q | grep -i 'license status'"
_PORTS = 65535
_FEATURES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class VgpuLicence(Step):
    """A licensed vGPU, by the token (the secret `licence_token`), or with `server` by a legacy licence server.

    A guest whose GPUs are handed through whole needs none.
    """

    KIND: ClassVar[str] = "vgpu_licence"
    AFTER_REBOOT: ClassVar[bool] = True

    server: str = ""
    port: int = 7070
    feature_type: int = -1  # -1 leaves it out: the licence follows the vGPU's type
    wait_s: int = 120

    def __post_init__(self) -> None:
        if not 0 < self.port <= _PORTS:
            raise FieldError("port", "expected 1 to 65535")
        if not -1 <= self.feature_type <= _FEATURES:
            raise FieldError("feature_type", "expected 0 to 4, or -1 to leave it out")
        if any(letter.isspace() for letter in self.server):
            raise FieldError("server", "expected a host name or an address")

    @property
    def title(self) -> str:
        return "vGPU licence"

    def probes(self, facts: GuestFacts) -> Mapping[str, str]:
        if not facts.profile:  # GPUs that are handed through whole want none, and their driver shows none
            return {}
        asked = {name: content.probe for name, content in self._files(facts).items()}
        return asked | {"service": "systemctl is-enabled nvidia-gridd", "state": STATE}

    def drift(self, seen: Mapping[str, CommandAnswer], facts: GuestFacts) -> str | None:
        if not facts.profile:
            return None
        for name, content in self._files(facts).items():
            if drift := content.drift(seen[name]):
                return drift
        if not seen["service"].ok:
            return "nvidia-gridd does not start at boot"
        return None if is_licensed(seen["state"]) else f"the licence state is `{state(seen['state'])}`"

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        for content in self._files(facts).values():
            content.put(shell)
        shell.run("systemctl enable nvidia-gridd && systemctl restart nvidia-gridd")
        yes = f"{STATE} >/dev/null && ! {STATE} | grep -qi unlicensed"
        shell.run(f"i=0; until {yes}; do i=$((i + 2)); test $i -le {self.wait_s} || break; sleep 2; done")
        return StepNeed.NOTHING

    def _files(self, facts: GuestFacts) -> dict[str, Content]:
        values = {"server": self.server, "port": self.port, "feature_type": self.feature_type}
        conf = render.render(render.shipped_template("gridd.conf"), values, "gridd.conf")
        files = {"conf": Content(path="/etc/nvidia/gridd.conf", text=conf)}
        if not self.server:
            path = "/etc/nvidia/ClientConfigToken/client_configuration_token_vsml.tok"
            # Readable by all, since nvidia-gridd need not read it as root.
            files["token"] = Content(path=path, text=secret(facts, "licence_token"), mode=0o744)
        return files


def state(answer: CommandAnswer) -> str:
    """Return what the driver says of its licence, the worst of several GPUs: `Licensed (Expiry: …)`, `Unlicensed`."""
    found = [line.partition(":")[2].strip() for line in answer.text.splitlines()]
    return next((each for each in found if not _is_licensed(each)), found[0] if found else "") or "unknown"


def is_licensed(answer: CommandAnswer) -> bool:
    return _is_licensed(state(answer))


def _is_licensed(said: str) -> bool:
    return said.casefold().startswith("licensed")
