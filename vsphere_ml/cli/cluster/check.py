"""`vsml check`: is the file right? Needs no vCenter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NotRequired, TypedDict

import typer

from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, WaitOrNot, Yes, command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.core.codec import Extended
    from vsphere_ml.core.diagnostics import Diagnostic
    from vsphere_ml.core.model.spec import ClusterSpec


class _CheckedData(TypedDict):
    """The rules that a file breaks; with `--template` also what vCenter knows of its template."""

    diagnostics: tuple[Diagnostic, ...]
    template: NotRequired[tuple[Diagnostic, ...]]


@command
def check(
    terminal: Terminal,
    file: ClusterFile = DEFAULT_FILE,
    *,
    template: Annotated[
        bool, typer.Option("--template", help="Also say what vCenter knows of the template; boots nothing.")
    ] = False,
    boot: Annotated[
        bool,
        typer.Option(
            "--boot",
            help="With --template, also boot a clone in the first node's place, and delete it again.",
        ),
    ] = False,
    wait: WaitOrNot = 600.0,
    yes: Yes = False,
) -> Answer["Extended[ClusterSpec, _CheckedData]"]:
    """Validate a cluster file without a vCenter, and show the nodes it describes.

    Every mistake is reported at once, with its line; so is every rule of `vsml rules` that the file alone breaks. The
    playbooks it names are read, too, and so is its OVF package, which is compared with its manifest. With `--template`
    vCenter is asked what the template has and what is missing; with `--boot` also what only a boot shows, whose plan is
    shown first.

    Example: `vsml check cluster.toml`, or `vsml check cluster.toml --template --boot`
    """
    from vsphere_ml.cli.views.cluster import nodes, templates
    from vsphere_ml.cli.views.site import rules
    from vsphere_ml.cli.wiring import guest_wiring
    from vsphere_ml.cli.wiring.cluster_file import load
    from vsphere_ml.core.codec import Extended
    from vsphere_ml.core.errors import ConfigError
    from vsphere_ml.core.rules import check as judge

    spec = load(file)
    terminal.chat(f"read {file}")
    if spec.source.ovf:
        _check_package(Path(spec.source.ovf))
    if spec.guest.playbooks:
        guest_wiring.playbooks(spec)
    diagnostics = judge.of_file(spec)
    if boot and not template:
        raise ConfigError("--boot needs --template", code="usage", target="--boot", hint="add --template")
    facts = _template(spec, terminal) if template else ()
    if boot:
        facts = _boot_template(spec, terminal, facts, wait_s=wait, yes=yes)
    text = nodes.text(spec, rules.diagnostic_lines(diagnostics))
    found: _CheckedData = {"diagnostics": diagnostics}
    if not template:
        return Answer(text=text, data=Extended(spec, found))
    errors = templates.errors(str(spec.source), facts)
    return Answer(
        text=templates.text(text, facts),
        data=Extended(spec, {**found, "template": facts}),
        status=errors[0].status if errors else 0,
        errors=errors,
    )


def _check_package(path: Path) -> None:
    """Read an OVF package whole: all of its files are there, are those of its manifest, and boot by EFI."""
    from vsphere_ml.core.rules.clone_source import check_firmware
    from vsphere_ml.vsphere.storage.ovf import read_package

    package = read_package(path)
    check_firmware(package.about.name, package.about.firmware)
    package.verify()


def _template(spec: ClusterSpec, terminal: Terminal) -> tuple[Diagnostic, ...]:
    from vsphere_ml.cli.wiring import site_wiring
    from vsphere_ml.flows.cluster.template import check_template

    with site_wiring.run_context(spec, terminal) as run:
        return check_template(run)


def _boot_template(
    spec: ClusterSpec, terminal: Terminal, known: tuple[Diagnostic, ...], *, wait_s: float, yes: bool
) -> tuple[Diagnostic, ...]:
    """Return the facts with what one boot of a clone shows; its plan is shown and agreed to before."""
    from vsphere_ml.cli import consent
    from vsphere_ml.cli.views.cluster import proposal
    from vsphere_ml.cli.views.progress.both_listeners import following_both
    from vsphere_ml.cli.wiring import guest_wiring, site_wiring
    from vsphere_ml.core.rules.template_boot import combine
    from vsphere_ml.flows.cluster.template import boot_template, trial_spec
    from vsphere_ml.flows.guests.guests import GuestPhase, StepInputs
    from vsphere_ml.flows.run_context import RunContext

    trial, clock = trial_spec(spec), site_wiring.SystemClock()
    approve = consent.approval(terminal, proposal.text, yes=yes)
    with site_wiring.vcenter(spec.vcenter, terminal) as vcenter, following_both(terminal.err) as both:
        guests = guest_wiring.guests(trial, clock)
        booted = boot_template(
            RunContext(trial, vcenter, both.site, clock),
            GuestPhase(guests=guests, playbooks=(), given=StepInputs(), notify=both.guests, wait_s=wait_s),
            first=spec.nodes[0].name,
            approve=both.before(approve),
            given=guest_wiring.for_guests(trial, both.guests, clock, skip=True),
        )
    return combine(known, booted)
