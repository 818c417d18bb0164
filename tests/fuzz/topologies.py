"""Whatever is in a lab topology: this side of the lab reads it, or refuses it in words.

The lab's own program is fuzzed by Go's fuzzer: `go test -fuzz FuzzParse ./topology` in vsphere_ml/lab/vcenter.
"""

from __future__ import annotations

from tests.fuzz.answers import check_refusal
from tests.fuzz.mutation import inputs
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.lab import state, topology

SAMPLES = tuple(file.read_bytes() for file in sorted(state.TOPOLOGIES.glob("*.toml")))


def run(seconds: float, seed: int, most: int | None = None) -> int:
    """Try inputs for so many seconds, or so many of them; return how many."""
    count = 0
    for content in inputs(SAMPLES, seconds, seed, most):
        try:
            values = topology.values(content, "site.toml")
        except ConfigError as error:
            check_refusal(error, content)
        else:
            for name in ("model", "datastore"):
                topology.tables(values, name)
        count += 1
    return count
