"""`vsml doctor`: whether this machine can work with that vCenter."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vsphere_ml.cli.options import Lab, Server, Username, command
from vsphere_ml.cli.terminal import Answer, Terminal


@command
def doctor(
    terminal: Terminal,
    file: Annotated[Path | None, typer.Argument(help="A cluster file; only its [vcenter] is looked at.")] = None,
    *,
    server: Server = None,
    username: Username = None,
    lab: Lab = None,
) -> Answer:
    """Show where each part of the connection comes from, and whether the vCenter can be reached and signed in to.

    No secret is shown. Example: `vsml doctor cluster.toml`
    """
    from vsphere_ml.cli import wiring
    from vsphere_ml.cli.views import doctor as view
    from vsphere_ml.core.errors import VsmlError

    errors: list[VsmlError] = []
    checks: list[view.Check] = []
    try:
        where = wiring.target(file, server=server, username=username, lab=lab)
        found = wiring.connection(where.vcenter, terminal)
        checks += view.sources(found)
        with wiring.session(found, terminal.settings) as session:
            checks += view.signed_in(session.about, session.api_version)
    except VsmlError as error:
        errors.append(error)
        checks.append(view.Check(name=error.code, state="failed", told=error.message))
    status = errors[0].status if errors else 0
    return Answer(text=view.text(checks), data=view.data(checks), status=status, errors=tuple(errors))
