"""VMs that vsml did not make and the cluster file names: configured like its own, and said to be somebody else's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import QUAD, Shell, clean_environment
from tests.integration.guests import needed, running
from vsphere_ml.ssh.keys.key_pairs import key_pair

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden

pytestmark = [pytest.mark.e2e, pytest.mark.lab, needed]

STEPS = 'about = "A file."\n[[step]]\nkind = "file"\npath = "/etc/vsml-test/first"\ntext = "hello\\n"\n'


def test_vms_of_somebody_else_are_configured_when_the_file_names_them(tmp_path: Path, golden: Golden) -> None:
    shell = Shell(tmp_path, clean_environment(tmp_path))
    shell.write("mine.toml", STEPS)
    with running(tmp_path) as site:
        site.answering(site.vm("train-a"))
        nodes = QUAD.replace("node-[01-04]", "train-a")
        guest = '[guest]\nplaybooks = ["./mine.toml"]\n'
        shell.write("cluster.toml", nodes + guest)
        refused = shell.vsml("configure", "--yes", "--wait", "0")
        assert refused.status == 5
        assert "refuses" in refused.err
        assert "own key" in refused.err

        theirs = key_pair(tmp_path, "train").private
        shell.write("cluster.toml", f'{nodes}{guest}first_boot = "none"\nkey_file = "{theirs}"\n')
        planned = shell.vsml("configure", "--dry-run")
        assert any(line.startswith("note: ") and " train-a " in line for line in planned.out.splitlines())
        done = shell.vsml("configure", "--yes")
        assert done.status == 0, done.err
        golden(done.out)
        assert shell.vsml("configure", "--yes").did_nothing
        assert shell.vsml("ssh", "train-a", "--", "cat", "/etc/vsml-test/first").out == "hello\n"
