"""Files that are known and not read are refused by name, and JSON that is cut or several says so."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from tests.fakes import public_logs
from vsphere_ml.bench.imports.parsed import ImportOptions
from vsphere_ml.core.errors import ConfigError

FOLDER = Path(__file__).parents[3] / "cases" / "imports"
DOCUMENTS = [(FOLDER / name).read_text() for name in ("iperf3.json", "nccl-tests.json")]


def refusal(content: str | bytes) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        public_logs.imported(content, ImportOptions())
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("content", "tool"),
    [
        (
            "Client connecting to 10.0.0.12, TCP port 5001\n[ ID] Interval Transfer Bandwidth\n",
            "iperf 2",
        ),
        ("Server listening on TCP port 5001\nTCP window size: 128 KByte (default)\n", "iperf 2"),
        ('{"test_info": {"test": "RDMA_Write_BW_Test"}, "results": {"MsgSize": 65536}}', "perftest's --out_json"),
        ("nvbandwidth Version: v0.4\nBuilt from Git version: v0.4\n", "nvbandwidth"),
        (":::MLLOG {}\n", "MLPerf's log"),
        ("# Benchmarking Allreduce \n# #processes = 2\n", "Intel MPI Benchmarks"),
    ],
)
def test_a_tool_that_is_not_read_is_named_with_what_can_be_given(content: str, tool: str) -> None:
    error = refusal(content)
    assert (error.code, error.target) == ("import.not-read", tool)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_json_that_was_cut_anywhere_is_never_read(document: str) -> None:
    ends = [at for at in range(1, len(document.rstrip())) if at % 97 == 0]
    codes = {refusal(document[:at]).code for at in ends}
    assert codes == {"import.unknown"}


@pytest.mark.parametrize("between", ["", "\n", "\n\n"])
def test_two_json_texts_in_one_file_are_two_runs(between: str) -> None:
    for document in DOCUMENTS:
        assert refusal(document + between + document).code == "import.joined"


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize(
    "encode",
    [
        lambda text: codecs.BOM_UTF8 + text.encode(),
        lambda text: text.encode("utf-16"),
        lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
        lambda text: text.encode("utf-16-le"),
        lambda text: text.replace("\n", "\r\n").encode(),
    ],
    ids=["mark", "utf-16", "utf-16-be", "bare", "crlf"],
)
def test_json_is_read_however_it_is_encoded(document: str, encode: object) -> None:
    assert callable(encode)
    assert public_logs.imported(encode(document), ImportOptions()).run_id
