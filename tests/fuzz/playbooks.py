"""Whatever is in a playbook and its template: it can be rendered, or it is refused with every mistake in words."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.answers import check_refusal, check_words
from tests.fuzz.mutation import inputs
from tests.unit.guest.cluster import NODE_1
from vsphere_ml.config.positions import positions
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.guest.playbooks import playbook
from vsphere_ml.guest.playbooks.fields import FieldError, Template
from vsphere_ml.guest.steps.system.files import File
from vsphere_ml.guest.templates import render

ROOT = Path(__file__).parents[2]
BOOKS = tuple(
    file.read_bytes()
    for folder in ("playbooks", "tests/cases/playbooks", "tests/cases/steps")
    for file in sorted((ROOT / folder).glob("*.toml"))
)
TEMPLATES = (
    *(file.read_bytes() for file in sorted((ROOT / "templates").iterdir()) if file.is_file()),
    b"{% for peer in peers if peer.roce_address %}\n{{ loop.index }} {{ peer.name | upper }}\n{% endfor %}\n",
    b"{% set all = peers | map(attribute='name') | join(',') %}\n{{ all[:10] ~ gpus * 2 }}\n",
    b"{{ values.get('x', 'y') }} {{ values.rack | default('none') | quoted }}\n",
    b"{% if gpus > 1 and 'A100' in profile %}{{ name.split('-')[0] }}{% elif gpus is odd %}{{ 7 // 2 }}{% endif %}\n",
)
VALUES = {"driver_file": "d-525.105.17.run", "image": "x/y:1", "doca_url": "https://m/x", "doca_key": "https://m/k"}


def run(seconds: float, seed: int, most: int | None = None) -> int:
    """Try playbooks for half of the seconds and templates for the other, or so many of each; return how many."""
    return books(seconds / 2, seed, most) + templates(seconds / 2, seed, most)


def books(seconds: float, seed: int, most: int | None) -> int:
    count = 0
    for content in inputs(BOOKS, seconds, seed, most):
        try:
            text = playbook.decode_playbook(content, Path("mine.toml"))
            book = playbook.load_text(text, ROOT / "mine.toml", values=VALUES, positions=positions)
        except ConfigError as error:
            check_refusal(error, content, unreadable="playbook.unreadable")
        else:
            playbook.sources(book)
            playbook.rendering(book, (NODE_1,))
        count += 1
    return count


def templates(seconds: float, seed: int, most: int | None) -> int:
    count = 0
    for content in inputs(TEMPLATES, seconds, seed, most):
        text = Template(content.decode(errors="replace"), "mine.j2")
        try:
            step = File(path="/etc/mine", template=text, values={"port": "1"})
            step.content(NODE_1)
        except FieldError as wrong:
            check_words(wrong.message, content)
        except ConfigError as error:
            check_refusal(error, content)
        count += 1
        render.mistakes(text, render.KNOWN)
    return count
