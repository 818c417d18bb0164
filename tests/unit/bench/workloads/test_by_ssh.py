"""Ranks by the job's `ssh`, or one torchrun a node: what each gets, and how the job ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from vsphere_ml.bench.launch import remote_job
from vsphere_ml.bench.workloads import pytorch_ddp

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = remote_job.WORKLOADS / "by_ssh.py"
# In place of PyTorch's: tells its words and variables, and ends as its node is to.
STANDIN = """\
import json, os, sys, time
node = sys.argv[sys.argv.index("--node_rank") + 1]
with open(os.environ["SEEN"] + node, "w") as seen:
    json.dump({"words": sys.argv[1:], "colour": os.environ.get("COLOUR"), "secret": os.environ.get("SECRET")}, seen)
code = os.environ["ENDS"].split(",")[int(node)]
time.sleep(600) if code == "never" else sys.exit(int(code))
"""
# The other node is this system too, with a shell that has no variables of ours but what the stand-in needs.
SSH = """\
#!/bin/sh
echo "$1" >>{seen}addresses
exec env -i PYTHONPATH={path} SEEN={seen} ENDS={ends} sh -c "exec $2"
"""


def start(folder: Path, ends: str) -> subprocess.CompletedProcess[bytes]:
    package = folder / "path" / "torch" / "distributed"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "run.py").write_text(STANDIN)
    (folder / "bin").mkdir()
    ssh, seen = folder / "bin" / "ssh", f"{folder}/seen-"
    ssh.write_text(SSH.format(seen=seen, path=folder / "path", ends=ends))
    ssh.chmod(0o755)
    env = {"PYTHONPATH": str(folder / "path"), "SEEN": seen, "ENDS": ends, "COLOUR": "deep blue", "SECRET": "hunter2"}
    nodes = ("--nodes", "10.0.0.11,10.0.0.12", "--ranks-per-node", "2")
    words = ["--folder", str(folder), *nodes, "--export", "COLOUR,OTHER", "--torchrun", "--", "prog", "a b"]
    return subprocess.run([sys.executable, SCRIPT, *words], env=os.environ | env, check=False, timeout=60)


def seen(folder: Path, node: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"seen-{node}").read_text())
    return found


def test_each_node_has_its_number_and_all_meet_at_the_first(tmp_path: Path) -> None:
    assert start(tmp_path, "0,0").returncode == 0
    assert (tmp_path / "seen-addresses").read_text() == "10.0.0.12\n"
    words = [seen(tmp_path, node)["words"] for node in (0, 1)]
    assert [each[: each.index("--master_port")] for each in words] == [
        [*("--nnodes", "2", "--node_rank", node, "--nproc_per_node", "2", "--master_addr", "10.0.0.11")]
        for node in ("0", "1")
    ]
    ports = {each[each.index("--master_port") + 1] for each in words}
    assert len(ports) == 1
    assert 1024 < int(ports.pop()) < 65536
    assert all(each[each.index("--no_python") :] == ["--no_python", "prog", "a b"] for each in words)


# What a rank without a launcher of a library is: it tells its place, and ends as its rank is to.
RANK = """\
import json, os, sys
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "COLOUR", "SECRET")
with open(os.environ["SEEN"] + os.environ["RANK"], "w") as seen:
    json.dump({name: os.environ.get(name) for name in names}, seen)
sys.exit(int(os.environ["ENDS"].split(",")[int(os.environ["RANK"])]))
"""


def start_ranks(folder: Path, ends: str) -> subprocess.CompletedProcess[bytes]:
    (folder / "bin").mkdir()
    ssh, seen = folder / "bin" / "ssh", f"{folder}/seen-"
    ssh.write_text(SSH.format(seen=seen, path=folder, ends=ends))
    ssh.chmod(0o755)
    nodes = ("--nodes", "10.0.0.11,10.0.0.12", "--ranks-per-node", "2")
    words = ["--folder", str(folder), *nodes, "--export", "COLOUR", "--", sys.executable, "-c", RANK]
    env = {"SEEN": seen, "ENDS": ends, "COLOUR": "deep blue", "SECRET": "hunter2"}
    return subprocess.run([sys.executable, SCRIPT, *words], env=os.environ | env, check=False, timeout=60)


def test_ranks_without_a_launcher_have_their_places_and_meet_at_the_first_node(tmp_path: Path) -> None:
    assert start_ranks(tmp_path, "0,0,0,0").returncode == 0
    assert (tmp_path / "seen-addresses").read_text() == "10.0.0.12\n" * 2
    places = [seen(tmp_path, rank) for rank in range(4)]
    assert [(each["RANK"], each["LOCAL_RANK"], each["SECRET"]) for each in places[2:]] == [
        ("2", "0", None),
        ("3", "1", None),
    ]
    assert {(each["WORLD_SIZE"], each["MASTER_ADDR"], each["COLOUR"]) for each in places} == {
        ("4", "10.0.0.11", "deep blue")
    }
    assert len({each["MASTER_PORT"] for each in places}) == 1


def test_a_rank_that_fails_ends_those_of_all_nodes_with_its_status(tmp_path: Path) -> None:
    assert start_ranks(tmp_path, "0,0,0,5").returncode == 5


def test_variables_reach_the_other_nodes_by_name_and_no_others_do(tmp_path: Path) -> None:
    start(tmp_path, "0,0")
    assert (seen(tmp_path, 1)["colour"], seen(tmp_path, 1)["secret"]) == ("deep blue", None)


@pytest.mark.parametrize(("ends", "status"), [("7,never", 7), ("never,9", 9)])
def test_the_first_that_fails_ends_the_job_with_its_status(tmp_path: Path, ends: str, status: int) -> None:
    assert start(tmp_path, ends).returncode == status


def test_buckets_are_those_of_distributed_data_parallel() -> None:
    mib = 1 << 20
    assert pytorch_ddp.bucket_sizes([4 * mib, 30 * mib, 3 * mib, mib // 2]) == [mib // 2 + 3 * mib, 30 * mib, 4 * mib]
    assert pytorch_ddp.bucket_sizes([]) == []
