"""What of a command's output may leave a site; every public transcript still reads the same after it."""

from __future__ import annotations

import pytest

from tests.fakes.transcripts import Described, lay_out, list_transcripts
from vsphere_ml.core.site_record.pseudonyms import Pseudonyms
from vsphere_ml.core.site_record.redact_text import TextRedactor
from vsphere_ml.core.tools import mft, nvidia_smi

REDACTOR = TextRedactor(Pseudonyms(key=b"a key for tests"))


@pytest.mark.parametrize(
    ("line", "gone"),
    [
        ("    Serial Number                         : 1324521034567", "1324521034567"),
        ("    GPU UUID                              : GPU-564d1a2b-3c4d-5e6f-7a8b-9c0d1e2f3a4b", "564d1a2b"),
        ("    Product Name                          : NVIDIA A100 of 10.1.2.3", "10.1.2.3"),
        ("vmnic4  0000:3b:00.0  nmlx5_core  Up  Up  100000  Full  b8:ce:f6:01:02:03  9000", "b8:ce:f6:01:02:03"),
        ("esx-01.acme.example is the host", "acme"),
        ("hostname: esx-01", "esx-01"),
        ("Name:  MCX623106AN-CDA_Ax of bob", "bob"),
    ],
)
def test_identities_go(line: str, gone: str) -> None:
    assert gone not in REDACTOR.redact(line)


@pytest.mark.parametrize(
    "line",
    [
        "    Product Name                          : NVIDIA A100-PCIE-40GB",
        "    License Status                        : Unlicensed (Restricted)",
        "         SRIOV_EN                            False(0)        True(1)         True(1)",
        "*        NUM_OF_VFS                          0               8               8",
        "ConnectX6DX(rev:0)  mt4125_pciconf0    3b:00.0            net-vmnic4",
        "0000:3b:00.0 Class 0200: 15b3:101d [vmnic4]",
        "\t\t\tactive_mtu:\t\t4096 (5)",
    ],
)
def test_what_the_tools_say_passes(line: str) -> None:
    assert REDACTOR.redact(line) == line


@pytest.mark.parametrize(
    "described", list_transcripts("mlxconfig") + list_transcripts("mst"), ids=lambda d: d["source"]
)
def test_firmware_reads_the_same(described: Described) -> None:
    printed = lay_out(described).out
    redacted = REDACTOR.redact(printed)
    assert mft.devices(redacted) == mft.devices(printed)
    for name in described["reads"]:
        assert mft.number(redacted, name) == mft.number(printed, name)


@pytest.mark.parametrize("described", list_transcripts("topology"), ids=lambda d: d["source"])
def test_a_topology_reads_the_same(described: Described) -> None:
    printed = lay_out(described).out
    assert nvidia_smi.parse_topology(REDACTOR.redact(printed)) == nvidia_smi.parse_topology(printed)
