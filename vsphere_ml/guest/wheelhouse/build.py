"""What is run in a guest to build a wheelhouse with Horovod. All of it lies in one folder, which goes at the end."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from vsphere_ml.core.model.guest import GuestFacts
from vsphere_ml.core.nodes.container import SHARED, command_in_container
from vsphere_ml.core.tools.horovod import BUILD_PACKAGES, HOROVOD, STUBS, Carrier, FrameworkName, build_settings
from vsphere_ml.guest.steps.system.shell import q, with_proxy, words
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from vsphere_ml.core.model.guest import Shell
    from vsphere_ml.core.tools.horovod import Framework
    from vsphere_ml.guest.wheelhouse.tools import BuildTools

_QUIET = "--quiet --disable-pip-version-check"


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelhouseRequest:
    """What to build, and from which packages."""

    framework: Framework
    package: str  # the framework's, with its version: `tensorflow==2.18.1`
    carriers: tuple[Carrier, ...]
    packages: Path | None = None  # a folder on this machine with sdists and wheels, in place of an index
    index: str = ""  # what pip is set up for
    python: str = "python3"
    mpirun: str = ""  # the one on PATH
    in_container: bool = False  # the training container of the guest
    settings: Mapping[str, str] = field(default_factory=dict)  # the cluster file's, for its proxy


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildStage:
    """One command of a build; `title` is what comes of it."""

    title: str
    doing: str
    command: str


def work_folder(run_id: str) -> str:
    """Return the folder of a build, which a guest and its container both see."""
    return f"{SHARED}/wheelhouse-{run_id}"


def clean_up(shell: Shell, folder: str) -> None:
    """End what is left of a build and take its folder away."""
    # The bracket keeps the pattern from finding this very command.
    shell.run(f"pkill -KILL -f {q(f'[/]{folder[1:]}/')}; rm -rf {q(folder)}", timeout_s=300)


def bring_packages(shell: Shell, folder: str, local: Path) -> None:
    """Copy the sdists and wheels of a local folder into the build's."""
    for file in sorted(local.iterdir()):
        if file.name.endswith((".whl", ".tar.gz", ".zip")):
            shell.put(file, f"{folder}/packages/{file.name}")


def stages(folder: str, asked: WheelhouseRequest, tools: BuildTools) -> tuple[BuildStage, ...]:
    """Return the commands of a build, in order; the last one prints which carriers Horovod has."""
    with_carriers = f"{HOROVOD} with {', '.join(asked.carriers)}"
    python, source = q(f"{folder}/venv/bin/python"), _source(folder, asked)
    pip_wheel = f"{python} -m pip wheel {_QUIET} --wheel-dir {q(folder)}/wheels {source}"
    pip_install = f"{python} -m pip install {_QUIET} --no-compile"
    from_wheels = f"{pip_install} --no-index --find-links {q(folder)}/wheels"
    wanted = words((asked.package, *asked.framework.needs))
    environment = f"{q(asked.python)} -m venv {q(folder)}/venv && {pip_install} {source}{words(BUILD_PACKAGES)}"
    build = f"{pip_wheel}--no-build-isolation --no-deps --no-binary horovod {HOROVOD}"
    commands = (
        ("a Python environment", "being made", environment),
        (f"wheels of {asked.package}", "being fetched", f"{pip_wheel}{wanted}"),
        (asked.package, "being installed", f"{from_wheels} {wanted}"),
        (with_carriers, "being built, for some minutes", f"{_prepare_build(folder, asked, tools)}{build}"),
        (HOROVOD, "being imported", f"{from_wheels} --no-deps {HOROVOD} && {_check(python, asked, tools)}"),
    )
    return tuple(
        BuildStage(title=title, doing=doing, command=_enter(folder, command, asked, tools.node))
        for title, doing, command in commands
    )


def list_wheels(folder: str) -> str:
    """Return the command that prints checksum, size and name of each wheel."""
    return f"cd {q(folder)}/wheels && for each in *.whl; do sha256sum $each | cut -c1-65; stat -c '%s %n' $each; done"


def _enter(folder: str, command: str, asked: WheelhouseRequest, node: str) -> str:
    """Return a command that leaves nothing outside the build's folder, as it is run where Horovod is built."""
    scratch = q(f"{folder}/scratch")
    own = f"mkdir -p {scratch}; export TMPDIR={scratch} PIP_CACHE_DIR={q(folder)}/cache; {command}"
    proxied = with_proxy(own, GuestFacts(name=node, cluster="", peers=(), gpus=0, profile="", values=asked.settings))
    return command_in_container(proxied) if asked.in_container else proxied


def _source(folder: str, asked: WheelhouseRequest) -> str:
    if asked.packages is not None:
        return f"--no-index --find-links {q(folder)}/packages "
    return f"--index-url {q(asked.index)} " if asked.index else ""


def _prepare_build(folder: str, asked: WheelhouseRequest, tools: BuildTools) -> str:
    """Return the commands before Horovod's build: files that it wants, and its variables."""
    settings = build_settings(asked.framework.name, asked.carriers)
    before, flags, path = "", "-w", f"{folder}/venv/bin"
    if asked.framework.name is FrameworkName.TENSORFLOW and Carrier.NCCL not in asked.carriers:
        stubs = words(f"{folder}/stubs/{each}" for each in STUBS)
        before = f"for each in {stubs}; do mkdir -p ${{each%/*}}; touch $each; done; "
        flags += f" -I{folder}/stubs"
    if asked.framework.compiler:
        compiler = f"{folder}/compiler"
        before += f"printf %s {q(asked.framework.compiler)} >{q(compiler)}; chmod +x {q(compiler)}; "
        settings["CXX"] = compiler
    if Carrier.NCCL in asked.carriers and tools.cuda and tools.nccl:
        settings |= {"HOROVOD_CUDA_HOME": tools.cuda.home, "HOROVOD_NCCL_HOME": tools.nccl.home}
        path += f":{tools.cuda.home}/bin"
    if Carrier.MPI in asked.carriers and tools.mpi:
        path += f":{tools.mpi.home}"
    exported = words(f"{name}={value}" for name, value in {**settings, "CXXFLAGS": flags}.items())
    return f'{before}export {exported} MAKEFLAGS=-j"$(nproc)" PATH={q(path)}:"$PATH"; '


def _check(python: str, asked: WheelhouseRequest, tools: BuildTools) -> str:
    """Return the command that imports Horovod and prints which carriers it was built with."""
    module = asked.framework.module
    asking = f"import {module} as h; print(*(n for n in {[*map(str, Carrier)]} if getattr(h, n + '_built')()))"
    libraries = tools.mpi.home.rpartition("/")[0] if tools.mpi and Carrier.MPI in asked.carriers else ""
    found = f'LD_LIBRARY_PATH={q(libraries)}/lib:"$LD_LIBRARY_PATH" ' if libraries else ""
    return f"TF_CPP_MIN_LOG_LEVEL=3 {found}{python} -c {q(asking)}"
