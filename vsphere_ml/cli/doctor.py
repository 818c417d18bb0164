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
    from vsphere_ml.vsphere.privileges import missing

    where = wiring.target(file, server=server, username=username, lab=lab)
    found = wiring.connection(where.vcenter, terminal)
    checks = view.sources(found)
    try:
        with wiring.session(found, terminal.settings) as session:
            checks += view.signed_in(found, session.about, session.api_version)
            checks.append(view.privileges(missing(session)))
    except VsmlError as error:
        checks.append(view.Check(name="sign-in", state="failed", told=error.message))
        return Answer(text=view.text(checks), data=view.data(checks), status=error.status, errors=(error,))
    return Answer(text=view.text(checks), data=view.data(checks))
