"""Files of the lab's datastores, over its HTTPS: whole, kept, and fetched anew when they changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration import labs, proxy
from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.ports.vcenter import Scope
from vsphere_ml.vsphere.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.proxy import Proxy
    from vsphere_ml.lab.state import Lab

pytestmark = pytest.mark.lab
FILE = "[vsan] a folder/driver 100%.run"


@pytest.fixture
def vcenter(lab: Lab, tmp_path: Path) -> Iterator[Gateway]:
    made = Gateway(labs.sign_in(lab), tmp_path / "cache")
    made.read_site(Scope())
    yield made
    made.close()


@pytest.fixture
def there(lab: Lab) -> Path:
    path = lab.password_file.parent / "datastores" / "vsan" / "a folder" / "driver 100%.run"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"one" * 1_000_000)
    return path


def test_a_file_comes_whole_under_its_name_and_says_how_far_it_is(vcenter: Gateway, there: Path) -> None:
    answers: list[tuple[int, int]] = []
    here = vcenter.fetch(FILE, lambda done, total: answers.append((done, total)))
    assert (here.name, here.read_bytes()) == (there.name, there.read_bytes())
    assert answers[-1] == (3_000_000, 3_000_000)
    assert len(answers) > 1


def test_a_file_that_is_as_it_was_is_not_downloaded_again_and_one_that_changed_is(
    vcenter: Gateway, there: Path
) -> None:
    here = vcenter.fetch(FILE, lambda *_: None)
    again: list[int] = []
    assert vcenter.fetch(FILE, lambda done, _: again.append(done)) == here
    assert again == []
    there.write_bytes(b"two" * 1_000_001)
    assert vcenter.fetch(FILE, lambda *_: None).read_bytes() == there.read_bytes()


def test_a_file_that_is_half_here_is_never_taken_for_whole(vcenter: Gateway, there: Path) -> None:
    here = vcenter.fetch(FILE, lambda *_: None)
    here.write_bytes(b"one")
    assert vcenter.fetch(FILE, lambda *_: None).read_bytes() == there.read_bytes()


@pytest.mark.parametrize("file", ["[vsan] nothing/here.run", "[nowhere] driver.run"])
def test_what_is_not_there_is_told_by_its_name(file: str, vcenter: Gateway) -> None:
    with pytest.raises(VSphereError) as caught:
        vcenter.file_size(file)
    assert caught.value.code in {"datastore.no-file", "datastore.refused"}
    assert file in caught.value.message


@pytest.fixture
def between(lab: Lab) -> Iterator[Proxy]:
    with proxy.before(lab) as made:
        yield made


def through(between: Proxy, cache: Path, timeout_s: float = 60) -> Path:
    """Fetch the file by way of the proxy."""
    gateway = Gateway(between.sign_in(timeout_s=timeout_s), cache)
    try:
        gateway.read_site(Scope())
        return gateway.fetch(FILE, lambda *_: None)
    finally:
        gateway.close()


PATH = "/folder/a%20folder/driver%20100%25.run"


@pytest.mark.parametrize("trouble", [proxy.dropped, proxy.cut, proxy.status(503)])
def test_a_download_that_breaks_is_begun_again(
    between: Proxy, there: Path, tmp_path: Path, trouble: proxy.Trouble
) -> None:
    with between.breaking(PATH, trouble) as rule:
        assert through(between, tmp_path / "other").read_bytes() == there.read_bytes()
        assert rule.done == 1


def test_a_download_that_drips_is_left(between: Proxy, there: Path, tmp_path: Path) -> None:
    with between.breaking(PATH, proxy.drip, nth=None), pytest.raises(VSphereError) as refused:
        through(between, tmp_path / "other", timeout_s=4)
    assert refused.value.code == "vcenter.timeout"
    assert list((tmp_path / "other").rglob("*.run")) == []
