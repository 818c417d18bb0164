"""What steps find and leave in every guest, the one in memory and the lab's alike.

A module that runs it defines the fixture `shell`, one guest for all tests: its apt knows numactl; it has the unit
nvidia-gridd, the module nvidia-peermem, and the user ubuntu.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.contract.shell_contract import said
from tests.fakes.converging import check, converge
from tests.unit.guest.cluster import facts
from vsphere_ml.core.errors import GuestError
from vsphere_ml.guest.playbooks.playbook import load_text

if TYPE_CHECKING:
    from vsphere_ml.core.model.guest import Playbook, Shell

VERSION = "2.0.14+lab"
STEPS = {
    "a package": f'kind = "packages"\nnames = ["numactl={VERSION}"]',
    "a file": 'kind = "file"\npath = "/etc/it\'s $(here)"\ntext = "a \\"b\\" $HOME\\n"\nmode = "0640"',
    "a file of a user": 'kind = "file"\npath = "/home/ubuntu/.profile"\ntext = "x\\n"\nowner = "ubuntu:"',
    "a template": 'kind = "file"\npath = "/etc/vsml-test/hosts"\ntemplate = "hosts"',
    "a line": 'kind = "line"\npath = "/etc/environment"\nline = "NCCL_DEBUG=INFO"\nmatch = "^NCCL_DEBUG="',
    "a line in a new file": 'kind = "line"\npath = "/etc/vsml-test/new"\nline = "it\'s $HOME"',
    "a module": 'kind = "kernel_module"\nname = "nvidia-peermem"',
    "a service": 'kind = "service"\nname = "nvidia-gridd"',
    "a setting": 'kind = "sysctl"\nname = "net"\nsettings = { "net.core.rmem_max" = 16777216 }',
    "limits": 'kind = "limits"\nhugepages = 16',
    "names": 'kind = "hosts_file"',
    "a hostfile": 'kind = "hostfile"',
    "a mesh of root": 'kind = "ssh_mesh"',
    "a mesh of a user": 'kind = "ssh_mesh"\nuser = "ubuntu"\nport = 2222',
}


def book(*names: str) -> Playbook:
    return load_text('about = "x"\n' + "".join(f"[[step]]\n{STEPS[name]}\n" for name in names))


def bring(shell: Shell, playbook: Playbook) -> list[str]:
    """Converge and return the states."""
    done = converge(playbook, shell, facts(), lambda _event: None)
    return [each.state.value for each in done.outcomes]


class StepsContract:
    @pytest.mark.parametrize("name", STEPS)
    def test_what_lacks_is_provided_once(self, shell: Shell, name: str) -> None:
        playbook = book(name)
        assert check(playbook, shell, facts()).pending
        assert bring(shell, playbook) == ["changed"]
        assert bring(shell, playbook) == ["ok"]

    def test_it_is_all_there_after_a_reboot(self, shell: Shell) -> None:
        playbook = book(*STEPS)
        bring(shell, playbook)
        shell.reboot(60)
        missing = {each.step: each.drift for each in check(playbook, shell, facts()).pending}
        assert not missing, missing

    def test_what_others_changed_is_put_right(self, shell: Shell) -> None:
        playbook = book("a file", "a line", "names")
        bring(shell, playbook)
        shell.write("/etc/it's $(here)", 'a "b" $HOME\n', mode=0o777)
        shell.write("/etc/environment", "A=1\nNCCL_DEBUG=WARN\nB=2\n")
        shell.write("/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 node-1\n")
        assert bring(shell, playbook) == ["changed"] * 3
        assert said(shell, "cat /etc/environment") == "A=1\nNCCL_DEBUG=INFO\nB=2\n"
        assert "127.0.1.1" not in said(shell, "cat /etc/hosts")

    def test_a_package_that_apt_does_not_know_is_told_in_its_words(self, shell: Shell) -> None:
        wanted = load_text('about = "x"\n[[step]]\nkind = "packages"\nnames = ["no-such-thing"]\n')
        with pytest.raises(GuestError) as raised:
            bring(shell, wanted)
        assert raised.value.code == "guest.step-failed"
        assert "100" in raised.value.message
        assert any(re.fullmatch("E: .* no-such-thing", line) for line in raised.value.details)
