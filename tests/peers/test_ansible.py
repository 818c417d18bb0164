"""Ansible's community.vmware works against the lab as against a vCenter."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.peers.clients import environment

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.lab.state import Lab

pytestmark = [pytest.mark.peers, pytest.mark.lab, pytest.mark.timeout(1800)]

STORY = """
- hosts: localhost
  gather_facts: false
  vars:
    vm: {name: ansible-1, datacenter: lab-dc, folder: /lab-dc/vm}
  tasks:
    - name: clone
      community.vmware.vmware_guest: "{{ vm | combine(clone) }}"
      vars:
        clone: {template: ubuntu-22.04-gpu, cluster: gpu, state: poweredoff, wait_for_ip_address: false,
                datastore: vsan, hardware: {num_cpus: 8, memory_mb: 16384}}
      register: cloned
    - name: power on
      community.vmware.vmware_guest: "{{ vm | combine({'state': 'poweredon'}) }}"
      register: started
    - name: clone again
      community.vmware.vmware_guest: "{{ vm | combine({'state': 'present', 'template': 'ubuntu-22.04-gpu'}) }}"
      register: again
    - name: facts
      community.vmware.vmware_guest_info: {name: ansible-1, datacenter: lab-dc}
      register: facts
    - name: remove
      community.vmware.vmware_guest: "{{ vm | combine({'state': 'absent', 'force': true}) }}"
      register: removed
"""


def play(ansible: Path, lab: Lab, tmp_path: Path, text: str) -> dict[str, Any]:
    """Run a play and return each task's result by its name; fails with Ansible's own output."""
    book = tmp_path / "play.yml"
    book.write_text(text)
    env = environment(lab) | {
        "HOME": str(tmp_path),
        "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_DEPRECATION_WARNINGS": "false",
        "LC_ALL": "C.UTF-8",
    }
    command = [str(ansible / "ansible-playbook"), "-i", "localhost,", "-c", "local"]
    command += ["-e", f"ansible_python_interpreter={ansible / 'python'}", str(book)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    tasks = json.loads(done.stdout[done.stdout.index("{") :])["plays"][0]["tasks"]
    return {task["task"]["name"]: task["hosts"]["localhost"] for task in tasks}


def test_vmware_guest_clones_powers_tells_facts_and_removes(ansible: Path, lab: Lab, tmp_path: Path) -> None:
    answers = play(ansible, lab, tmp_path, STORY)
    assert answers["clone"]["changed"]
    assert answers["power on"]["instance"]["hw_power_status"] == "poweredOn"
    assert not answers["clone again"]["changed"], "a second run of the same task changes nothing"
    assert answers["facts"]["instance"]["hw_processor_count"] == 8
    assert answers["facts"]["instance"]["hw_memtotal_mb"] == 16384
    assert answers["remove"]["changed"]
