"""`vsml doctor`: whether this machine can work with that vCenter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli.options import SiteOptions, Yes, command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.cli.views.site.doctor import DoctorData
    from vsphere_ml.cli.views.site.record import RecordData
    from vsphere_ml.cli.wiring.site_wiring import SignInTarget
    from vsphere_ml.config.secrets.sign_in import SignIn
    from vsphere_ml.core.diagnostics import Diagnostic
    from vsphere_ml.core.errors import VsmlError
    from vsphere_ml.core.model.spec import ClusterSpec


@command
def doctor(
    terminal: Terminal,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A cluster file; only its [vcenter] is looked at.")
    ] = None,
    *,
    site: SiteOptions,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write what the site answers into a new folder, redacted, after it was listed and agreed to.",
        ),
    ] = None,
    yes: Yes = False,
) -> Answer["DoctorData"]:
    """Show where each part of the connection comes from, and whether the vCenter can be reached and signed in to.

    No secret is shown. With --record also all that vsml reads of a site is asked: of vCenter, and of the hosts and
    guests that the cluster file gives access to; names, addresses and serial numbers are replaced.

    Example: `vsml doctor cluster.toml`, or `vsml doctor cluster.toml --record site`
    """
    from vsphere_ml.cli.views.site import doctor as view
    from vsphere_ml.cli.wiring import site_wiring
    from vsphere_ml.core.errors import VsmlError
    from vsphere_ml.vsphere.privileges import missing_privileges

    where = site_wiring.target(file, **vars(site))
    found = site_wiring.endpoint(where, terminal)
    try:
        to = site_wiring.with_password(found, where, terminal)
    except VsmlError as error:
        return _answer(view.sources(found, view.failed_check("password", error)), error)
    checks = view.sources(found, view.password(to))
    try:
        with site_wiring.session(to, terminal.settings) as session:
            checks += view.sign_in_checks(found, session.about, session.api_version)
            checks.append(view.privileges(missing_privileges(session, _privileges(file))))
    except VsmlError as error:
        return _answer([*checks, view.failed_check("sign-in", error)], error)
    if record is None:
        return _answer(checks)
    written = _record(terminal, record, to, where, file, yes=yes)
    return Answer(text=view.text(checks), data={**view.data(checks), "record": written})


def _record(
    terminal: Terminal, folder: Path, to: SignIn, where: SignInTarget, file: Path | None, *, yes: bool
) -> RecordData:
    """Read the site, show what a record of it would hold, and write it once that was agreed to; return what it is."""
    from vsphere_ml.cli.consent import Declined
    from vsphere_ml.cli.views.site import record as view
    from vsphere_ml.cli.wiring import record_wiring
    from vsphere_ml.core.errors import ConfigError

    if terminal.settings.trace is not None:
        raise ConfigError(
            "--record and --trace exclude each other", code="usage", target="--trace", hint="leave out --trace"
        )
    record_wiring.check_folder(folder)
    record, redactor = record_wiring.read_site(to, terminal, where.datacenter, _cluster(file))
    terminal.say(view.text(record, redactor, fields=terminal.settings.verbose))
    if not yes and not terminal.interactive:
        raise ConfigError(
            "there is no terminal to ask on whether this may be written; nothing was written",
            code="confirm.needed",
            target=str(folder),
            hint="read the list, then add --yes",
        )
    if not yes and not terminal.ask(f"Write this into {folder}?"):
        raise Declined("declined; nothing was written", code="confirm.declined")
    record_wiring.write(folder, record)
    terminal.say(f"written to {folder}; look through it before you send it")
    return view.data(folder, record, redactor)


def _privileges(file: Path | None) -> tuple[str, ...]:
    """Return what the file's source and policy take besides; without a file that is right, what every cluster does."""
    from vsphere_ml.core.errors import ConfigError
    from vsphere_ml.vsphere.privileges import NEEDED, privileges_for

    try:
        spec = _cluster(file)
    except ConfigError:
        spec = None
    return NEEDED if spec is None else privileges_for(spec)


def _cluster(file: Path | None) -> ClusterSpec | None:
    """Return the cluster file that gives access to hosts and guests; None where none is named."""
    from vsphere_ml.cli.wiring.cluster_file import load

    return None if file is None else load(file)


def _answer(checks: Sequence[Diagnostic], error: VsmlError | None = None) -> Answer[DoctorData]:
    from vsphere_ml.cli.views.site import doctor as view

    status, errors = (error.status, (error,)) if error is not None else (0, ())
    return Answer(text=view.text(checks), data=view.data(checks), status=status, errors=errors)
