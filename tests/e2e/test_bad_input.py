"""Whatever a person gets wrong: a clear message, the right status, never a traceback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import QUAD

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.conftest import Lab, Shell

pytestmark = [pytest.mark.e2e, pytest.mark.lab]

MANY = (
    QUAD.replace("cpus = 16", "cpu = 16")
    .replace("64GiB", "64 gigs")
    .replace('profile = "A100-40C"', 'profile = "A100 40C"')
)


def test_every_mistake_of_a_file_comes_with_its_line(shell: Shell) -> None:
    shell.write("cluster.toml", MANY)
    refused = shell.vsml("check", "-o", "json")
    assert refused.status == 2
    [error] = refused.document["errors"]
    lines = {problem["line"] for problem in error["problems"]}
    assert {
        number for number, text in enumerate(MANY.splitlines(), 1) if text.startswith(("cpu =", "memory", "gpu"))
    } <= lines
    assert error["code"] == "config.invalid"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("check", "nowhere.toml"), 2),
        (("check", "."), 2),
        (("plan", "nowhere.toml"), 2),
        (("provision", "nowhere.toml", "--yes"), 2),
        (("provision", "--yes", "--plan", "nowhere.plan"), 2),
        (("provision", "--yes", "--parallel", "0"), 2),
        (("status", "--timeout", "soon"), 2),
        (("inventory", "--lab", "nowhere"), 3),
        (("inventory", "--server", "localhost:1", "--username", "x"), 2),
        (("lab", "up", "nowhere"), 2),
        (("lab", "status", "--name", "../up"), 2),
        (("plan",), 3),  # the lab that the file names does not run
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_a_mistake_ends_with_its_status_and_one_envelope(arguments: tuple[str, ...], status: int, shell: Shell) -> None:
    shell.write("cluster.toml", QUAD)
    as_text = shell.vsml(*arguments)
    assert as_text.status == status
    assert as_text.out == ""
    assert as_text.err.startswith("error: ")
    assert "Traceback" not in as_text.err
    as_json = shell.vsml(*arguments, "-o", "json")
    assert as_json.status == status
    assert as_json.document["status"] == "error"
    assert "bug" not in {each["code"] for each in as_json.document["errors"]}


def test_doctor_tells_what_it_saw_also_without_a_password(shell: Shell) -> None:
    ended = shell.vsml("doctor", "--server", "localhost:1", "--username", "x", "-o", "json")
    assert (ended.status, ended.document["status"]) == (2, "partial")
    assert [each["code"] for each in ended.document["errors"]] == ["secret.missing"]
    states = {each["target"]: each["severity"] for each in ended.document["data"]["checks"]}
    assert states == {"server": "ok", "username": "ok", "password": "error", "ca_file": "ok"}


def test_names_the_site_does_not_have_come_with_the_nearest(lab: Callable[[], Lab], shell: Shell) -> None:
    lab()
    shell.write("cluster.toml", QUAD.replace('datastore = "vsan"', 'datastore = "vsann"'))
    refused = shell.vsml("plan")
    assert refused.status == 3
    assert "vsann" in refused.err
    assert "vsan" in refused.err.replace("vsann", "")


def test_more_nodes_than_gpus_says_what_each_host_lacks(lab: Callable[[], Lab], shell: Shell) -> None:
    lab()
    shell.write("cluster.toml", QUAD.replace("node-[01-04]", "node-[01-40]"))
    refused = shell.vsml("plan", "-o", "json")
    assert refused.status == 3
    [error] = refused.document["errors"]
    assert error["code"] == "placement.infeasible"
    assert {f"esx-0{number}" for number in range(1, 5)} <= {
        detail.partition(".")[0].split(":")[0] for detail in error["details"]
    }


def test_a_wrong_password_is_told_without_it(lab: Callable[[], Lab], shell: Shell) -> None:
    site = lab()
    refused = shell.vsml(
        "inventory", "--server", site.told["address"], "--username", site.told["username"], "--tls-ca",
        site.told["ca_file"], VSML_VCENTER_PASSWORD="not-this-one-9821",
    )  # fmt: skip
    assert refused.status == 4
    assert "refuses the sign-in" in refused.err
    assert "not-this-one-9821" not in refused.err


def test_an_untrusted_certificate_is_refused_with_what_to_type(lab: Callable[[], Lab], shell: Shell) -> None:
    site = lab()
    reach = ("inventory", "--server", site.told["address"], "--username", site.told["username"])
    refused = shell.vsml(*reach, "-o", "json", VSML_VCENTER_PASSWORD=site.password)
    assert refused.status == 4
    [error] = refused.document["errors"]
    assert error["code"] == "vcenter.untrusted"
    assert "thumbprint" in json.dumps(error)
    loud = shell.vsml(*reach, "--insecure", VSML_VCENTER_PASSWORD=site.password)
    assert loud.status == 0
    assert loud.err.startswith("warning: ")
