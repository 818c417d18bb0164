"""Labs as processes: several at once, a port that is taken, a name that says what they are."""

from __future__ import annotations

import re
import socket
from typing import TYPE_CHECKING

import pytest

from tests.integration import labs
from vsphere_ml.cli.views.lab import lab as view
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.lab import server, state

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.lab


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VSML_STATE_DIR", str(tmp_path))


def test_two_labs_answer_side_by_side_and_neither_trusts_the_others_password() -> None:
    quad, _ = server.start_lab(name="quad")
    try:
        seed, _ = server.start_lab("seed-7.0u2", name="seed")
        for lab, version in ((quad, "8.0.3.0"), (seed, "7.0.2.0")):
            session = labs.sign_in(lab)
            assert session.api_version == version
            session.close()
        assert quad.password() != seed.password()
        assert server.stop_lab("seed")
        assert state.running_lab("quad") == quad
    finally:
        server.stop_lab("seed")
        server.stop_lab("quad")


def test_a_port_that_is_taken_is_refused_with_a_way_out_and_leaves_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(NotPossible) as refusal:
        server.start_lab(port=taken.getsockname()[1])
    assert refusal.value.code == "lab.start-failed"
    assert "--port" in refusal.value.hint
    assert not state.folder("default").exists()


def test_a_lab_says_on_sight_that_it_is_no_hardware() -> None:
    lab, _ = server.start_lab()
    try:
        session = labs.sign_in(lab)
        assert {"vsml", "lab", "simulated"} <= set(re.findall(r"\w+", session.about))
        session.close()
        assert "simulated" in view.text(lab).plain.splitlines()[0]
        assert view.data(lab).more["simulated"] is True
    finally:
        server.stop_lab()
