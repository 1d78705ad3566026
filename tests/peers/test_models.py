"""What `tessera pyramid` writes is OME-Zarr to ome-zarr-models, and holds what was given."""
import numpy as np
import pytest
import tessera
import zarr

models = pytest.importorskip("ome_zarr_models")


@pytest.mark.parametrize(("zarr_format", "version"), [("v2", "0.4"), ("v3", "0.5")])
@pytest.mark.parametrize(("shape", "axes"), [((300, 400), "y,x"), ((2, 40, 300, 300), "c,z,y,x")])
def test_pyramid(tmp_path, zarr_format, version, shape, axes):
    values = np.arange(np.prod(shape), dtype="u2").reshape(shape)
    tessera.save(tmp_path / "image.zarr", values)
    tessera.pyramid(tmp_path / "image.zarr", tmp_path / "pyramid.zarr", axes=axes.split(","), format=zarr_format)
    group = zarr.open_group(tmp_path / "pyramid.zarr", mode="r")
    image = models.open_ome_zarr(group)
    assert type(image).__name__ == "Image" and image.ome_zarr_version == version
    scales = image.attributes.multiscales if version == "0.4" else image.attributes.ome.multiscales
    assert [axis.name for axis in scales[0].axes] == axes.split(",") and len(scales[0].datasets) > 1
    assert (group[scales[0].datasets[0].path][...] == values).all()
