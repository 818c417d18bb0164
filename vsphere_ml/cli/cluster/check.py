"""`vsml check`: is the file right? Needs no vCenter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, Output, command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.rules.template_facts import TemplateFact


@command
def check(
    terminal: Terminal,
    file: ClusterFile = DEFAULT_FILE,
    *,
    template: Annotated[
        bool, typer.Option("--template", help="Also say what vCenter knows of the template; boots nothing.")
    ] = False,
) -> Answer:
    """Validate a cluster file without a vCenter, and show the nodes it describes.

    Every mistake is reported at once, with its line; so is every rule of `vsml rules` that the file alone breaks. The
    playbooks it names are read, too. With `--template` vCenter is asked what the template has and what is missing.

    Example: `vsml check cluster.toml`
    """
    from vsphere_ml.cli.views.cluster import nodes, templates
    from vsphere_ml.cli.views.layout.envelope import plain_value
    from vsphere_ml.cli.views.site import rules
    from vsphere_ml.cli.wiring import guest_wiring
    from vsphere_ml.config.load import load
    from vsphere_ml.core.rules import check as judge

    spec = load(file)
    terminal.chat(f"read {file}")
    if spec.guest.playbooks:
        guest_wiring.playbooks(spec)
    diagnostics = judge.of_file(spec)
    facts = _template(spec, terminal) if template else ()
    errors = templates.errors(spec.source.template, facts)
    status = errors[0].status if errors else 0
    if terminal.settings.output is not Output.JSON:
        shown = nodes.text(spec, rules.diagnostic_lines(diagnostics))
        return Answer(text=templates.text(shown, facts) if template else shown, status=status, errors=errors)
    asked = {"template": templates.data(facts)} if template else {}
    return Answer(
        data={**plain_value(spec), "rules": rules.broken_data(diagnostics), **asked}, status=status, errors=errors
    )


def _template(spec: ClusterSpec, terminal: Terminal) -> tuple[TemplateFact, ...]:
    from vsphere_ml.cli.views.progress.apply_progress import show_apply_progress
    from vsphere_ml.cli.wiring import site_wiring
    from vsphere_ml.flows.cluster.template import check_template

    with site_wiring.vcenter(spec.vcenter, terminal) as vcenter, show_apply_progress(terminal.err) as events:
        return check_template(spec, vcenter, events=events, clock=site_wiring.SystemClock())
