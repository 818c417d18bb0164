"""What looks like a link's figure and is none: one host, a rate that was set, several streams, a group of receivers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import public_logs
from vsphere_ml.bench.imports.parsed import ImportOptions
from vsphere_ml.bench.model.record import Outcome
from vsphere_ml.core.errors import ConfigError

FOLDER = Path(__file__).parents[3] / "cases" / "imports"
RECEIVED = "[{id:>3}] 0.00-10.00 sec 9.43 GBytes {rate} Mbits/sec receiver"
INTERVAL = "[{id:>3}] 9.00-10.00 sec 943 MBytes {rate} Mbits/sec 0 1.0 MBytes"
TITLES = "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd"
ENDS = "[{id:>3}] local {local} port {port} connected to {remote} port 5201"
WRITE = (FOLDER / "ib-write-bw.txt").read_text()


def refusal(content: str) -> str:
    """Return the code with which a log is refused; empty when it is read."""
    try:
        public_logs.imported(content, ImportOptions())
    except ConfigError as error:
        return error.code
    return ""


def iperf3_text(
    *lines: str, before: str = "", local: str = "10.0.0.11", remote: str = "10.0.0.12", streams: int = 1
) -> str:
    ends = [ENDS.format(id=5 + 2 * at, local=local, remote=remote, port=40000 + at) for at in range(streams)]
    return "\n".join((before, f"Connecting to host {remote}, port 5201", *ends, TITLES, *lines, "iperf Done.")) + "\n"


ONE = RECEIVED.format(id=5, rate=8103)


@pytest.mark.parametrize(
    ("log", "code"),
    [
        (iperf3_text(ONE), ""),
        (iperf3_text(ONE, local="127.0.0.1", remote="127.0.0.1"), "import.loopback"),
        (iperf3_text(ONE, local="::1", remote="::1"), "import.loopback"),
        (iperf3_text(ONE, local="::ffff:127.0.0.1", remote="::ffff:127.0.0.1"), "import.loopback"),
        (iperf3_text(ONE, local="10.0.0.11", remote="10.0.0.11"), "import.loopback"),
        (f"Connecting to host localhost, port 5201\n{TITLES}\n{ONE}\n", "import.loopback"),
        (f"Accepted connection from 127.0.0.1, port 40000\n{TITLES}\n{ONE}\n", "import.loopback"),
        (iperf3_text(ONE, before="$ iperf3 -c 10.0.0.12 -b 1G"), "import.statistic"),
        (iperf3_text(ONE, before="$ iperf3 -c 10.0.0.12 --bitrate 500M -t 10"), "import.statistic"),
        (iperf3_text(ONE, before="$ iperf3 -c 10.0.0.12 -b 0 -t 10"), ""),
        (iperf3_text(ONE, before="[ ID] Interval Transfer Bitrate Jitter Lost/Total Datagrams"), "import.statistic"),
        (iperf3_text(ONE, streams=2), "import.empty"),
        (iperf3_text(INTERVAL.format(id=5, rate=1), INTERVAL.format(id=7, rate=1), ONE), "import.empty"),
        (iperf3_text("[SUM] 9.00-10.00 sec 943 MBytes 8 Gbits/sec", ONE), "import.empty"),
        (iperf3_text(ONE, RECEIVED.format(id=7, rate=1), streams=2), "import.joined"),
        (iperf3_text(ONE, RECEIVED.format(id=7, rate=1), RECEIVED.format(id="SUM", rate=2), streams=2), ""),
    ],
)
def test_iperf3s_text_is_a_link_only_between_two_hosts_at_full_rate_and_with_its_sum(log: str, code: str) -> None:
    assert refusal(log) == code


@pytest.mark.parametrize(
    ("test", "ends", "code"),
    [
        ({}, ("10.0.0.11", "10.0.0.12"), ""),
        ({}, ("127.0.0.1", "127.0.0.1"), "import.loopback"),
        ({}, ("10.0.0.11", "10.0.0.11"), "import.loopback"),
        ({}, ("fe80::1%eth0", "fe80::1%eth0"), "import.loopback"),
        ({}, ("10.0.0.11", "239.1.1.1"), "import.statistic"),
        ({"target_bitrate": 1000000000}, ("10.0.0.11", "10.0.0.12"), "import.statistic"),
        ({"fqrate": 1000000000}, ("10.0.0.11", "10.0.0.12"), "import.statistic"),
        ({"bidir": 1}, ("10.0.0.11", "10.0.0.12"), "import.statistic"),
        ({"protocol": "UDP", "target_bitrate": 1048576}, ("10.0.0.11", "10.0.0.12"), "import.statistic"),
        ({"protocol": "UDP", "target_bitrate": 0}, ("10.0.0.11", "10.0.0.12"), "import.statistic"),
        ({"protocol": "SCTP"}, ("10.0.0.11", "10.0.0.12"), "import.statistic"),
    ],
)
def test_iperf3s_json_likewise(test: dict[str, Any], ends: tuple[str, str], code: str) -> None:
    document = json.loads((FOLDER / "iperf3.json").read_text())
    document["start"]["test_start"] |= test
    document["start"]["connected"][0] |= dict(zip(("local_host", "remote_host"), ends, strict=True))
    assert refusal(json.dumps(document)) == code


def test_udp_of_an_iperf3_that_does_not_tell_its_rate_is_no_links_figure() -> None:
    document = json.loads((FOLDER / "iperf3.json").read_text())
    document["start"]["test_start"]["protocol"] = "UDP"
    del document["start"]["test_start"]["target_bitrate"]
    assert refusal(json.dumps(document)) == "import.statistic"


def perftest(lids: tuple[str, str] = ("0000", "0000"), gids: tuple[str, str] = ("01", "02")) -> str:
    text = "".join(
        f" {end} address: LID {lid} QPN 0x0032 PSN 0x5f2841 RKey 0x1 VAddr 0x7f\n GID: 00:00:ff:ff:10:00:00:{gid}\n"
        for end, lid, gid in zip(("local", "remote"), lids, gids, strict=True)
    )
    return WRITE.replace("allocating GPU buffer\n", text)


@pytest.mark.parametrize(
    ("log", "code"),
    [
        (perftest(), ""),
        (perftest(("0x02", "0x03")), ""),
        (perftest(gids=("01", "01")), "import.loopback"),
        (perftest(("0x02", "0x02")), "import.loopback"),
        (WRITE.replace("RDMA_Write BW Test", "Send BW Multicast Test") + "ib_send_bw -g 1\n", "import.statistic"),
        (WRITE.replace("RDMA_Write BW Test", "RDMA_Write_imm BW Test"), "import.statistic"),
        (WRITE.replace("RDMA_Write BW Test", "RDMA_Write Latency Test"), "import.statistic"),
        (
            "  RDMA_Write Latency Test\n #bytes #iterations t_min[usec] t_max[usec]\n 2 1000 0.9 3.1\n",
            "import.statistic",
        ),
        (WRITE.replace("RDMA_Write BW Test", "RDMA_Write Post List BW Test"), ""),
        (WRITE.replace("0.001377", "0.001380"), "import.differs"),
        (WRITE.replace("Gb/sec", "MiB/sec"), "import.differs"),
        (WRITE.replace("92.39", "93.39"), "import.differs"),
        (f" Connection type : RawEth\t\tUsing SRQ      : OFF\n{WRITE}", "import.statistic"),
        (f"$ raw_ethernet_bw --client -d mlx5_0\n{WRITE}", "import.statistic"),
        (f"$ ib_write_bw --rate_limit=10 --report_gbits 10.0.0.12\n{WRITE}", "import.statistic"),
    ],
)
def test_perftest_is_a_link_only_between_two_ports_in_one_direction(log: str, code: str) -> None:
    assert refusal(log) == code


def ends_of(content: str) -> tuple[str, str]:
    (link,) = public_logs.imported(content, ImportOptions()).link_results
    return link.sender, link.receiver


def test_what_a_client_reads_the_server_sends() -> None:
    assert ends_of(WRITE) == ("client", "server")
    assert ends_of(WRITE.replace("RDMA_Write BW Test", "RDMA_Read BW Test")) == ("server", "client")


@pytest.mark.parametrize("reverse", [0, 1])
def test_iperf3s_server_and_client_write_the_same_direction(reverse: int) -> None:
    document = json.loads((FOLDER / "iperf3.json").read_text())
    start = document["start"]
    start["test_start"]["reverse"] = reverse
    start["connected"][0] |= {"local_host": "10.0.0.11", "remote_host": "10.0.0.12"}
    by_client = ends_of(json.dumps(document))
    start["connected"][0] |= {"local_host": "10.0.0.12", "remote_host": "10.0.0.11"}
    start["accepted_connection"] = start.pop("connecting_to")
    assert ends_of(json.dumps(document)) == by_client
    assert by_client == (("10.0.0.12", "10.0.0.11") if reverse else ("10.0.0.11", "10.0.0.12"))


def test_iperf3s_streams_are_counted_past_99() -> None:
    rows = [RECEIVED.format(id=5 + 2 * at, rate=8) for at in range(64)]
    log = iperf3_text(*rows, RECEIVED.format(id="SUM", rate=8103), streams=64)
    assert public_logs.imported(log, ImportOptions()).configuration.options["streams"] == "64"


def test_sums_that_osu_found_wrong_make_the_run_invalid() -> None:
    table = "# OSU MPI Allreduce Latency Test v7.3\n# Size  Avg Latency(us)  Validation\n4  2.11  Pass\n8  2.12  {}\n"
    given = ImportOptions(ranks=4, nodes=2)
    assert public_logs.imported(table.format("Pass"), given).outcome is Outcome.COMPLETE
    wrong = public_logs.imported(table.format("Fail"), given)
    assert (wrong.outcome, wrong.sweep) == (Outcome.INVALID, ())
