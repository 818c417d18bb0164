"""`vsml doctor`: whether this machine can work with that vCenter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli.options import Lab, Server, Username, command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.cli.views.site.doctor import DoctorCheck
    from vsphere_ml.core.errors import VsmlError


@command
def doctor(
    terminal: Terminal,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A cluster file; only its [vcenter] is looked at.")
    ] = None,
    *,
    server: Server = None,
    username: Username = None,
    lab: Lab = None,
) -> Answer:
    """Show where each part of the connection comes from, and whether the vCenter can be reached and signed in to.

    No secret is shown. Example: `vsml doctor cluster.toml`
    """
    from vsphere_ml.cli.views.site import doctor as view
    from vsphere_ml.cli.wiring import site_wiring
    from vsphere_ml.core.errors import VsmlError
    from vsphere_ml.vsphere.privileges import missing_privileges

    where = site_wiring.target(file, server=server, username=username, lab=lab)
    found = site_wiring.endpoint(where, terminal)
    try:
        to = site_wiring.with_password(found, where, terminal)
    except VsmlError as error:
        return _answer(view.sources(found, view.failed_check("password", error)), error)
    checks = view.sources(found, view.password(to))
    try:
        with site_wiring.session(to, terminal.settings) as session:
            checks += view.sign_in_checks(found, session.about, session.api_version)
            checks.append(view.privileges(missing_privileges(session)))
    except VsmlError as error:
        return _answer([*checks, view.failed_check("sign-in", error)], error)
    return _answer(checks)


def _answer(checks: Sequence[DoctorCheck], error: VsmlError | None = None) -> Answer:
    from vsphere_ml.cli.views.site import doctor as view

    text, data = view.text(checks), view.data(checks)
    return (
        Answer(text=text, data=data)
        if error is None
        else Answer(text=text, data=data, status=error.status, errors=(error,))
    )
