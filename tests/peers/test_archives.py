"""What `seal` writes for archives is sound to those who check archives: bagit, ocfl-py and rocrate."""
import pathlib

import numpy as np
import pytest
import tessera


@pytest.fixture
def group(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = tessera.create_group("g.zarr", format="v3")
    made.attrs.update({"title": "Heights", "license": "CC-BY-4.0"})
    made["height"] = np.arange(24.0).reshape(4, 6)
    made["name"] = np.array(["a", "b"])
    return pathlib.Path("g.zarr")


def test_bag(group):
    bagit = pytest.importorskip("bagit")
    tessera.seal(group, bag="bag")
    bag = bagit.Bag("bag")
    bag.validate()
    chunk = next(path for path in pathlib.Path("bag").rglob("c/*/*") if path.is_file())
    chunk.write_bytes(b"something else")
    with pytest.raises(bagit.BagValidationError):
        bagit.Bag("bag").validate()
    assert not tessera.verify("bag")["sound"]


def test_ocfl(group):
    ocfl = pytest.importorskip("ocfl")
    tessera.seal_ocfl(group, "root", "urn:example:g")
    tessera.open(group / "height", "r+")[0, 0] = -1
    assert tessera.seal_ocfl(group, "root", "urn:example:g")["version"] == "v2"
    root = ocfl.StorageRoot("root")
    assert root.validate(), root.errors
    assert (root.num_objects, root.good_objects) == (1, 1)


def test_ro_crate(group):
    crate = pytest.importorskip("rocrate.rocrate")
    tessera.seal(group, ro_crate=True)
    read = crate.ROCrate(group)
    assert read.root_dataset["name"] == "Heights"
    assert any(entity.get("name") == "height" for entity in read.get_entities())
