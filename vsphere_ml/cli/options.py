"""The options every command takes, before or after its name, and the decorator that gives them to it."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar, dataclass_transform

import typer
from typer.models import ArgumentInfo

from vsphere_ml.cli import completion
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from vsphere_ml.cli.terminal import Answer, Terminal

P = ParamSpec("P")
T = TypeVar("T")
GLOBAL = "Global options"
DEFAULT_FILE = Path("cluster.toml")
FILE_OPTION = "file_option"
FILE_OPTIONS = ("-f", "--file")
FILE_TWICE = "the cluster file is given twice"
_OUTPUT = re.compile(r"--output|-v*o")
_JSON = re.compile(r"--output=json|-v*ojson")


class Output(StrEnum):
    """How a result is written to stdout."""

    TABLE = "table"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalOptions:
    """The global options of one run."""

    output: Output = Output.TABLE
    no_color: bool = False
    verbose: bool = False
    debug: bool = False
    trace: Path | None = None
    insecure: bool = False
    tls_ca: Path | None = None
    thumbprint: str | None = None
    timeout: float = 60.0

    def but(self, given: Mapping[str, Any]) -> GlobalOptions:
        """Return these settings with those that were given on the command line; None was not given."""
        return dataclasses.replace(self, **{key: value for key, value in given.items() if value is not None})


def _flag(*names: str, text: str) -> Any:
    return Annotated[bool | None, typer.Option(*names, help=text, rich_help_panel=GLOBAL, show_default=False)]


_TYPES: dict[str, Any] = {
    "output": Annotated[
        Output | None,
        typer.Option(
            "-o",
            "--output",
            help="Write stdout as text, or as one JSON document.",
            rich_help_panel=GLOBAL,
            metavar="table|json",
        ),
    ],
    "no_color": _flag("--no-color", text="Write without colours; NO_COLOR does the same."),
    "verbose": _flag("-v", "--verbose", text="Print more on stderr."),
    "debug": _flag("--debug", text="Show the traceback of an error."),
    "trace": Annotated[
        Path | None,
        typer.Option(help="Log every API call to this file, without secrets.", rich_help_panel=GLOBAL, metavar="FILE"),
    ],
    "insecure": _flag("--insecure", text="Do not verify vCenter's certificate. Traffic can be intercepted."),
    "tls_ca": Annotated[
        Path | None,
        typer.Option("--tls-ca", help="Trust the CA in this PEM file.", rich_help_panel=GLOBAL, metavar="FILE"),
    ],
    "thumbprint": Annotated[
        str | None,
        typer.Option(
            help="Trust the certificate with this SHA-256 thumbprint only.", rich_help_panel=GLOBAL, metavar="HEX"
        ),
    ],
    "timeout": Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="Timeout for vCenter API calls (default: 60).",
            rich_help_panel=GLOBAL,
            metavar="SECONDS",
        ),
    ],
}
# Parameters that several commands share.
SiteFile = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="A cluster file; only its [vcenter] and [location] are read."),
]
ClusterFile = Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file.", show_default="cluster.toml")]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask for confirmation.")]
Server = Annotated[str | None, typer.Option(metavar="ADDRESS", help="The vCenter: host, host:port or URL.")]
Username = Annotated[str | None, typer.Option(metavar="USER", help="User to sign in as.")]
Lab = Annotated[
    str | None,
    typer.Option("--lab", metavar="NAME", help="The lab vCenter of this name.", autocompletion=completion.labs),
]
Datacenter = Annotated[str | None, typer.Option(metavar="NAME", help="The data centre, where there are several.")]
ClusterFileOption = Annotated[
    Path, typer.Option(*FILE_OPTIONS, metavar="FILE", help="The cluster file.", show_default="cluster.toml")
]
# For commands whose argument is FILE; of `run`, `ssh` and others FILE may be the first word: `commands.FileFirst`.
FileAsOption = Annotated[Path | None, typer.Option(*FILE_OPTIONS, metavar="FILE", help="Cluster file, as an option.")]
OnlyNodes = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="NODE",
        help="Only this node; repeat the option for several.",
        autocompletion=completion.nodes,
    ),
]
_WAIT = "Wait this long for guests to answer."
Wait = Annotated[float, typer.Option(min=0, metavar="SECONDS", help=_WAIT)]
WaitOrNot = Annotated[float, typer.Option(min=0, metavar="SECONDS", help=_WAIT, show_default="ask once")]
SkipGuests = Annotated[
    bool, typer.Option("--skip-guests", help="Do not configure guests; new ones still get their first-boot data.")
]
Command = Annotated[
    list[str] | None,
    typer.Argument(metavar="COMMAND", help="The command, after `--`; a single word is run by the shell."),
]
ParallelGuests = Annotated[
    int, typer.Option("--parallel", min=1, max=1024, help="Work in at most this many guests at once.", metavar="N")
]
Refresh = Annotated[bool, typer.Option("--refresh", help="Read all addresses from vCenter again.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and change nothing.")]
DetailedExitcode = Annotated[
    bool, typer.Option("--detailed-exitcode", help="Exit with 7 when the site differs or differed from the file.")
]
Parallel = Annotated[
    int, typer.Option(min=1, max=1024, help="Make at most this many changes at the same time.", metavar="N")
]


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether a command line asks for JSON, also one that is wrong otherwise."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments  # the rest is a guest's command
    pairs = zip(own, [*own[1:], ""], strict=False)
    return any(
        _JSON.fullmatch(each) or (_OUTPUT.fullmatch(each) and following == Output.JSON) for each, following in pairs
    )


def command(function: Callable[Concatenate[Terminal, P], Answer[object]]) -> Callable[..., None]:
    """Return `function` as a command that also takes the global options, shows its answer and exits."""

    @functools.wraps(function)
    def run(ctx: typer.Context, **given: Any) -> None:
        try:
            from vsphere_ml.cli import exits
            from vsphere_ml.cli.given_file import given_file
        except KeyboardInterrupt:  # typer would end without a word
            raise typer.Abort from None

        settings = (ctx.obj or GlobalOptions()).but({name: given.pop(name) for name in _TYPES})
        name = " ".join(ctx.command_path.split()[1:])
        if (file := given.pop(FILE_OPTION, None)) is not None:
            given["file"] = _only_file(ctx, file)
        filled = {each.name: _fill(each, given) for each in own}
        with given_file(given.get("file")):
            status = exits.run(name, settings, lambda terminal: function(terminal, **filled))  # type: ignore[call-arg]
        raise typer.Exit(status)

    _, *own = inspect.signature(function, eval_str=True).parameters.values()
    return _with_global_options(run, _with_file_option([option for each in own for option in _options(each)]))


@dataclass_transform(frozen_default=True, kw_only_default=True)
def option_group(options: type[T]) -> type[T]:
    """Return a class as one whose fields are options, of a command that has a parameter of it.

    No dataclass: making those takes a twentieth of the time of `vsml --help`.
    """
    options.__init__ = lambda self, **given: vars(self).update(given)  # type: ignore[method-assign]
    options.is_option_group = True  # type: ignore[attr-defined]
    return options


@option_group
class SiteOptions:
    """The site of a command that needs no cluster file."""

    server: Server = None
    username: Username = None
    lab: Lab = None
    datacenter: Datacenter = None


def _options(parameter: inspect.Parameter) -> list[inspect.Parameter]:
    """Return a command's parameter; in place of an option group its fields, each of which is an option."""
    if not _is_group(parameter):
        return [parameter]
    return [option for field in _fields(parameter) for option in _options(field)]


def _is_group(parameter: inspect.Parameter) -> bool:
    return bool(getattr(parameter.annotation, "is_option_group", False))


def _fields(parameter: inspect.Parameter) -> list[inspect.Parameter]:
    group = parameter.annotation
    kinds = inspect.get_annotations(group, eval_str=True)
    keyword, missing = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    return [
        inspect.Parameter(name, keyword, default=getattr(group, name, missing), annotation=kind)
        for name, kind in kinds.items()
    ]


def _fill(parameter: inspect.Parameter, given: dict[str, Any]) -> Any:
    """Return the parameter's value from what was given for each option."""
    if not _is_group(parameter):
        return given[parameter.name]
    return parameter.annotation(**{field.name: _fill(field, given) for field in _fields(parameter)})


def callback(function: Callable[..., None]) -> Callable[..., None]:
    """Return the app's callback, which takes the global options only and leaves them to the commands."""

    @functools.wraps(function)
    def run(ctx: typer.Context, **given: Any) -> None:
        ctx.obj = GlobalOptions().but({name: given.pop(name) for name in _TYPES})
        function(**given)

    return _with_global_options(run, list(inspect.signature(function, eval_str=True).parameters.values()))


def _with_file_option(own: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """Return the parameters, and -f where one of them is FILE as an argument."""
    if not any(each.name == "file" and _is_argument(each) for each in own):
        return own
    return [*own, inspect.Parameter(FILE_OPTION, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=FileAsOption)]


def _is_argument(parameter: inspect.Parameter) -> bool:
    return any(isinstance(each, ArgumentInfo) for each in getattr(parameter.annotation, "__metadata__", ()))


def _only_file(ctx: typer.Context, file: Path) -> Path:
    """Return the file that was given as an option; a usage error when it was given as an argument too."""
    source = ctx.get_parameter_source("file")
    if source is not None and source.name == "COMMANDLINE":
        raise typer.BadParameter(FILE_TWICE, ctx=ctx, param_hint=FILE_OPTIONS[-1])
    return file


def _with_global_options(run: Callable[..., None], own: list[inspect.Parameter]) -> Callable[..., None]:
    keyword = inspect.Parameter.KEYWORD_ONLY
    context = inspect.Parameter("ctx", keyword, annotation=typer.Context)
    common = [inspect.Parameter(name, keyword, default=None, annotation=kind) for name, kind in _TYPES.items()]
    parameters = [context, *(parameter.replace(kind=keyword) for parameter in own), *common]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
