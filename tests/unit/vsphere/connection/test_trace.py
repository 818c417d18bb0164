from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.core.errors import ConfigError
from vsphere_ml.vsphere.connection.trace import Trace

if TYPE_CHECKING:
    from pathlib import Path

KEY = "52a1b2c3-d4e5-f6a7-b8c9-d0e1f2a3b4c5"


@pytest.mark.parametrize(
    ("body", "secret", "kept"),
    [
        ("<Login><userName>ada</userName><password>hunter-22</password></Login>", "hunter-22", "ada"),
        ("<spec><adminPassword>hunter-22</adminPassword></spec>", "hunter-22", "spec"),
        ('<p:password xsi:type="xsd:string">hunter-22</p:password>', "hunter-22", "p:password"),
        (f"<returnval><key>{KEY}</key><userName>ada</userName></returnval>", KEY, "ada"),
        (
            "<AcquireTicketResponse><ticket>cst-VCT-52</ticket></AcquireTicketResponse>",
            "cst-",
            "",
        ),
        ("<AcquireCloneTicketResponse><returnval>cst-52</returnval></AcquireCloneTicketResponse>", "cst-52", ""),
        ("<AcquireGenericServiceTicketResponse><id>gst-1</id></AcquireGenericServiceTicketResponse>", "gst-1", ""),
        ("<note>the word is told&amp;known here</note>", "told&amp;known", "the word is"),
        ("<note>the word is told&known here</note>", "told&known", "the word is"),
    ],
)
def test_what_is_secret_is_struck_out_and_the_rest_is_kept(tmp_path: Path, body: str, secret: str, kept: str) -> None:
    path = tmp_path / "trace"
    trace = Trace(path)
    trace.secret("told&known")
    trace.write("-->", f"<soapenv:Body>{body}</soapenv:Body>".encode())
    trace.close()
    text = path.read_text()
    assert secret not in text
    assert "***" in text
    assert kept in text


def test_each_message_is_headed_by_its_direction_and_method(tmp_path: Path) -> None:
    trace = Trace(tmp_path / "trace")
    trace.write("<--", "<soapenv:Body><CloneVM_TaskResponse/></soapenv:Body>")
    trace.close()
    first = (tmp_path / "trace").read_text().splitlines()[0].split()
    assert (first[0], first[2]) == ("<--", "CloneVM_TaskResponse")


def test_only_its_owner_can_read_a_trace(tmp_path: Path) -> None:
    Trace(tmp_path / "trace").close()
    assert stat.S_IMODE((tmp_path / "trace").stat().st_mode) == 0o600


def test_a_trace_that_cannot_be_written_is_a_mistake_of_the_options(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        Trace(tmp_path / "missing" / "trace")
    assert caught.value.code == "trace.file"
