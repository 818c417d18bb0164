"""SHA-256 thumbprints of certificates."""

from __future__ import annotations

import re

_SHA256 = re.compile(r"(?:[0-9a-f]{2}:?){31}[0-9a-f]{2}", re.IGNORECASE | re.ASCII)
HINT = "`openssl x509 -noout -fingerprint -sha256 -in vcenter.pem` prints it"


def tidy(text: str) -> str:
    """Return a thumbprint as vSphere prints it, in capitals with colons; ValueError says what was expected."""
    if not _SHA256.fullmatch(text):
        raise ValueError("is not a SHA-256 thumbprint; write its 32 bytes in hexadecimal, such as 3A:0F:…")
    digits = text.replace(":", "").upper()
    return ":".join(digits[at : at + 2] for at in range(0, len(digits), 2))
