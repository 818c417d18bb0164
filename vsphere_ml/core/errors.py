"""Every error vsml raises on purpose.

VsmlError                code, message, target, hint; the cause always chained
├── ConfigError       2  every problem of the file at once, with file:line
├── NotPossible       3  asked for what the site cannot give: no placement, unsupported version, lock held, stale plan
├── VSphereError      4  sign-in, not found, a task failed, a deadline passed, a setting that was dropped
├── GuestError        5  a guest could not be reached, or a step failed
└── BenchError        6  a launch failed, or gave no samples

The status belongs to the family; a script that needs more reads `code`.
docs/reference/errors.md has one entry per code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from vsphere_ml.core.diagnostics import Diagnostic


class VsmlError(Exception):
    """What failed, on what, why, and what to type next.

    With a `reason` in place of a message, the message is that after the target's name; views that show the target
    beside it show the reason alone.
    """

    status: ClassVar[int] = 1

    def __init__(
        self,
        message: str = "",
        *,
        code: str,
        target: str = "",
        hint: str = "",
        details: tuple[str, ...] = (),
        reason: str = "",
    ) -> None:
        self.reason = reason or message
        self.message = message or f"{target}: {reason}"
        super().__init__(self.message)
        self.code = code
        self.target = target
        self.hint = hint
        self.details = details


class ConfigError(VsmlError):
    """The file or the options are wrong; carries every problem found."""

    status = 2

    def __init__(
        self,
        message: str,
        *,
        problems: tuple[Diagnostic, ...] = (),
        code: str = "config.invalid",
        target: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(message, code=code, target=target, hint=hint, details=tuple(str(p) for p in problems))
        self.problems = problems


class NotPossible(VsmlError):  # noqa: N818 - reads as what it says
    """The site cannot give what was asked for, or must not be touched now."""

    status = 3


class VSphereError(VsmlError):
    """vCenter refused, failed, or did not answer in time; `action` is what was tried, where the message says so."""

    status = 4
    action = ""


class GuestError(VsmlError):
    """A guest could not be reached, or a step in it failed."""

    status = 5


class BenchError(VsmlError):
    """A benchmark could not be launched, or gave no samples."""

    status = 6


class PlacementError(BenchError):
    """Ranks did not run on the nodes they were asked to; whatever they measured is not what was meant."""

    status = 8
