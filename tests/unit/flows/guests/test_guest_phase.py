"""The guests' half of `provision`, on a site and guests in memory: one plan, one consent, no guest hides another."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.guest import FakeGuest
from tests.fakes.guests import FakeGuests
from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster, node
from tests.fakes.site import Cut, FakeVCenter
from tests.unit.flows.acting import Told
from vsphere_ml.core.errors import GuestError, NotPossible, VSphereError
from vsphere_ml.core.model.spec import Address, ClusterSpec, FirstBootBy, GuestAccess, HostKeys
from vsphere_ml.core.nodes.firstboot import ADDRESS_KEY, HOST_KEYS
from vsphere_ml.core.plan.changes import CloneVm
from vsphere_ml.core.plan.outcome import Interrupted
from vsphere_ml.core.ports.events import Fetching
from vsphere_ml.flows.cluster import provision as provisioning
from vsphere_ml.flows.cluster.proposal import GuestConfig, Proposal, propose
from vsphere_ml.flows.cluster.saved import load, save
from vsphere_ml.flows.guests import guests as of_guests
from vsphere_ml.flows.guests.guests import GuestPhase, StepInputs
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.guest.events import GuestEvent, Waiting
from vsphere_ml.guest.firstboot import first_boots
from vsphere_ml.guest.playbooks.playbook import load_text

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden
    from vsphere_ml.core.model.spec import NodeSpec
    from vsphere_ml.core.ports.events import Listener
    from vsphere_ml.flows.cluster.report import Report

NAMES = ("node-1", "node-2", "node-3")
FILE = 'about = "A file."\n[[step]]\nkind = "file"\npath = "/etc/greeting"\ntext = "{}\\n"\n'


def spec_of(wanted: int | tuple[NodeSpec, ...] = 3, **knobs: object) -> ClusterSpec:
    return cluster(wanted, guest=GuestAccess(first_boot=FirstBootBy.CLOUD_INIT), **knobs)


@dataclass
class Rig:
    """A site, its guests, and what a person was asked."""

    spec: ClusterSpec = field(default_factory=spec_of)
    vcenter: FakeVCenter = field(default_factory=lambda: FakeVCenter(quad_8u3()))
    guests: FakeGuests = field(default_factory=lambda: FakeGuests({name: FakeGuest(name) for name in NAMES}))
    text: str = FILE.format("hello")
    asked: list[Proposal] = field(default_factory=list)
    heard: list[GuestEvent] = field(default_factory=list)

    @property
    def given(self) -> GuestConfig:
        phase = GuestPhase(
            guests=self.guests,
            playbooks=(load_text(self.text, "mine.toml"),),
            given=StepInputs(),
            notify=self.heard.append,
            wait_s=60.0,
        )
        return GuestConfig(first_boots=first_boots(self.spec, ("ssh-ed25519 KEY",)), phase=phase)

    def run(self, *, given: GuestConfig | None = None, notify: Listener | None = None, **task: object) -> Report:
        return provisioning.provision(
            RunContext(self.spec, self.vcenter, Told() if notify is None else notify, self.vcenter.clock),
            approve=self._approve,
            given=given or self.given,
            task=provisioning.ProvisionTask(**task),  # type: ignore[arg-type]
        )

    def propose(self) -> Proposal:
        return propose(RunContext(self.spec, self.vcenter, Told(), self.vcenter.clock), given=self.given)

    def greeted(self) -> set[str]:
        return {name for name, guest in self.guests.there.items() if "/etc/greeting" in guest.files}

    def _approve(self, proposal: Proposal) -> bool:
        self.asked.append(proposal)
        return True


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_an_empty_site_becomes_configured_guests_with_one_consent_and_a_second_run_does_nothing(rig: Rig) -> None:
    report = rig.run()
    assert (report.done, len(rig.asked), rig.greeted()) == (True, 1, set(NAMES))
    assert rig.asked[0].guests is not None
    assert rig.asked[0].guests.after_boot == NAMES
    again = rig.run()
    assert (again.done, again.applied, len(rig.asked)) == (True, False, 1)


def test_new_vms_carry_their_first_boot_and_nothing_that_the_template_left(rig: Rig) -> None:
    vms = tuple(
        replace(vm, settings=replace(vm.settings, extra_config={HOST_KEYS: "ssh-ed25519 THE-TEMPLATES"}))
        if vm.template and vm.settings
        else vm
        for vm in rig.vcenter.inventory.vms
    )
    rig.vcenter.inventory = replace(rig.vcenter.inventory, vms=vms)
    rig.vcenter.boots = rig.vcenter._physics.boots = False
    rig.run(given=replace(rig.given, phase=None))
    made = next(vm for vm in rig.vcenter.inventory.vms if vm.name == "node-1")
    assert made.settings is not None
    assert made.settings.extra_config["guestinfo.metadata.encoding"] == "base64"
    assert HOST_KEYS not in made.settings.extra_config


def test_first_boot_data_that_vcenter_drops_is_told_again_and_its_vm_is_not_powered_on_without(golden: Golden) -> None:
    rig = Rig(vcenter=FakeVCenter(quad_8u3(), drops=frozenset({"extraConfig:guestinfo.userdata"})))
    report = rig.run()
    assert {drop.vm for drop in report.not_applied} == set(NAMES)
    golden(report.not_applied[0].drift)
    assert not any(vm.powered_on for vm in rig.vcenter.inventory.vms if vm.name in NAMES)


def test_first_boot_data_of_the_files_own_is_left_as_it_is(rig: Rig) -> None:
    rig.spec = spec_of((node("node-1", extra_config={"guestinfo.userdata": "mine"}),))
    assert rig.run().done
    made = next(vm for vm in rig.vcenter.inventory.vms if vm.name == "node-1")
    assert made.settings is not None
    assert made.settings.extra_config["guestinfo.userdata"] == "mine"


def test_what_standing_guests_lack_is_in_the_plan_and_nothing_is_written_for_it(rig: Rig) -> None:
    rig.run()
    del rig.guests.there["node-2"].files["/etc/greeting"]
    report = rig.run(dry_run=True)
    assert report.guests is not None
    assert [guest.node for guest in report.guests.plan.guests if guest.is_pending] == ["node-2"]
    assert rig.greeted() == {"node-1", "node-3"}
    assert report.error is None
    before = rig.guests.there["node-1"].round_trips
    assert rig.run().done
    assert rig.greeted() == set(NAMES)
    assert rig.guests.there["node-1"].round_trips == before + 1  # the plan's question, and no more


def test_a_guest_that_cannot_be_asked_now_is_said_so_and_asked_again(rig: Rig) -> None:
    rig.run()
    rig.guests.booting = {"node-3"}
    report = rig.run(dry_run=True)
    assert report.guests is not None
    assert [guest.node for guest in report.guests.plan.unreachable] == ["node-3"]
    assert report.error is None
    done = rig.run()
    assert (done.applied, done.done) == (True, True)


def test_one_guests_failure_never_hides_the_others_and_ends_with_the_guests_status(rig: Rig) -> None:
    rig.guests.there["node-2"].disk_full = True
    report = rig.run()
    assert rig.greeted() == {"node-1", "node-3"}
    assert isinstance(report.error, GuestError)
    assert report.error.status == 5
    assert any("log: /logs/node-2.log" in line for line in report.error.details)


def test_a_few_at_a_time_a_guest_that_is_not_reached_keeps_the_next_ones_from_being_begun(rig: Rig) -> None:
    rig.run()
    rig.text = FILE.format("hello again")
    vms = (replace(vm, guest_ip=None) if vm.name == "node-2" else vm for vm in rig.vcenter.inventory.vms)
    rig.vcenter.inventory = replace(rig.vcenter.inventory, vms=tuple(vms))
    before = {name: len(guest.history) for name, guest in rig.guests.there.items()}
    assert rig.given.phase is not None
    report = rig.run(given=replace(rig.given, phase=replace(rig.given.phase, rolling=1)))
    assert report.guests is not None
    assert report.guests.not_begun == ("node-3",)
    assert len(rig.guests.there["node-1"].history) > before["node-1"]
    assert len(rig.guests.there["node-3"].history) == before["node-3"]


def test_a_vm_that_failed_is_no_guest_and_both_halves_are_told(rig: Rig) -> None:
    def fails(change: object) -> VSphereError | None:
        hit = isinstance(change, CloneVm) and change.vm == "node-1"
        return VSphereError("the disk is on fire", code="vsphere.task-failed") if hit else None

    rig.vcenter.fails = fails
    rig.guests.there["node-2"].disk_full = True
    report = rig.run()
    assert [error.code for error in report.errors] == ["provision.incomplete", "guest.incomplete"]
    assert rig.greeted() == {"node-3"}
    assert "node-1" not in str(report.errors[1].details)


def test_a_guest_without_an_address_is_told_with_what_was_seen_last(rig: Rig, golden: Golden) -> None:
    rig.vcenter._physics.boots = False
    report = rig.run()
    assert report.guests is not None
    error = report.guests.guests[0].error
    assert error is not None
    assert error.code == "guest.no-address"
    golden(error)
    assert error.details == ("waited 60 s",)
    assert "/var/log/cloud-init-output.log" in error.hint
    golden([event for event in rig.heard if isinstance(event, Waiting)])
    assert rig.vcenter.clock.now() >= 58


def test_the_log_to_read_is_that_of_who_tells_the_guest_its_address() -> None:
    for first_boot, log in (
        (FirstBootBy.CUSTOMIZATION, "/var/log/vmware-imc/toolsDeployPkg.log"),
        (FirstBootBy.CLOUD_INIT, "/var/log/cloud-init-output.log"),
    ):
        hint = of_guests.on_its_console(first_boot)
        assert [each for each in hint.split() if each.endswith(".log")] == [log]


def test_a_guest_that_never_answers_is_told_with_its_tools_its_address_and_the_log_to_read(
    rig: Rig, golden: Golden
) -> None:
    rig.guests.there["node-2"].unreachable = True
    rig.guests.unvouched = {"node-2"}
    report = rig.run()
    assert report.guests is not None
    error = report.guests.guests[1].error
    assert error is not None
    assert error.code == "guest.unreachable"
    golden(error)
    assert "/var/log/cloud-init-output.log" in error.details[1]
    assert rig.greeted() == {"node-1", "node-3"}


def test_host_keys_that_are_published_late_are_waited_for(rig: Rig, golden: Golden) -> None:
    rig.guests.unvouched = {"node-2"}
    sleep = rig.vcenter.clock.sleep

    def later(seconds: float) -> None:
        sleep(seconds)
        if rig.heard:
            rig.guests.unvouched.clear()

    rig.vcenter.clock.sleep = later  # type: ignore[method-assign]
    assert rig.run().done
    waitings = [event for event in rig.heard if isinstance(event, Waiting)]
    assert [event.node for event in waitings] == ["node-2"]
    golden(waitings[0].reason)


def test_a_new_node_makes_the_others_learn_of_it(rig: Rig) -> None:
    rig.text = 'about = "Names."\n[[step]]\nkind = "hosts_file"\n'
    three = rig.spec
    rig.spec = spec_of(2)
    rig.run()
    rig.spec = three
    assert rig.run().done
    assert "node-3" in rig.guests.there["node-1"].files["/etc/hosts"].text
    assert rig.run().applied is False


def test_an_address_that_changed_since_the_first_boot_is_a_finding(rig: Rig, golden: Golden) -> None:
    rig.spec = spec_of((node("node-1", address=Address(address="10.0.0.11/24", gateway="10.0.0.1")),))
    rig.run()
    rig.spec = spec_of((node("node-1", address=Address(address="10.0.0.99/24", gateway="10.0.0.1")),))
    report = rig.run()
    assert not report.plan
    (finding,) = report.diagnostics
    assert finding.code == "guest.address-changed"
    golden(finding)


def test_guests_are_left_alone_and_the_report_says_why(rig: Rig, golden: Golden) -> None:
    report = rig.run(given=GuestConfig(first_boots={}, skipped_guests="the cluster file has no [guest]"))
    assert (report.done, report.guests) == (True, None)
    golden(report.skipped_guests)
    assert all(not guest.round_trips for guest in rig.guests.there.values())


def test_ctrl_c_while_guests_are_configured_gives_the_lock_back(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FakeGuests, "each", interrupted)
        with pytest.raises(Interrupted):
            rig.run()
    assert not rig.vcenter.locked
    assert rig.run().done


@pytest.mark.parametrize("after", range(1, 17))
def test_a_run_cut_anywhere_in_the_site_is_finished_with_its_guests_by_the_next(rig: Rig, after: int) -> None:
    rig.vcenter.cut_after = after
    with suppress(Cut):
        rig.run()
    rig.vcenter.mend()
    assert rig.run().done
    assert rig.greeted() == set(NAMES)
    assert rig.run().applied is False


def test_a_run_cut_in_a_guest_is_finished_by_the_next(rig: Rig) -> None:
    rig.guests.there["node-2"].cut_after = 0
    assert rig.run().error is not None
    rig.guests.there["node-2"].cut_after = None
    assert rig.run().done
    assert rig.greeted() == set(NAMES)


KEY = "[nfs] keys/lab.asc"
REPOSITORY = f"""about = "A repository."
[[step]]
kind = "apt_repository"
name = "lab"
url = "https://mirror.example.com"
key = "{KEY}"
"""


def test_a_file_that_no_datastore_has_ends_the_run_before_anything_is_done(rig: Rig) -> None:
    rig.text = REPOSITORY
    with pytest.raises(VSphereError) as caught:
        rig.run()
    assert caught.value.code == "datastore.no-file"
    assert (rig.vcenter.started, rig.asked) == (0, [])


def test_a_datastores_file_is_fetched_once_for_all_guests_and_given_to_the_steps_that_lack_it(
    rig: Rig, tmp_path: Path
) -> None:
    rig.text = REPOSITORY
    rig.vcenter.files = {KEY: b"a key"}
    rig.vcenter.downloads = tmp_path
    answers = Told()
    rig.run(notify=answers)
    assert [event.file for event in answers if isinstance(event, Fetching)] == [KEY]
    assert {guest.files["/etc/apt/keyrings/lab.asc"].text for guest in rig.guests.there.values()} == {"a key"}
    again = Told()
    assert not rig.run(notify=again).applied
    assert not any(isinstance(event, Fetching) for event in again)


def stale(rig: Rig, text: str) -> tuple[str, ...]:
    with pytest.raises(NotPossible) as caught:
        rig.run(saved=load(text, "night.plan"))
    assert caught.value.code == "plan.stale"
    return caught.value.details


def test_a_saved_plan_is_carried_out_in_both_halves(rig: Rig) -> None:
    text = save(rig.propose(), rig.spec)
    assert rig.run(saved=load(text, "night.plan")).done
    assert rig.greeted() == set(NAMES)


def test_a_saved_plan_holds_the_first_boot_by_its_digest_alone(rig: Rig) -> None:
    text = save(rig.propose(), rig.spec)
    clone = next(
        each for stage in json.loads(text)["stages"] for each in stage["changes"] if each["change"] == "CloneVm"
    )
    assert set(clone["first_boot"]) == {"type", "by", "user", "address", "digest"}
    assert rig.given.first_boots["node-1"].keys["guestinfo.userdata"] not in text


def test_a_saved_plan_is_stale_when_a_playbook_or_a_guest_changed(rig: Rig, golden: Golden) -> None:
    text = save(rig.propose(), rig.spec)
    rig.text = FILE.format("good evening")
    golden(stale(rig, text))
    rig.run()
    text = save(rig.propose(), rig.spec)
    del rig.guests.there["node-3"].files["/etc/greeting"]
    golden(stale(rig, text))
    rig.guests.booting = {"node-3"}
    golden(stale(rig, text))


def test_a_saved_plan_is_stale_when_the_first_boot_would_be_another(rig: Rig, golden: Golden) -> None:
    text = save(rig.propose(), rig.spec)
    rig.spec = replace(rig.spec, guest=replace(rig.spec.guest, user="somebody"))
    golden(stale(rig, text))


def customized(**knobs: object) -> ClusterSpec:
    access = GuestAccess(first_boot=FirstBootBy.CUSTOMIZATION, host_keys=HostKeys.FIRST_USE)
    return replace(cluster((node("node-1", **knobs),)), guest=access)


def test_vcenter_tells_new_guests_where_they_have_no_cloud_init(rig: Rig) -> None:
    rig.spec = customized(address=Address(address="10.0.0.11/24"))
    assert rig.run().done
    made = next(vm for vm in rig.vcenter.inventory.vms if vm.name == "node-1")
    assert made.settings is not None
    assert made.settings.extra_config[ADDRESS_KEY] == "10.0.0.11/24"
    assert "guestinfo.userdata" not in made.settings.extra_config
    stages = [type(change).__name__ for change in rig.asked[0].plan.changes]
    assert stages.index("AttachDevices") < stages.index("CustomizeGuest") < stages.index("PowerOn")
    assert rig.run().applied is False


@pytest.mark.parametrize("after", range(1, 10))
def test_a_run_cut_before_a_guest_was_customized_is_finished_by_the_next(rig: Rig, after: int) -> None:
    rig.spec = customized()
    rig.vcenter.cut_after = after
    with suppress(Cut):
        rig.run()
    rig.vcenter.mend()
    assert rig.run().done
    made = next(vm for vm in rig.vcenter.inventory.vms if vm.name == "node-1")
    assert made.settings is not None
    assert made.settings.extra_config[ADDRESS_KEY] == "DHCP"


def test_a_guest_that_was_told_by_cloud_init_is_not_customized_later(rig: Rig) -> None:
    rig.spec = spec_of(1)
    rig.run()
    rig.spec = replace(rig.spec, guest=replace(rig.spec.guest, first_boot=FirstBootBy.CUSTOMIZATION))
    assert not rig.propose().plan
