#!/usr/bin/env python3
"""From an elevation model in an .npz file to a sealed archive: tessera, xarray and dask, cell by cell.

    jacksboro.py [FOLDER]      FOLDER (default: a new temporary one) keeps what is made

Editors that know `# %%` run it as a notebook. tools/docs/dask.md says what each cell does.
"""
# %% What there is: an archive of NumPy's, with the elevations and where they lie
import os
import shutil
import sys
import tempfile

import dask.array
import numpy as np
import tessera
import xarray

here = os.path.dirname(os.path.abspath(__file__))
folder = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()
os.makedirs(folder, exist_ok=True)
shutil.copy(os.path.join(here, "jacksboro_fault_dem.npz"), folder)
os.chdir(folder)

model = tessera.open("jacksboro_fault_dem.npz")
print(model)
print(model["elevation"])

# %% A group for it, in Zarr v3, with coordinates that say where each element lies
place = {name: float(model[name][()]) for name in ("xmin", "xmax", "ymin", "ymax")}
rows, columns = model["elevation"].shape
survey = tessera.create_group("survey.zarr", attrs={"title": "Jacksboro fault, 3 arc-seconds"})
tessera.copy("jacksboro_fault_dem.npz::elevation", "survey.zarr/elevation", format="v3", chunks=(64, 64), codec="zstd:5")
elevation = tessera.open("survey.zarr/elevation", "r+")
elevation.dims = ["lat", "lon"]
elevation.attrs.update(units="m", long_name="elevation")
survey.create_array("lat", rows, "f8", chunks=rows, dims=["lat"], attrs={"units": "degrees_north"})[:] = np.linspace(
    max(place["ymin"], place["ymax"]), min(place["ymin"], place["ymax"]), rows)
survey.create_array("lon", columns, "f8", chunks=columns, dims=["lon"], attrs={"units": "degrees_east"})[:] = np.linspace(
    place["xmin"], place["xmax"], columns)
print(survey.tree())

# %% xarray opens it with the names and coordinates, and reads nothing yet; chunks={} asks for dask, a chunk a block
data = xarray.open_dataset("survey.zarr", engine="tessera", chunks={})
print(data)
assert data["elevation"].chunks[0][0] == 64
highest = data["elevation"].max("lon")
print("the highest row lies at", float(data["lat"][int(highest.argmax())]), "degrees north")

# %% A new grid from the old one, block by block: the slope in degrees. The blocks overlap by a row and a column
metres = 111_320 * abs(float(data["lat"][1] - data["lat"][0]))


def slope(block):
    down, across = np.gradient(block.astype("f4"), metres, metres * np.cos(np.radians(36.6)))
    return np.degrees(np.arctan(np.hypot(down, across))).astype("f4")


lazy = tessera.open("survey.zarr/elevation").to_dask().rechunk((100, 100)).map_overlap(slope, depth=1, boundary="nearest",
                                                                                     dtype="f4")
target = survey.create_array("slope", elevation.shape, "f4", chunks=(64, 64), dims=["lat", "lon"],
                             attrs={"units": "degree"})
# Blocks of 100 by 100 share chunks of 64 by 64: the writers of one chunk take turns, and no lock is needed.
dask.array.store(lazy, target, lock=False)
print(tessera.stats(target)["max"], "degrees at most")

# %% A mistake, and the way back: changes that take effect all together can be taken back
before = tessera.digest(elevation)
with elevation.edit() as batch:
    batch[100:180, 150:300] = 250
    batch.attrs["note"] = "a lake that is not there"
tessera.undo(elevation)
assert tessera.digest(elevation) == before

# %% The same data set, as it was computed, through xarray
again = xarray.open_dataset("survey.zarr", engine="tessera")
assert sorted(again.data_vars) == ["elevation", "slope"]
assert np.array_equal(again["elevation"], np.load("jacksboro_fault_dem.npz")["elevation"])
steep = again["slope"].where(again["slope"] > 30).count()
print(int(steep), "of", again["slope"].size, "places are steeper than 30 degrees")

# %% Looked through, and sealed: a BagIt bag, whose every file anybody can check with sha256sum
survey.consolidate()
report = tessera.verify("survey.zarr")
assert report["sound"], report["findings"]
bag = tessera.seal("survey.zarr", bag="survey-bag")
print(bag)
print("sealed:", sorted(os.listdir("survey-bag")))
