"""What a node may ask of GPUs at all, whatever the site has."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.catalog import catalogue
from vsphere_ml.core.catalog.boards import BOARDS, BY_CODE, BY_DEVICE, NVIDIA, Board
from vsphere_ml.core.catalog.profiles import known_names, parse
from vsphere_ml.core.model.device_kinds import GpuKind
from vsphere_ml.core.nearest import nearest_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.catalog.profiles import ProfileName
    from vsphere_ml.core.model.spec import GpuRequest, NicRequest

_IDS = re.compile(r"(?:0x)?([0-9a-f]{4}):(?:0x)?([0-9a-f]{4})", re.IGNORECASE | re.ASCII)
GROUP_SIZES = (2, 4, 8)  # of GPUs joined by NVLink that vSphere makes device groups of
_LINK, _SIZES = "nvlink-full-gpus", "nvlink-group-sizes"  # the rules
PAIR = 2  # what a bridge joins; more GPUs are joined by an NVSwitch


def kind_of(profile: str) -> GpuKind:
    """Return the kind a profile is of when nobody says it; ValueError as `parse`."""
    return GpuKind.VGPU if parse(profile).mig_slices is None else GpuKind.MIG


# Boards that are no slips of the keyboard, and that the tables do not have: older than Volta, and Blackwell.
_OTHER_BOARDS = frozenset({"M6", "M10", "M60", "P4", "P6", "P40", "P100", "P100C", "P100X", "B200", "B300", "GB200"})


def profile_refusal(name: str) -> str | None:
    """Return why a profile is none for compute, in words for a person, or None when it is; ValueError as `parse`."""
    profile = parse(name)
    if profile.series == "C":
        return None
    compute = replace(profile, series="C", suffix="")
    return f"`{name}` is of the {profile.series} series, which is not for compute; write `{compute}`"


def profile_note(profile: ProfileName) -> str | None:
    """Return, in words, that a profile is in none of NVIDIA's tables of C-series vGPUs, and what is meant; None else.

    A board may be newer than they are, so what the hosts offer decides.
    """
    board = BY_CODE.get(profile.board)
    if catalogue.find(profile) is not None:
        return None
    if board is not None:
        return f"NVIDIA's tables have no {profile}: {_instead(profile, board)}{_boards_with_profile(profile, board)}"
    meant = f"; did you mean `{known}`?" if (known := _nearest_profile(profile)) else ""
    return f"{profile.board} is a board that vsml has no data sheet of{meant}"


def _nearest_profile(profile: ProfileName) -> str | None:
    """Return the known profile that is closest to one of an unknown board; None when no board is close."""
    if _nearest_board(profile.board) is None:
        return None
    return nearest_name(str(replace(profile, board=_with_zeros(profile.board))), known_names())


def _with_zeros(text: str) -> str:
    """Return a board's code as it is written, where an O was taken for a zero."""
    return text.strip().upper().replace("O", "0")


def _nearest_board(text: str) -> Board | None:
    code = _with_zeros(text)
    known = None if code in _OTHER_BOARDS else nearest_name(code, BY_CODE)
    return BY_CODE[known] if known else None


def device_ids(text: str) -> tuple[int, int]:
    """Return the PCI vendor and device id of `10de:20f1`, or of a board by its code; ValueError says what was expected.

    Some boards have no id of their own in the PCI ID database; they are asked for by their ids.
    """
    if found := _IDS.fullmatch(text.strip()):
        return int(found[1], 16), int(found[2], 16)
    board = BY_CODE.get(text.strip().upper())
    if board is None or board.device is None:
        known = _nearest_board(text)
        meant = f"; did you mean `{known.code}`?" if known is not None and known.device is not None else ""
        raise ValueError(f"`{text}` is no GPU; write a board such as A100, or its PCI ids such as 10de:20f1{meant}")
    return NVIDIA, board.device


def gpu_board(asked: GpuRequest) -> Board | None:
    """Return the board of GPUs that are handed through whole, as far as vsml knows it."""
    if not asked.is_passthrough:
        return None
    vendor, device = device_ids(asked.device)
    return BY_DEVICE.get(device) if vendor == NVIDIA else None


def refusal(asked: GpuRequest) -> str | None:
    """Return why no site can give what is asked for, in words for a person, or None; ValueError as `parse`."""
    if asked.is_passthrough:
        return next(_find_passthrough_mistakes(asked), None)
    if asked.device or asked.label:
        text = f"`{asked.device or asked.label}` is for DirectPath, and the kind is `{asked.kind}`"
        return f"{text}; leave it out, or name another kind"
    return profile_refusal(asked.profile) or next(_find_gpu_mistakes(asked, parse(asked.profile)), None)


def nic_refusal(asked: GpuRequest, nic: NicRequest) -> str | None:
    """Return why GPUs and a NIC of these kinds never go together, in words for a person, or None."""
    if nic.count > 1 and not nic.kind.spec.function:
        return f"nic.count is of functions of adapters, and nic.kind is `{nic.kind}`"
    if nic.count > 1 and nic.kind.spec.only_group:
        return "a device group has one NIC; leave nic.kind out, and vsml pairs several with the GPUs"
    if asked.kind.spec.linked and nic.kind.spec.only_group:
        return "a device group of GPUs joined by NVLink has no NIC; leave nic.kind out, and vsml pairs one with it"
    if asked.is_passthrough and nic.kind.spec.only_group:
        return "vSphere's device groups with a NIC are of vGPUs; leave nic.kind out, and vsml pairs one with it"
    if asked.kind.spec.mig and nic.kind.spec.only_group:
        return "vSphere's device groups are of whole GPUs, not of MIG profiles; leave nic.kind out"
    return None


def _find_gpu_mistakes(asked: GpuRequest, profile: ProfileName) -> Iterator[str]:
    sliced = profile.mig_slices is not None
    match asked.kind:
        case GpuKind.VGPU if sliced:
            yield f'`{profile}` is a MIG profile, and the kind is `vgpu`; write kind = "mig", or leave it out'
        case GpuKind.MIG if not sliced:
            board = BY_CODE.get(profile.board)
            yield f"`{profile}` is no MIG profile" + (f"; {_instead(profile, board, mig=True)}" if board else "")
        case GpuKind.NVLINK:
            yield from _against_link(asked, profile)
        case _:
            pass


def _find_passthrough_mistakes(asked: GpuRequest) -> Iterator[str]:
    if asked.profile:
        yield f"`{asked.profile}` is a vGPU profile, and DirectPath gives whole GPUs; name the board as gpu.device"
    elif asked.label and asked.kind is GpuKind.PASSTHROUGH:
        yield "hardware labels are of dynamic DirectPath; leave gpu.label out"
    else:
        device_ids(asked.device)


def _against_link(asked: GpuRequest, profile: ProfileName) -> Iterator[str]:
    """Yield what keeps GPUs from being joined by NVLink: whole GPUs only, of a board that has it, in groups."""
    board = BY_CODE.get(profile.board)
    if profile.mig_slices is not None:
        entire = f"; write `{board.full_profile}`" if board is not None else ""
        yield f"`{profile}` is a MIG profile, and MIG has no NVLink (rule {_LINK}){entire}"
    elif board is None:
        yield from () if asked.count in GROUP_SIZES else (_wrong_group_size(asked.count),)
    elif not profile.is_full:
        entire = f"write `{board.full_profile}`"
        yield f"`{profile}` is a part of a GPU, and NVLink joins whole ones (rule {_LINK}); {entire}"
    elif board.code not in catalogue.NVLINK:
        yield f"{board.title} has no NVLink between vGPUs (rule {_LINK})"
    elif asked.count not in GROUP_SIZES:
        yield _wrong_group_size(asked.count)
    elif asked.count > PAIR and board.code not in catalogue.NVSWITCH:
        yield f"{board.title} is joined in pairs; {asked.count} GPUs need an NVSwitch, which it has not (rule nvswitch)"


def _wrong_group_size(count: int) -> str:
    return f"NVLink joins {', '.join(map(str, GROUP_SIZES))} GPUs of a VM, not {count} (rule {_SIZES})"


def _instead(profile: ProfileName, board: Board, *, mig: bool | None = None) -> str:
    """Return which profiles a board has of the kind that was meant."""
    wants_mig = profile.mig_slices is not None if mig is None else mig
    names = [str(each.name) for each in catalogue.profiles_of(board) if (each.instance is not None) is wants_mig]
    if not names:
        return f"{board.title} has no MIG; write `{board.full_profile}`, the whole GPU"
    return f"{board.title} has {', '.join(names)}"


def _boards_with_profile(profile: ProfileName, board: Board) -> str:
    """Return boards of the same family that do have so large a profile."""
    if profile.mig_slices is not None or profile.framebuffer_gib <= board.full_gb:
        return ""
    family = [each for each in BOARDS if each.code.startswith(board.code) and each.full_gb == profile.framebuffer_gib]
    return "".join(f", or `{each.full_profile}` of {each.title}" for each in family)
