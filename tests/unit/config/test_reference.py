from __future__ import annotations

import re
import tomllib

from tests.unit.config import reference
from vsphere_ml.config.load import load_text


def test_the_reference_page_is_what_the_schema_says() -> None:
    text = reference.PAGE.read_text()
    assert text == reference.page(text), "renew it: python -m tests.unit.config.reference"


def test_the_page_has_every_key_of_the_schema() -> None:
    text = reference.PAGE.read_text()
    keys = {"vcenter": "password.keyring", "nodes": "use", "defaults": "network.address", "guest": "key_file"}
    assert all(f"| `{key}` |" in text for key in keys.values())


def test_the_pages_example_loads() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", reference.PAGE.read_text(), re.DOTALL)
    assert len(load_text(example).nodes) == 4
    assert tomllib.loads(example)["cluster"]["name"] == "train"
