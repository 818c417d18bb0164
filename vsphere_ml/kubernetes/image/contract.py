"""What mpi-operator expects of an image, rule by rule."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.kubernetes.image.ssh_settings import read_settings, read_variables
from vsphere_ml.kubernetes.lint_rule import LintRule, Violation
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vsphere_ml.kubernetes.image.read_image import ReadImage
    from vsphere_ml.kubernetes.image.variants import SshdVariant

SSHD, SSH = "/usr/sbin/sshd", "/usr/bin/ssh"
CLIENT_CONFIG = "/etc/ssh/ssh_config"
# The daemon by which each starts ranks on a worker, and so shows which it is.
DAEMONS = {"orted": "Open MPI 4", "prted": "Open MPI 5", "hydra_pmi_proxy": "MPICH"}
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_BASE = "kubeflow/mpi-operator v0.8.2, build/base/"


@dataclass(slots=True)
class _CheckedImage:
    """An image, for one variant: sshd's settings and ssh's, and which MPIs are in it, by their daemons' paths."""

    image: ReadImage
    variant: SshdVariant
    sshd: Mapping[str, tuple[str, ...]] = field(init=False)
    ssh: Mapping[str, tuple[str, ...]] = field(init=False)
    daemons: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        tree = self.image.tree
        self.sshd = read_settings(tree, self.variant.sshd_config)
        self.ssh = read_settings(tree, CLIENT_CONFIG)
        found = {path: DAEMONS.get(path.rpartition("/")[2]) for path in sorted(tree.entries) if "bin/" in path}
        self.daemons = {path: name for path, name in found.items() if name and tree.is_program(path)}

    @property
    def mpis(self) -> tuple[str, ...]:
        """Which MPIs there are."""
        return tuple(dict.fromkeys(self.daemons.values()))

    def first_of(self, keyword: str, default: str = "") -> str:
        """Return what counts of sshd's keyword."""
        return next(iter(self.sshd.get(keyword, ())), default)


def check_images(images: Sequence[ReadImage], variant: SshdVariant) -> tuple[Diagnostic, ...]:
    """Return what breaks the contract; launcher and workers need the same MPI, so several images are compared."""
    checked = [_CheckedImage(each, variant) for each in images]
    found = [each for image in checked for each in _diagnose(image)]
    first = checked[0]
    for other in checked[1:]:
        if other.mpis != first.mpis:
            message = (
                f"{_names(other)}, and {first.image.source} has {_names(first)}: launcher and workers need the same"
            )
            found.append(_diagnostic(_SAME_MPI, other, Violation(("mpi",), message, "build both on one base")))
    return tuple(found)


def contract_error(found: Sequence[Diagnostic]) -> ConfigError | None:
    """Return the error of images with which a job would not run; None without."""
    errors = [each for each in found if each.severity is Severity.ERROR]
    if not errors:
        return None
    return ConfigError(
        f"{len(errors)} of what mpi-operator expects of an image is missing",
        problems=tuple(errors),
        code="kubernetes.image-invalid",
        target=errors[0].file,
        hint="`vsml k8s image --base IMAGE --into FOLDER` writes what brings it",
    )


def _diagnose(image: _CheckedImage) -> Iterator[Diagnostic]:
    for rule in RULES:
        for each in rule.find(image):
            yield _diagnostic(rule, image, each)


def _diagnostic(rule: LintRule, image: _CheckedImage, found: Violation) -> Diagnostic:
    return Diagnostic(
        severity=rule.severity,
        code=rule.id,
        file=image.image.source,
        target=str(found.path[0]),
        message=found.message,
        details=(rule.source,),
        hint=found.hint,
    )


def _names(image: _CheckedImage) -> str:
    return " and ".join(image.mpis) or "no MPI"


def _programs(image: _CheckedImage) -> Iterator[Violation]:
    for path, package in ((SSHD, "openssh-server"), (SSH, "openssh-client")):
        if not image.image.tree.is_program(path):
            yield Violation((path,), "is missing: MPI starts its ranks by ssh", f"apt-get install {package}")


def _privilege_separation(image: _CheckedImage) -> Iterator[Violation]:
    if image.variant.is_root and image.image.tree.find("/run/sshd") is None:
        yield Violation(("/run/sshd",), "is missing: sshd ends at once when root starts it", "mkdir -p /run/sshd")


def _host_key(image: _CheckedImage) -> Iterator[Violation]:
    keys = image.sshd.get("hostkey", ())
    path = image.variant.sshd_config
    if any(key.startswith(f"{image.variant.keys}/") for key in keys):
        return
    own = [*image.image.tree.match("/etc/ssh/ssh_host_*_key")]
    named = [key for key in keys if key.lstrip("/") in own]
    if not image.variant.is_root or not (named or (own and not keys)):
        yield Violation(
            (path,), "sshd has no host key that it may read", f"HostKey {image.variant.keys}/id_rsa: the job's own"
        )


def _strict_modes(image: _CheckedImage) -> Iterator[Violation]:
    if image.first_of("strictmodes", "yes").lower() != "no":
        message = "StrictModes is on: anybody may write into the folder of a Secret, so sshd would not take its keys"
        yield Violation((image.variant.sshd_config,), message, "StrictModes no")


def _client(image: _CheckedImage) -> Iterator[Violation]:
    for keyword, wanted in (("StrictHostKeyChecking", "no"), ("UserKnownHostsFile", "/dev/null")):
        if next(iter(image.ssh.get(keyword.lower(), ())), "").lower() != wanted:
            message = f"{keyword} is not {wanted}: ssh would ask, or write into a read-only folder"
            yield Violation((CLIENT_CONFIG,), message, f"{keyword} {wanted}")


def _port(image: _CheckedImage) -> Iterator[Violation]:
    server, client = image.first_of("port", "22"), next(iter(image.ssh.get("port", ())), "22")
    if server != client:
        yield Violation((CLIENT_CONFIG,), f"ssh goes to port {client}, and sshd listens on {server}", f"Port {server}")
    if not image.variant.is_root and server.isdecimal() and int(server) < 1024:  # noqa: PLR2004 - ports(7)
        message = f"port {server} is root's, and sshd is not"
        yield Violation((image.variant.sshd_config,), message, f"Port {image.variant.port}")


def _user(image: _CheckedImage) -> Iterator[Violation]:
    passwd = image.image.tree.find("/etc/passwd")
    users = [line.split(":") for line in (passwd.text.splitlines() if passwd else ())]
    fitting = [user for user in users if len(user) > 5 and user[5] == image.variant.home]  # noqa: PLR2004 - passwd(5)
    if not fitting:
        hint = f"useradd --create-home {image.variant.user}"
        yield Violation(("/etc/passwd",), f"nobody has the home {image.variant.home}", hint)
    elif not image.variant.is_root and fitting[0][2] == "0":
        yield Violation(("/etc/passwd",), f"{fitting[0][0]} is root", "a user with a number of its own")


def _pid_file(image: _CheckedImage) -> Iterator[Violation]:
    if not image.variant.is_root and not image.first_of("pidfile").startswith(f"{image.variant.home}/"):
        message = "sshd would write its process number where only root may"
        yield Violation((image.variant.sshd_config,), message, f"PidFile {image.variant.home}/sshd.pid")


def _mpi(image: _CheckedImage) -> Iterator[Violation]:
    if not image.mpis:
        yield Violation(("mpi",), f"there is no {', '.join(DAEMONS)}: no MPI is in the image", "a base image with MPI")


def _one_mpi(image: _CheckedImage) -> Iterator[Violation]:
    if len(image.mpis) > 1:
        found = ", ".join(f"{name} ({path})" for path, name in image.daemons.items())
        yield Violation(("mpi",), f"there are several: {found}", "remove those that mpirun is not of")


def _daemon_path(image: _CheckedImage) -> Iterator[Violation]:
    """A session by ssh has the PATH of sshd, not that of the image."""
    path = read_variables(image.sshd.get("setenv", ())).get("PATH", _SYSTEM_PATH)
    folders = {image.image.tree.resolve(each) for each in path.split(":")}
    for mpi in image.mpis:
        daemons = [each for each, name in image.daemons.items() if name == mpi]
        if not any(image.image.tree.resolve(each.rpartition("/")[0]) in folders for each in daemons):
            message = f"ssh sessions do not find it: it is not in their PATH, {path}"
            yield Violation((f"/{daemons[0]}",), message, "SetEnv PATH=… for sshd, or mpirun by its full path")


def _open_mpi_5(image: _CheckedImage) -> Iterator[Violation]:
    if "Open MPI 5" in image.mpis:
        message = "Open MPI 5 ignores the operator's variables: all ranks would run in the launcher"
        yield Violation(("mpi",), message, "PRTE_MCA_prte_default_hostfile=/etc/mpi/hostfile, as vsml's jobs have it")


def _entrypoint(image: _CheckedImage) -> Iterator[Violation]:
    """Hydra wants all names at once; whether a root file system alone has an entrypoint is not known."""
    if not image.image.configured or "MPICH" not in image.mpis:
        return
    files = [image.image.tree.find(each) for each in image.image.entrypoint]
    if not any(file is not None and "hostfile" in file.text for file in files):
        message = "no entrypoint waits for the workers' names, which Hydra needs at once"
        yield Violation(("ENTRYPOINT",), message, "an entrypoint.sh, as `vsml k8s image --mpi mpich` writes it")


_SAME_MPI = LintRule("image-same-mpi", Severity.ERROR, "kubeflow/mpi-operator v0.8.2, docs", _mpi)
RULES = (
    LintRule("image-ssh", Severity.ERROR, f"{_BASE}Dockerfile", _programs),
    LintRule("image-run-sshd", Severity.ERROR, f"{_BASE}Dockerfile", _privilege_separation),
    LintRule("image-host-key", Severity.ERROR, f"{_BASE}sshd_config", _host_key),
    LintRule("image-strict-modes", Severity.ERROR, f"{_BASE}Dockerfile", _strict_modes),
    LintRule("image-ssh-client", Severity.ERROR, f"{_BASE}Dockerfile", _client),
    LintRule("image-port", Severity.ERROR, f"{_BASE}Dockerfile", _port),
    LintRule("image-user", Severity.ERROR, f"{_BASE}Dockerfile", _user),
    LintRule("image-pid-file", Severity.ERROR, f"{_BASE}sshd_config", _pid_file),
    LintRule("image-mpi", Severity.ERROR, f"{_BASE}openmpi.Dockerfile", _mpi),
    LintRule("image-several-mpis", Severity.WARNING, "PATH decides which mpirun it is", _one_mpi),
    LintRule("image-daemon-path", Severity.WARNING, "Open MPI, mpirun(1): --prefix", _daemon_path),
    LintRule("image-open-mpi-5", Severity.WARNING, "github.com/kubeflow/mpi-operator/issues/842", _open_mpi_5),
    LintRule("image-entrypoint", Severity.WARNING, f"{_BASE}entrypoint.sh", _entrypoint),
)
