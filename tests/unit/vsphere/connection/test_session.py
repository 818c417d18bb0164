from __future__ import annotations

import pytest

from vsphere_ml.core.errors import ConfigError
from vsphere_ml.vsphere.connection.session import address
from vsphere_ml.vsphere.connection.tls import Trust


@pytest.mark.parametrize(
    ("written", "host", "port"),
    [
        ("vc.example.com", "vc.example.com", 443),
        ("vc.example.com:8443", "vc.example.com", 8443),
        ("https://vc.example.com/sdk", "vc.example.com", 443),
        ("https://vc.example.com:8443/sdk/", "vc.example.com", 8443),
        ("192.0.2.1", "192.0.2.1", 443),
        ("[2001:db8::1]:8443", "2001:db8::1", 8443),
    ],
)
def test_an_address_is_a_host_with_or_without_port_or_url(written: str, host: str, port: int) -> None:
    assert address(written) == (host, port)


@pytest.mark.parametrize(
    "written",
    ["", "http://vc", "https://", "vc:port", "vc:99999", "vc:0", "ftp://vc", "https://[::1", "a" * 70, "a..b"],
)
def test_what_is_no_address_is_refused(written: str) -> None:
    with pytest.raises(ConfigError) as caught:
        address(written)
    assert caught.value.code == "vcenter.address"


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        address("https://ada:hunter-22@vc.example.com/sdk")
    assert "hunter-22" not in f"{caught.value.message}{caught.value.target}{caught.value.hint}"


@pytest.mark.parametrize("thumbprint", ["", "AB:CD", "g" * 64, "AB:" * 19 + "AB"])
def test_only_a_sha256_thumbprint_pins(thumbprint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _ = Trust(thumbprint=thumbprint).pin
    assert caught.value.code == "vcenter.thumbprint"
