"""How many parameters known models have."""

from __future__ import annotations

from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.nearest import nearest_name
from vsphere_ml.lazy_dataclass import dataclass

_KERAS = "Keras Applications' table of models"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model's size; every parameter counts as if it were trained."""

    parameters: int
    source: str


MODELS = {
    "resnet50": Model(parameters=25_600_000, source=_KERAS),
    "resnet101": Model(parameters=44_700_000, source=_KERAS),
    "inception-v3": Model(parameters=23_900_000, source=_KERAS),
    "vgg16": Model(parameters=138_400_000, source=_KERAS),
    "mobilenetv2": Model(parameters=3_500_000, source=_KERAS),
    "bert-base": Model(parameters=110_000_000, source="Devlin et al. 2019, rounded"),
    "bert-large": Model(parameters=340_000_000, source="Devlin et al. 2019, rounded"),
    "gpt-3": Model(parameters=175_000_000_000, source="Brown et al. 2020, rounded"),
}


def model(name: str) -> Model:
    """Return the model of this name, or raise ConfigError with the names there are."""
    if name in MODELS:
        return MODELS[name]
    meant = nearest_name(name, MODELS)
    raise ConfigError(
        f"there is no model {name!r}{f'; is {meant!r} meant?' if meant else ''}",
        code="bench.no-model",
        target=name,
        hint=f"one of {', '.join(MODELS)}; any other one by --parameters",
    )
