from __future__ import annotations

import pytest

from vsphere_ml.core.catalog.ats_versions import refusal, release


@pytest.mark.parametrize("version", ["", "unknown", "6.7.0"])
def test_a_host_without_the_setting_or_without_a_version_is_refused(version: str) -> None:
    assert not release(version, "").present
    assert refusal(version, "", "intel")


def test_a_version_that_is_not_given_is_not_called_too_old() -> None:
    assert refusal("", "", "intel") != refusal("6.7.0", "", "intel").replace(" 6.7.0", "")
    assert "7.0 U2" not in refusal("", "", "intel")
