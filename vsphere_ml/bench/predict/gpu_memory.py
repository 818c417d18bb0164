"""Whether a training fits a vGPU's framebuffer, from sizes alone."""

from __future__ import annotations

from vsphere_ml.bench.predict.training_math import Optimizer, TrainingMath
from vsphere_ml.core.catalog import catalogue, profiles
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.lazy_dataclass import dataclass

_MIB = 1 << 20


_STATES = {Optimizer.SGD: 0, Optimizer.MOMENTUM: 1, Optimizer.ADAM: 2}  # numbers of 32 bits a parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """Bytes of one rank, and what its vGPU has. Libraries, workspaces and fragments come on top, and are not known."""

    profile: str
    weights: int
    gradients: int
    optimizer: int
    activations: int | None  # None: not given
    framebuffer: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer + (self.activations or 0)

    @property
    def fits(self) -> bool | None:
        """Whether it fits; None where only the activations, which are not given, decide."""
        if self.total > self.framebuffer:
            return False
        return None if self.activations is None else True


def find_need(
    parameters: int,
    profile: str,
    optimizer: Optimizer = Optimizer.MOMENTUM,
    math: TrainingMath = TrainingMath.FP32,
    activations: int | None = None,
) -> MemoryNeed:
    """Return what one rank of data-parallel training keeps; ConfigError `bench.no-profile` for an unknown profile.

    Mixed precision with Adam is 16 bytes a parameter (2 + 2 + 12), as in Rajbhandari et al. 2020, ZeRO, section 3.1.
    """
    width = 2 if math is TrainingMath.MIXED else 4
    master = 4 if math is TrainingMath.MIXED else 0
    return MemoryNeed(
        profile=profile,
        weights=width * parameters,
        gradients=width * parameters,
        optimizer=(4 * _STATES[optimizer] + master) * parameters,
        activations=activations,
        framebuffer=_framebuffer(profile),
    )


def _framebuffer(name: str) -> int:
    """Return a profile's framebuffer in bytes, by NVIDIA's tables."""
    try:
        found = catalogue.find(profiles.parse(name))
    except ValueError as error:
        raise _no_profile(name, str(error)) from error
    if found is None:
        raise _no_profile(name, f"`{name}` is in no table of NVIDIA's profiles that vsml has")
    return found.framebuffer_mib * _MIB


def _no_profile(name: str, message: str) -> ConfigError:
    return ConfigError(message, code="bench.no-profile", target=name, hint="--vgpu A100-40C")
