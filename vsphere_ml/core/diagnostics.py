"""What is reported about something: one value for files, sites, hosts, guests, manifests and benchmarks."""

from __future__ import annotations

from enum import StrEnum

from vsphere_ml.lazy_dataclass import dataclass


class Severity(StrEnum):
    """How much it matters. Of checks, OK is one that holds, and UNKNOWN one that nobody could make."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    UNKNOWN = "unknown"
    OK = "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """What was found, on what, and what can be done about it: the fields of an error, and how much it matters.

    The mistakes of a file have a line (from 1; None where it is not known) and a key as their target; those of a
    `ConfigError` leave the code to it.
    """

    severity: Severity = Severity.WARNING
    code: str = ""  # stable: placement.gpu-elsewhere, bench.slow-link, ...
    target: str = ""
    message: str
    details: tuple[str, ...] = ()
    hint: str = ""
    file: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line is not None else self.file
        return ": ".join(each for each in (place, self.target, self.message) if each)


def mistake(file: str, line: int | None, message: str, *, key: str = "", hint: str = "") -> Diagnostic:
    """Return a mistake in a person's file: where, at which key, and what was expected."""
    return Diagnostic(severity=Severity.ERROR, file=file, line=line, target=key, message=message, hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal(Diagnostic):
    """Why something must not be begun, and the options of the command that allow it all the same.

    `details` are what it is about, such as VMs.
    """

    severity: Severity = Severity.ERROR
    flags: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.details:
            return Diagnostic.__str__(self)
        about = self.message if self.target in self.details else Diagnostic.__str__(self)
        return f"{about}: {', '.join(self.details)}"
