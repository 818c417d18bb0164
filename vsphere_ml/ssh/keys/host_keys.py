"""Host keys as values, and a known_hosts line as OpenSSH writes it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from vsphere_ml.lazy_dataclass import dataclass

DEFAULT_PORT = 22
MARKS = ("@revoked", "@cert-authority")


@dataclass(frozen=True, slots=True)
class HostKey:
    """A public key by which a host proves who it is: its kind (`ssh-ed25519`) and its bytes on the wire."""

    kind: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint as `ssh-keygen -l` prints it."""
        return "SHA256:" + base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")

    def __str__(self) -> str:
        return f"{self.kind} {base64.b64encode(self.blob).decode()}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a known_hosts file that names hosts and a key."""

    names: tuple[str, ...]
    key: HostKey
    mark: str = ""
    comment: str = ""

    def is_for(self, place: str) -> bool:
        return any(_is_place(name, place) for name in self.names)


def place_of(host: str, port: int) -> str:
    """Return how known_hosts files call a host: `host`, or `[host]:port` on another port than 22."""
    return host.lower() if port == DEFAULT_PORT else f"[{host.lower()}]:{port}"


def read_key(text: str) -> HostKey | None:
    """Return the key of a public key's text, `KIND BASE64 [comment]`; None when it is none."""
    kind, _, rest = text.strip().partition(" ")
    try:
        blob = base64.b64decode(rest.split(None, 1)[0], validate=True)
    except (IndexError, binascii.Error):
        return None
    # The kind stands in the blob again; a line whose halves disagree is not one to trust.
    return HostKey(kind, blob) if blob[4 : 4 + len(kind)] == kind.encode() else None


def read_entry(line: str) -> Entry | None:
    """Return a line's entry; None for blank lines, remarks, and lines nobody could use."""
    fields = line.split()
    if not fields or fields[0].startswith("#"):
        return None
    mark = fields.pop(0) if fields[0] in MARKS else ""
    names, key, comment = "".join(fields[:1]), read_key(" ".join(fields[1:3])), " ".join(fields[3:])
    return None if key is None else Entry(tuple(names.split(",")), key, mark, comment)


def _is_place(name: str, place: str) -> bool:
    return _is_hashed_place(name, place) if name.startswith("|1|") else name.lower() == place


def _is_hashed_place(name: str, place: str) -> bool:
    """Return whether a hashed name, `|1|SALT|HMAC-SHA1`, is the place's."""
    try:
        salt, wanted = (base64.b64decode(part, validate=True) for part in name[3:].split("|"))
    except (ValueError, binascii.Error):
        return False
    # SHA-1 is the format's, and only hides names.
    return hmac.compare_digest(hmac.new(salt, place.encode(), hashlib.sha1).digest(), wanted)
