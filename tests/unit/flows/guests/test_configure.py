"""`configure`, `verify` and `run` on guests in memory: what is done, what is told, and what is left alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING

import pytest

from tests.fakes.guest import FakeGuest, File
from tests.fakes.guests import FakeGuests
from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster
from tests.fakes.site import FakeVCenter
from tests.unit.flows.acting import Told, provision
from vsphere_ml.core.errors import ConfigError, GuestError, VsmlError
from vsphere_ml.core.ports.vcenter import GuestPlace
from vsphere_ml.flows.guests import boot
from vsphere_ml.flows.guests import guests as of_guests
from vsphere_ml.flows.guests.command import CommandResult, GuestCommand, KnownPlaces, run
from vsphere_ml.flows.guests.configure import ConfigureResult, GuestPlan, choose_steps, configure
from vsphere_ml.flows.guests.guests import GuestPhase, StepInputs
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.guest.converge import StepState
from vsphere_ml.guest.events import Applied, Applying, Entering, GuestChecked, GuestEnded, Waiting
from vsphere_ml.guest.playbooks.playbook import load_text

if TYPE_CHECKING:
    from collections.abc import Collection

    from tests.golden import Golden
    from vsphere_ml.core.model.guest import Playbook
    from vsphere_ml.flows.guests.guests import GuestTargets
    from vsphere_ml.guest.events import GuestEvent

SPEC = cluster(3)
NAMES = tuple(node.name for node in SPEC.nodes)


def book(*paths: str, name: str = "mine") -> Playbook:
    steps = "".join(f'[[step]]\nkind = "file"\npath = "{path}"\ntext = "x\\n"\n' for path in paths)
    return load_text(f'about = "Files."\n{steps}', f"{name}.toml")


@dataclass
class Site:
    """Three running VMs with an address each, and their guests."""

    vcenter: FakeVCenter
    guests: FakeGuests
    asked: list[GuestPlan] = field(default_factory=list)
    heard: list[GuestEvent] = field(default_factory=list)
    known: dict[str, GuestPlace] = field(default_factory=dict)
    finds: list[tuple[str, ...]] = field(default_factory=list)

    def set(self, name: str, **knobs: object) -> None:
        vms = (replace(vm, **knobs) if vm.name == name else vm for vm in self.vcenter.inventory.vms)  # type: ignore[arg-type]
        self.vcenter.inventory = replace(self.vcenter.inventory, vms=tuple(vms))

    def configure(
        self, *books: Playbook, only: tuple[str, ...] = (), dry_run: bool = False, rolling: int = 0
    ) -> ConfigureResult:
        return configure(
            RunContext(SPEC, self.vcenter, Told(), self.vcenter.clock),
            GuestPhase(
                guests=self.guests,
                playbooks=books or (book("/etc/a"),),
                given=StepInputs(),
                notify=self.heard.append,
                wait_s=60.0,
                rolling=rolling,
            ),
            approve=self._approve,
            only=only,
            dry_run=dry_run,
        )

    def run(self, command: str, *, as_root: bool = False) -> CommandResult:
        return run(
            SPEC,
            GuestCommand(text=command, as_root=as_root),
            self.guests,
            places=KnownPlaces(known=self.known, find=self.find),
            notify_guest=self.heard.append,
        )

    def find(self, only: Collection[str]) -> GuestTargets:
        self.finds.append(tuple(only))
        return of_guests.find(
            SPEC, boot.read_running_site(RunContext(SPEC, self.vcenter, Told(), self.vcenter.clock)), only
        )

    def _approve(self, plan: GuestPlan) -> bool:
        self.asked.append(plan)
        return True


@pytest.fixture
def site() -> Site:
    vcenter = FakeVCenter(quad_8u3())
    provision(SPEC, vcenter)
    made = Site(vcenter, FakeGuests({name: FakeGuest(name) for name in NAMES}))
    for at, name in enumerate(NAMES, 11):
        made.set(name, guest_ip=f"10.0.0.{at}")
    return made


def errors(report: ConfigureResult) -> dict[str, str]:
    return {guest.node: guest.error.code for guest in report.guests if guest.error}


def test_what_lacks_is_asked_for_once_provided_and_not_asked_for_again(site: Site) -> None:
    report = site.configure()
    assert (report.applied, report.error, len(site.asked)) == (True, None, 1)
    assert all("/etc/a" in guest.files for guest in site.guests.there.values())
    again = site.configure()
    assert (again.applied, again.error, len(site.asked)) == (False, None, 1)


def test_a_dry_run_asks_nobody_and_changes_nothing(site: Site) -> None:
    report = site.configure(dry_run=True)
    assert report.plan
    assert (report.applied, site.asked) == (False, [])
    assert all(not guest.history for guest in site.guests.there.values())
    assert site.vcenter.holds == 1  # provision's


def test_listeners_hear_of_each_guest_from_the_door_to_its_end(site: Site) -> None:
    site.guests.there["node-2"].disk_full = True
    site.configure()
    events = [event for event in site.heard if event.node == "node-1"]
    assert [type(event) for event in events] == [
        Entering,
        GuestEnded,
        Entering,
        GuestChecked,
        Applying,
        Applied,
        GuestEnded,
    ]
    assert (events[1], events[-1]) == (GuestEnded(node="node-1", pending=1), GuestEnded(node="node-1", changed=1))
    failed = [event for event in site.heard if event.node == "node-2"][-1]
    assert isinstance(failed, GuestEnded)
    assert failed.error is not None
    assert failed.error.code == "guest.file-not-written"


def test_listeners_hear_who_is_waited_for_and_who_never_came(site: Site, golden: Golden) -> None:
    site.guests.booting.add("node-1")
    site.guests.there["node-3"].unreachable = True
    site.configure(dry_run=True)
    of_1 = [event for event in site.heard if event.node == "node-1"]
    assert [type(event) for event in of_1] == [Entering, Waiting, Entering, GuestEnded]
    golden(of_1[1])
    last = [event for event in site.heard if event.node == "node-3"][-1]
    assert isinstance(last, GuestEnded)
    assert last.error is not None


def test_listeners_hear_how_a_command_ended(site: Site, golden: Golden) -> None:
    site.run("exit 3")
    ends = [event for event in site.heard if isinstance(event, GuestEnded)]
    assert [event.node for event in ends] == list(NAMES)
    golden(ends)


def test_one_guests_failure_never_hides_the_others(site: Site) -> None:
    site.guests.there["node-2"].disk_full = True
    report = site.configure(book("/etc/a"), book("/etc/b", name="more"))
    assert errors(report) == {"node-2": "guest.file-not-written"}
    assert "/etc/b" in site.guests.there["node-1"].files
    assert "/etc/b" in site.guests.there["node-3"].files
    assert "/etc/b" not in site.guests.there["node-2"].files
    assert report.error is not None
    assert "1 of 3 guests" in report.error.message
    assert "    log: /logs/node-2.log" in report.error.details


def test_what_was_changed_before_a_guest_failed_is_counted(site: Site) -> None:
    site.guests.there["node-2"].cut_after = 3
    report = site.configure(book("/etc/a", "/etc/b"))
    assert set(errors(report)) == {"node-2"}
    written = {
        name: sum(path in guest.files for path in ("/etc/a", "/etc/b")) for name, guest in site.guests.there.items()
    }
    changed = {
        guest.node: sum(each.state is StepState.CHANGED for book in guest.convergences for each in book.outcomes)
        for guest in report.guests
    }
    ends = {event.node: event.changed for event in site.heard if isinstance(event, GuestEnded)}
    assert 0 < written["node-2"] < 2
    assert changed == ends == written


@pytest.mark.parametrize(("rolling", "together"), [(0, [3]), (1, [1, 1, 1]), (2, [2, 1]), (9, [3])])
def test_no_more_guests_than_asked_for_are_worked_on_at_once(site: Site, rolling: int, together: list[int]) -> None:
    assert site.configure(rolling=rolling).error is None
    assert all("/etc/a" in guest.files for guest in site.guests.there.values())
    heard = [type(event) for event in site.heard if isinstance(event, Entering | Applied)]
    first, *others = (len(list(group)) for kind, group in groupby(heard) if kind is Entering)
    assert [first - len(NAMES), *others] == together, "all were entered once for the plan"


def test_a_guest_that_fails_leaves_the_next_ones_as_they_are(site: Site, golden: Golden) -> None:
    site.guests.there["node-2"].disk_full = True
    report = site.configure(rolling=1)
    assert errors(report) == {"node-2": "guest.file-not-written", "node-3": "guest.left-out"}
    assert "/etc/a" in site.guests.there["node-1"].files
    assert not site.guests.there["node-3"].history
    golden(report.guests[2].error)
    ended = [event for event in site.heard if isinstance(event, GuestEnded) and event.node == "node-3"]
    assert ended[-1].error == report.guests[2].error
    site.guests.there["node-2"].disk_full = False
    assert site.configure(rolling=1).error is None


@pytest.mark.parametrize(
    ("unreachable", "rolling", "begun"),
    [
        ("node-2", 0, {"node-1", "node-3"}),
        ("node-2", 1, {"node-1"}),
        ("node-2", 2, {"node-1"}),
        ("node-1", 2, {"node-2"}),
        ("node-3", 1, {"node-1", "node-2"}),
    ],
)
def test_a_guest_that_was_never_reached_keeps_the_next_ones_from_being_begun(
    site: Site, unreachable: str, rolling: int, begun: set[str]
) -> None:
    site.guests.there[unreachable].unreachable = True
    report = site.configure(rolling=rolling)
    assert {name for name, each in site.guests.there.items() if each.history} == begun
    assert site.asked[0].can_begin(rolling) == tuple(sorted(begun)), "what is asked for is what is done"
    assert {*report.not_begun} == {*NAMES} - begun - {unreachable}
    assert errors(report)[unreachable] == "guest.unreachable"


@pytest.mark.parametrize("knobs", [{"powered_on": False}, {"guest_ip": None}, {"cluster_mark": "other"}])
def test_nobody_is_asked_where_the_first_guest_cannot_be_entered(
    site: Site, knobs: dict[str, object], golden: Golden
) -> None:
    site.set("node-1", **knobs)
    report = site.configure(rolling=1)
    assert (report.applied, site.asked, report.not_begun) == (False, [], ("node-2", "node-3"))
    assert not any(guest.history for guest in site.guests.there.values())
    assert site.vcenter.holds == 1, "provision's"
    golden(report.error)


def test_a_guest_that_still_boots_is_waited_for_and_the_others_are_not(site: Site) -> None:
    site.guests.booting = {"node-3"}
    assert site.configure().error is None
    assert site.guests.waited == ["node-3"]


def test_an_address_that_comes_late_is_waited_for(site: Site) -> None:
    site.set("node-1", guest_ip=None)
    late = site.vcenter.clock.sleep

    def sleep(seconds: float) -> None:
        late(seconds)
        site.set("node-1", guest_ip="10.0.0.11")

    site.vcenter.clock.sleep = sleep  # type: ignore[method-assign]
    assert site.configure().error is None


def test_vms_that_are_off_gone_or_silent_are_told_each_with_its_reason(site: Site, golden: Golden) -> None:
    site.set("node-1", powered_on=False)
    site.set("node-2", guest_ip=None, tools="toolsNotRunning")
    site.guests.there["node-3"].unreachable = True
    report = site.configure()
    assert errors(report) == {
        "node-1": "guest.off",
        "node-2": "guest.no-address",
        "node-3": "guest.unreachable",
    }
    error = report.guests[1].error
    assert isinstance(error, VsmlError)
    assert (error.code, error.target) == ("guest.no-address", "node-2")
    golden(error)
    assert error.details == ("waited 60 s",)


def test_what_to_type_next_is_to_go_on_unless_there_are_no_vms_to_enter(site: Site, golden: Golden) -> None:
    site.set("node-1", powered_on=False)
    gone = site.configure(only=("node-1",))
    assert gone.error is not None
    golden(gone.error)
    site.guests.there["node-2"].unreachable = True
    some = site.configure(only=("node-1", "node-2"))
    assert some.error is not None
    golden(some.error)


def test_a_vm_of_another_cluster_is_never_entered_and_one_of_nobodys_is_named(site: Site) -> None:
    site.set("node-1", cluster_mark="other")
    site.set("node-2", cluster_mark=None)
    report = site.configure()
    assert errors(report) == {"node-1": "guest.no-vm"}
    assert site.guests.there["node-1"].round_trips == 0
    assert report.plan.unmanaged == ("node-2",)


def test_only_the_nodes_that_were_named_are_entered_and_they_know_the_others(site: Site) -> None:
    peers = load_text('about = "Names."\n[[step]]\nkind = "hosts_file"\n', "names.toml")
    report = site.configure(peers, only=("node-2",))
    assert [guest.node for guest in report.guests] == ["node-2"]
    assert site.guests.there["node-1"].round_trips == 0
    assert "10.0.0.13" in site.guests.there["node-2"].files["/etc/hosts"].text
    with pytest.raises(ConfigError, match="no node `node-9`"):
        site.configure(only=("node-9",))


def test_a_guest_nobody_vouches_for_is_told_and_not_configured(site: Site) -> None:
    site.guests.unvouched = {"node-1"}
    assert errors(site.configure()) == {"node-1": "guest.host-key-unknown"}
    assert site.guests.there["node-1"].round_trips == 0


def test_steps_know_their_hosts_vgpu_manager_and_every_nodes_roce_address(site: Site) -> None:
    spec = replace(
        SPEC, nodes=tuple(replace(node, roce_address=f"192.168.10.{at}/24") for at, node in enumerate(SPEC.nodes))
    )
    found = of_guests.find(spec, site.vcenter.inventory)
    found = replace(found, managers=of_guests.managers(found, site.vcenter))
    known = of_guests.facts(spec, found, site.guests, StepInputs())["node-2"]
    assert known.vgpu_manager == "535.183.04"
    assert [peer.roce_address for peer in known.peers] == [f"192.168.10.{at}/24" for at in range(3)]
    site.vcenter.vgpu_manager = ""
    nobody_told = replace(found, managers=of_guests.managers(found, site.vcenter))
    assert of_guests.facts(spec, nobody_told, site.guests, StepInputs())["node-2"].vgpu_manager is None


def test_steps_know_every_host_key(site: Site) -> None:
    found = of_guests.find(SPEC, site.vcenter.inventory)
    known = of_guests.facts(SPEC, found, site.guests, StepInputs())["node-1"]
    assert known.values["known_hosts"].splitlines()[2] == "node-3 ssh-ed25519 KEY-OF-node-3"
    assert [(peer.name, peer.address, peer.slots) for peer in known.peers][:1] == [("node-1", "10.0.0.11", 1)]


def test_steps_are_chosen_across_playbooks(golden: Golden) -> None:
    books = (book("/a", "/b", name="one"), book("/c", name="two"))

    def titles(*steps: str, from_step: str | None = None) -> list[str]:
        return [step.title for each in choose_steps(books, steps, from_step) for step in each.steps]

    assert titles("file /c") == ["file /c"]
    assert titles("one:2") == ["file /b"]
    assert titles("file /a", "two:1") == ["file /a", "file /c"]
    assert titles(from_step="one:2") == ["file /b", "file /c"]
    assert titles("file", from_step="two:1") == ["file /c"]
    with pytest.raises(ConfigError) as raised:
        titles("fiel")
    assert raised.value.code == "guest.unknown-step"
    golden(raised.value)


def test_equal_answers_stand_together_and_a_failure_is_an_answer(site: Site, golden: Golden) -> None:
    for name, said in zip(NAMES, ("one", "two", "one"), strict=True):
        site.guests.there[name].files["/etc/said"] = File(said + "\n")
    site.guests.there["node-2"].files.pop("/etc/said")
    seen = site.run("cat /etc/said")
    assert [(group.nodes, group.answer.status, group.answer.out) for group in seen.groups] == [
        (("node-1", "node-3"), 0, "one"),
        (("node-2",), 1, ""),
    ]
    assert seen.error is not None
    assert seen.error.code == "guest.run-failed"
    golden(seen.error)


def known(*names: str, address: str = "10.9.9.9") -> dict[str, GuestPlace]:
    return {name: GuestPlace(name=name, address=address, vm="vm-1") for name in names}


def test_a_command_runs_as_the_user_who_signs_in_and_as_root_when_asked(site: Site) -> None:
    answers = [site.run("id -un").groups[0].answer.out, site.run("id -un", as_root=True).groups[0].answer.out]
    assert answers == ["ubuntu", "root"]


@pytest.mark.parametrize(
    ("words", "as_root", "advised"),
    [
        ("E: Could not open lock file - open (13: Permission denied)", False, True),
        ("dmesg: read kernel buffer failed: Operation not permitted", False, True),
        ("cat: /nowhere: No such file or directory", False, False),
        ("Permission denied", True, False),
    ],
)
def test_who_is_refused_for_not_being_root_is_advised_to_use_sudo(
    site: Site, words: str, *, as_root: bool, advised: bool
) -> None:
    seen = site.run(f"echo '{words}' >&2; exit 1", as_root=as_root)
    assert seen.error is not None
    assert ("--sudo" in seen.error.hint) is advised


def test_a_command_that_does_not_end_is_named_as_it_was_typed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def last(_shell: object, command: str, **_given: object) -> None:
        raise GuestError(reason=f"`{command}` goes on", code="guest.timeout", target="node-1", details=("3 of 9",))

    monkeypatch.setattr(FakeGuest, "run", last)
    seen = site.run("sleep 30")
    assert {each.code for each in seen.errors.values()} == {"guest.timeout"}
    assert all("eval" not in each.message for each in seen.errors.values())
    assert {each.details for each in seen.errors.values()} == {("3 of 9",)}, "what it printed last is kept"
    assert seen.error is not None
    assert len(seen.error.details) == 1


def test_a_command_asks_vcenter_for_nothing_when_every_address_is_known(site: Site) -> None:
    site.known = known(*NAMES)
    assert site.run("true").error is None
    assert site.finds == []


def test_a_command_asks_vcenter_when_an_address_is_not_known(site: Site) -> None:
    site.known = known("node-1")
    assert site.run("true").error is None
    assert site.finds == [NAMES]


def test_a_guest_that_moved_is_looked_for_and_one_that_is_silent_where_it_was_stays_an_error(site: Site) -> None:
    site.known = known(*NAMES)
    site.guests.there["node-2"].unreachable = True
    seen = site.run("true")
    assert site.finds == [("node-2",)]
    assert (seen.groups[0].nodes, list(seen.errors)) == (("node-1", "node-3"), ["node-2"])
