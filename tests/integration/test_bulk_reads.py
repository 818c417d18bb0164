"""What is read in bulk of the lab, by the quick reader, is what pyvmomi's own reader makes of the same answers."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration import labs
from tests.unit.vsphere.connection.test_tree_reader import same
from vsphere_ml.config.load import load_text
from vsphere_ml.flows.site.read_site import scope
from vsphere_ml.vsphere.connection import soap, tree_reader

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.lab


def test_each_answer_is_read_as_pyvmomi_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = labs.cluster_file("bulk", cluster="gpu", gpu='{ profile = "A100-40C" }', nic='{ kind = "none" }', nodes=2)
    compared: list[bool] = []
    quick = tree_reader.read_tree

    def read_both(text: bytes, result: Any, stub: Any, source: Any) -> Any:
        ours = quick(text, result, stub, source)
        reader = soap._Reader(stub, source)
        theirs = reader.Deserialize(BytesIO(text), result)
        compared.append(ours is not None and same(ours, theirs))
        return ours

    with labs.running(tmp_path / "state") as lab:
        vcenter, spec = labs.gateway(lab), load_text(file)
        try:
            assert labs.brought(spec, lab, vcenter).done
            monkeypatch.setattr(soap, "read_tree", read_both)
            assert vcenter.read_site(scope(spec)).hosts
            assert vcenter.read([node.name for node in spec.nodes])
        finally:
            vcenter.close()
    assert len(compared) >= 3
    assert all(compared)
