"""Whatever is in a file of vhpc-toolkit: it becomes a cluster file that is read, or it is refused in words."""

from __future__ import annotations

from tests.fuzz.answers import check_refusal
from tests.fuzz.mutation import inputs
from tests.unit.config.vhpc.test_vhpc import CONF
from vsphere_ml.config.load import mistakes_of
from vsphere_ml.config.vhpc.translate import translate
from vsphere_ml.core.errors import ConfigError

_MORE = b"""\
[A]
template: t
cpu: 4
memory: 8
device: ['0000:3b:00.0', '0000:3c:00.0']
host: esx-0{{1:2}}
guest_password: ${PASSWORD}
script: [x.sh]
; a comment
 that goes on
[_VMS_]
vm{1:4}: A ip: 10.0.0.{1:4} netmask: ${NETMASK} gateway: 10.0.0.254 power: off
lone: A is_dhcp: yes pvrdma_port_group: p latency: high
"""
SAMPLES = (CONF.encode(), _MORE)


def run(seconds: float, seed: int, most: int | None = None) -> int:
    """Try inputs for so many seconds, or so many of them; return how many."""
    count = 0
    for content in inputs(SAMPLES, seconds, seed, most):
        try:
            made = translate(content.decode(errors="replace"), "cluster.conf")
        except ConfigError as error:
            check_refusal(error, content)
        else:
            mistakes_of(made.text, "cluster.toml")
        count += 1
    return count
