"""The root of lab guests: an image of their own, bootstrapped once a machine by Debian's mmdebstrap.

It is of the machine's own release, from the machine's own mirror, so that what is built for the system's Python runs in
guests too. It has what a cloud image has, and not what one has not: compilers, kernel headers, drivers. What guests may
install beside the lab's stand-ins is fetched with it, since they have no internet.
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import shutil
import subprocess
import time
from dataclasses import field
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import ConfigError, NotPossible
from vsphere_ml.core.tools.horovod import HOROVOD
from vsphere_ml.lab import folders, machine_packages, runtime
from vsphere_ml.lab import topology as topologies
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

ROOT, POOL = "root", "pool"  # the guests' root, and packages they can install
SOURCES = "sources"
ERROR_LINES = 20
DISTRIBUTIONS = ("Debian", "Ubuntu")
COMPONENTS = ("main", "universe")
# What the distributions' repositories hold for playbooks; the lab serves it with all that it depends on.
INSTALLABLE = ("ca-certificates", "curl", "iperf3", "prometheus-node-exporter", "python3-venv")
# Nobody reads manuals in a guest. Bootstrapping is safe to repeat, so that no file has to be synced.
_DPKG = ("path-exclude=/usr/share/man/*", "path-exclude=/usr/share/locale/*", "force-unsafe-io")


@dataclass(frozen=True, slots=True)
class Variant:
    """A kind of image: packages beside the essential ones and apt, and shell commands that run in it last.

    `installable` is what its guests can install beside what all can; `sources` are packages of Python's index, whose
    archives the commands find in /var/tmp. `takes` is said while it is made, and no part of what names the image.
    """

    name: str
    packages: tuple[str, ...]
    commands: tuple[str, ...] = ()
    installable: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    takes: str = field(default="half a minute", repr=False)


_SERVER = ("iproute2", "kmod", "mount", "netbase", "openssh-server", "procps", "sudo")
_KEYS = "rm /etc/ssh/ssh_host_*"  # each guest makes its own
CLOUD = Variant("cloud", (*_SERVER, "less", "lsb-release", "python3", "tzdata"), (_KEYS,))
# What sudo's policy was on Red Hat's releases until 7: no command without a terminal.
MINIMAL = Variant("minimal", _SERVER, (_KEYS, "echo 'Defaults requiretty' >/etc/sudoers.d/00-requiretty"))
# Debian's PyTorch is for CPUs, with Gloo. The public index has one for GPUs, of 3 GB.
PYTORCH = Variant("pytorch", (*CLOUD.packages, "python-is-python3", "python3-torch"), (_KEYS,))
# Horovod over Gloo and Debian's Open MPI, built where PyTorch is.
_BUILD = ("cmake", "g++", "libopenmpi-dev", "libtorch-dev", "make", "openmpi-bin", "pybind11-dev", "python3-dev")
_HOROVOD_NEEDS = ("cffi", "cloudpickle", "numpy", "packaging", "pip", "psutil", "setuptools", "wheel", "yaml")
_WITH = (
    "HOROVOD_WITH_PYTORCH=1 HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITH_MPI=1"
)
_PIP = "PIP_BREAK_SYSTEM_PACKAGES=1 pip3 install --no-index --no-deps --no-build-isolation /var/tmp/horovod-*.tar.gz"
PYTORCH_HOROVOD = Variant(
    "pytorch-horovod",
    (*PYTORCH.packages, *_BUILD, *(f"python3-{each}" for each in _HOROVOD_NEEDS)),
    (f"MAKEFLAGS=-j$(nproc) {_WITH} {_PIP}", "rm /var/tmp/horovod-*", _KEYS),
    sources=(HOROVOD,),
    takes="more than 20 minutes on 2 cores",
)
# For nodes that build Horovod by themselves.
BUILDER = Variant("builder", CLOUD.packages, (_KEYS,), installable=("cmake", "g++", "make", "python3-dev"))
VARIANTS = {each.name: each for each in (CLOUD, MINIMAL, PYTORCH, PYTORCH_HOROVOD, BUILDER)}


@dataclass(frozen=True, slots=True)
class _UbuntuRelease:
    """The machine's own release: its code name, and the lines of apt's sources that it comes from."""

    codename: str
    sources: tuple[str, ...]


def home(variant: Variant = CLOUD) -> Path:
    """Return where the image lies, made or not: named by all that goes into it."""
    recipe = (_codename(), platform.machine(), variant, INSTALLABLE, _DPKG)
    return folders.cache() / f"image-{variant.name}-{hashlib.sha256(repr(recipe).encode()).hexdigest()[:16]}"


def is_made(variant: Variant = CLOUD) -> bool:
    """Return whether the image is there."""
    return (home(variant) / "made").exists()


def make_image(variant: Variant = CLOUD, say: Callable[[str], None] = runtime.to_stderr) -> Path:
    """Return the image's folder, made first where it is not: `root`, `pool`.

    NotPossible `lab.no-guests` when the machine cannot make it, `lab.build-failed` when that fails.
    """
    at = home(variant)
    if is_made(variant):
        return at
    if missing := machine_packages.missing_packages("guests"):
        command = machine_packages.install_command(missing)
        raise NotPossible(
            f"lab guests need packages: {command}", code="lab.no-guests", target="lab guests", hint=command
        )
    with folders.hold_lock(at.with_suffix(".lock")):
        if not (at / "made").exists():  # somebody else may have made it while we waited
            _make(at, variant, say)
    return at


def for_topology(file: Path, say: Callable[[str], None] = runtime.to_stderr) -> dict[str, Path]:
    """Return the images that the templates of a site begin with, by name, made first where they are not.

    ConfigError `lab.topology-invalid` for one that there is not.
    """
    templates = topologies.tables(topologies.read(file), "template")
    names = sorted({CLOUD.name, *(str(each["image"]) for each in templates if each.get("image"))})
    return {name: make_image(_variant(name, file), say) for name in names}


def link(guests: Path, images: Mapping[str, Path]) -> None:
    """Let the guests' folder name its images, so that a lab keeps the ones it began with."""
    (guests / "images").mkdir(parents=True, exist_ok=True)
    for name, at in images.items():
        (guests / "images" / name).symlink_to(at)


def root_of(guests: Path, name: str) -> Path:
    """Return the root of the image that a guest of this folder begins with."""
    return (guests / "images" / name).resolve() / ROOT


def _variant(name: str, file: Path) -> Variant:
    if name not in VARIANTS:
        raise ConfigError(
            f"there is no image `{name}` for lab guests",
            code="lab.topology-invalid",
            target=str(file),
            hint=f"use one of {', '.join(VARIANTS)}",
        )
    return VARIANTS[name]


def _make(at: Path, variant: Variant, say: Callable[[str], None]) -> None:
    release = _release()
    say(f"making the {variant.name} image of lab guests, {release.codename} ({variant.takes}, the first time)")
    began = time.monotonic()
    shutil.rmtree(at, ignore_errors=True)
    (at / POOL / "partial").mkdir(parents=True)
    at.chmod(0o755)
    if variant.sources:
        runtime.download_sources(at / SOURCES, variant.sources)
    # What mmdebstrap mounts in the new root ends with it, even where it is killed.
    _run(["unshare", "--mount", "--propagation", "private", *_bootstrap(at, variant, release)])
    shutil.rmtree(at / POOL / "partial")
    (at / POOL / "lock").unlink(missing_ok=True)
    (at / "made").touch()
    say(f"made {at}, {folders.size(at) / 1e6:.0f} MB, in {time.monotonic() - began:.0f} s")


def _bootstrap(at: Path, variant: Variant, release: _UbuntuRelease) -> list[str]:
    fetch = "apt-get install --yes --no-install-recommends --download-only"
    wanted = " ".join((*INSTALLABLE, *variant.installable))
    hooks = [f'APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" {fetch} -o Dir::Cache::Archives={at / POOL} {wanted}']
    hooks += [f"copy-in {each} /var/tmp" for each in sorted((at / SOURCES).glob("*.tar.gz"))]
    hooks += [f"chroot \"$1\" sh -c '{each}'" for each in _quote_commands(variant.commands)]
    command = ["mmdebstrap", "--mode=root", "--variant=apt", f"--include={','.join(variant.packages)}"]
    command += [*(f"--dpkgopt={each}" for each in _DPKG), *(f"--customize-hook={each}" for each in hooks)]
    return [*command, release.codename, str(at / ROOT), *release.sources]


def _quote_commands(commands: tuple[str, ...]) -> list[str]:
    return [each.replace("'", "'\\''") for each in commands]


def _run(command: list[str]) -> None:
    done = subprocess.run(  # noqa: S603 - our own command, no shell
        command, capture_output=True, text=True, errors="replace", check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        lines = tuple(done.stderr.strip().splitlines()[-ERROR_LINES:])
        raise NotPossible(
            "the image of lab guests could not be made",
            code="lab.build-failed",
            target="lab guests",
            hint="check that apt-get update works on this machine",
            details=lines,
        )


def _codename() -> str:
    """Return the machine's release as its own files have it; empty where they do not."""
    try:
        return platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    except OSError:
        return ""


def _release() -> _UbuntuRelease:
    codename = _codename()
    if not codename:
        raise NotPossible(
            "lab guests need a release of Debian or Ubuntu to be made of, and this machine's has no code name",
            code="lab.no-guests",
            target="lab guests",
        )
    return _UbuntuRelease(codename, tuple(dict.fromkeys(_sources(codename))))


def _sources(codename: str) -> list[str]:
    """Return the lines of the machine's own mirror; none where apt has no list of it: mmdebstrap knows a mirror."""
    form = "$(CREATED_BY)|$(ORIGIN)|$(RELEASE)|$(REPO_URI)|$(COMPONENT)"
    listed = subprocess.run(  # noqa: S603 - our own command, no shell
        ["apt-get", "indextargets", "--format", form],  # noqa: S607 - wherever the system has it
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    rows = (line.split("|") for line in listed.splitlines())
    return [
        f"deb {uri} {suite} {component}"
        for kind, origin, suite, uri, component in rows
        if kind == "Packages"
        and origin in DISTRIBUTIONS
        and component in COMPONENTS
        and suite in {codename, f"{codename}-updates", f"{codename}-security"}
    ]


def main() -> None:
    """Make an image and print where it lies."""
    parser = argparse.ArgumentParser(prog="python -m vsphere_ml.lab.guests.image", description=main.__doc__)
    parser.add_argument("variant", nargs="?", choices=[*VARIANTS], default=CLOUD.name)
    variant = VARIANTS[parser.parse_args().variant]
    runtime.print_folder(lambda: make_image(variant))


if __name__ == "__main__":
    main()
