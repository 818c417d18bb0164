"""Debian's Chromium without a screen: a page of ours in a frame of a given width, measured and drawn."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import struct
import subprocess
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = os.environ.get("VSML_CHROMIUM", "chromium")
# A browser asks for updates, looks up hosts and keeps a cache; tests want none of it.
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
LIGHT, DARK = "1", "0"  # of Blink's setting preferredColorScheme
# A window is never narrower than 500 pixels, a frame is. The frame has its parent's origin, so that it can be measured.
_FRAME = """\
<body style="margin:0"><iframe style="border:0;width:{width}px;height:{height}px" srcdoc="{page}"></iframe>
<script>
onload = () => {{
  const page = frames[0].document, root = page.documentElement, seen = frames[0].getComputedStyle;
  const shown = each => each.getClientRects().length && seen(each).visibility != "hidden";
  const paint = each => {{
    for (let at = each; at; at = at.parentElement) {{
      const colour = seen(at).backgroundColor;
      if (!/, 0\\)$/.test(colour) && colour != "transparent") return colour;
    }}
    return seen(page.body).backgroundColor;
  }};
  const own = each => [...each.childNodes].some(node => node.nodeType == 3 && node.data.trim());
  const every = [...page.body.querySelectorAll("*")].filter(shown);
  const texts = every.filter(each => own(each) && each.ownerSVGElement == null).map(each => ({{
    text: each.textContent.trim().slice(0, 40), ink: seen(each).color, paper: paint(each),
    size: parseFloat(seen(each).fontSize) }}));
  const scrolls = each => each.scrollWidth > each.clientWidth + 1 && /auto|scroll/.test(seen(each).overflowX);
  const wide = every.filter(each => each.getBoundingClientRect().right > {width} + 0.5 || scrolls(each));
  const first = every.filter(each => own(each) && each.getBoundingClientRect().top < 800);
  const told = {{ width: root.scrollWidth, texts, wide: wide.map(each => each.outerHTML.slice(0, 80)),
    first_screen: first.map(each => each.textContent).join(" ") }};
  document.body.insertAdjacentHTML("beforeend", "<pre id=seen></pre>");
  document.getElementById("seen").textContent = JSON.stringify(told);
}};
</script>
"""


@dataclass(frozen=True)
class Browser:
    """A browser with a folder of its own."""

    folder: Path

    def measure(self, page: str, width: int, scheme: str) -> dict[str, Any]:
        """Return the page's width, what sticks out of the frame or scrolls in it, and each text's colours and size."""
        out = self._run(page, width, 800, scheme, "--dump-dom", "--allow-file-access-from-files")
        found = re.search(r'<pre id="seen">(.*?)</pre>', out, re.DOTALL)
        assert found is not None, out[-2000:]
        seen: dict[str, Any] = json.loads(html.unescape(found[1]))
        return seen

    def draw(self, page: str, width: int, height: int, scheme: str) -> bytes:
        """Return the page as a PNG."""
        file = self.folder / "drawn.png"
        self._run(page, width, height, scheme, f"--screenshot={file}", f"--window-size={width},{height}")
        return file.read_bytes()

    def _run(self, page: str, width: int, height: int, scheme: str, *more: str) -> str:
        frame = self.folder / "frame.html"
        frame.write_text(_FRAME.format(width=width, height=height, page=html.escape(page)))
        profile = self.folder / "profile"
        shutil.rmtree(profile, ignore_errors=True)
        settings = (f"--blink-settings=preferredColorScheme={scheme}", f"--user-data-dir={profile}")
        command = [PROGRAM, *OPTIONS, *settings, *more, frame.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout


def contrast(ink: str, paper: str) -> float:
    """Return the ratio that WCAG 2.2 defines (1.4.3): 4.5 is asked of text, 3 of large text."""
    lighter, darker = sorted((_luminance(ink), _luminance(paper)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    red, green, blue = (int(each) / 255 for each in re.findall(r"\d+", colour)[:3])
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def brightness(png: bytes) -> float:
    """Return how bright the picture's first row of pixels is, 0 to 1: its margin is paper alone."""
    at, data, width, channels = 8, b"", 0, 3
    while at < len(png):
        (length,), kind = struct.unpack(">I", png[at : at + 4]), png[at + 4 : at + 8]
        body = png[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, channels = struct.unpack(">I", body[:4])[0], {2: 3, 6: 4}[body[9]]
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    # Of the first row every filter but Sub and Average leaves the first pixel as it is, and the first pixel is paper.
    first = zlib.decompress(data)[1 : 1 + channels]
    assert width
    return sum(first[:3]) / 3 / 255
