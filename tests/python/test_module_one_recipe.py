#!/usr/bin/env python3
"""Every recipe made by the program, by Python, and by jobs that either planned: all four have the same elements, names of
dimensions and attributes."""
import inspect
import json
import os
import subprocess

import module
import numpy as np
import tessera
from tessera._calls import hints_of_options

PROGRAM = os.environ["TESSERA_PROGRAM"]


def program(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


def data_set():
    """A month and a half of days, with coordinates, fill and attributes."""
    rng = np.random.default_rng(7)
    group = tessera.create_group("g", format="v3")
    values = rng.normal(size=(45, 6, 8)).astype("f4")
    group.create_array("t", data=values, chunks=(10, 3, 4), dims=("time", "lat", "lon"), fill_value=-9.0,
                 attrs={"units": "K", "scale": 2})
    group.create_array("time", data=np.arange(45), dims=("time",), attrs={"units": "days since 2001-01-10", "calendar": "noleap"})
    group.create_array("lat", data=np.linspace(-75, 75, 6), dims=("lat",), attrs={"units": "degrees_north"})
    group.create_array("lon", data=np.arange(8) * 45.0, dims=("lon",), attrs={"units": "degrees_east"})
    group.create_array("labels", data=np.arange(8) % 3, dims=("lon",))
    tessera.copy("g", "h")
    fine = tessera.create_group("fine", format="v3")
    fine.create_array("z", data=np.zeros((3, 2)), dims=("lat", "lon"))
    fine.create_array("lat", data=np.float32([-50.5, 0.3, 61]), dims=("lat",))
    fine.create_array("lon", data=np.array([355.0, 3]), dims=("lon",))
    tessera.open("h/t", "r+")[3] = 4.5
    np.save("plain.npy", values[:, :, ::-1].copy())
    np.save("table.npy", np.array([(n, n % 5 - 2.0) for n in range(300)], [("n", "i4"), ("x", "f8")]))
    np.save("points.npy", np.array([[0, 0, 0], [44, 5, 7], [-1, 2, 3], [7, 1, 6]]))
    open("no_names.csv", "w").write("1,2\n3,-1\n5,6\n")
    group.create_array("packed", data=np.arange(240).reshape(12, 20).astype("i2"), chunks=(5, 7), dims=("y", "x"), fill_value=7,
                       attrs={"scale_factor": 0.5, "add_offset": 3.0, "_FillValue": 7})


def facts(path):
    """What must agree: elements, names of dimensions, attributes; for a group of each array."""
    digest = json.loads(program("digest", path, "--json"))
    opened = tessera.open(path)
    arrays = {"": opened} if isinstance(opened, tessera.Array) else {name: opened[name] for name in sorted(opened)}
    return {name: (a.shape, a.dtype, a.dims, repr(sorted(a.attrs.items())), repr(a.fill_value)) for name, a in arrays.items()}, \
        [{key: value for key, value in one.items() if key != "path"} for one in digest]


# Words of the program between the command and DST, more words, and the call of Python: command, source, keywords.
RECIPES = {
    "copy": (["g/t"], ["--sel", "3:40, 1:"], ("copy", "g/t", {"sel": "3:40, 1:"})),
    "rechunk": (["g/t"], ["--chunks", "45,2,2"], ("rechunk", "g/t", {"chunks": (45, 2, 2)})),
    "copy of rows": (["table.npy"], ["--where", "(x > 0) & (n > 9)", "--sel", "3:50:2", "--chunks", "4", "--format", "v3"],
                     ("copy", "table.npy", {"where": "(x > 0) & (n > 9)", "sel": "3:50:2", "chunks": 4, "format": "v3"})),
    "copy of elements": (["g/t"], ["--where", "(value > -1) & (value < 20)"], ("copy", "g/t", {"where": "(value > -1) & (value < 20)"})),
    "copy of packed elements": (["g/packed"], ["--where", "value > 40", "--sel", "2:, :5"], ("copy", "g/packed", {"where": "value > 40", "sel": "2:, :5"})),
    "copy decoded": (["g/packed"], ["--decode-cf"], ("copy", "g/packed", {"cf": "decode"})),
    "copy rounded": (["g/t"], ["--keep-bits", "4", "--fill", "-8"], ("copy", "g/t", {"keep_bits": 4, "fill_value": -8})),
    "copy rounded as told": (["g/t"], ["--max-error", "0.25", "--dtype", "f8"], ("copy", "g/t", {"max_error": 0.25, "dtype": "f8"})),
    "copy rounded by itself": (["g/t"], ["--keep-bits", "auto"], ("copy", "g/t", {"keep_bits": "auto"})),
    "copy of a csv": (["no_names.csv"], ["--header", "no", "--missing", "-1", "--dtype", "f4", "--format", "v3"],
                      ("copy", "no_names.csv", {"header": False, "missing": -1, "dtype": "f4", "format": "v3"})),
    "stack decoded": (["g/packed", "g/packed"], ["--decode-cf", "--sel", ":, 2:7"],
                      ("stack", ["g/packed", "g/packed"], {"cf": "decode", "sel": ":, 2:7"})),
    "calc": (None, ["where(a > b, a, b * 2)", "a=g/t", "b=plain.npy"],
             ("calc", "where(a > b, a, b * 2)", {"operands": {"a": "g/t", "b": "plain.npy"}})),
    "reduce": (["g/t"], ["--with", "mean", "--axis", "time,lon"], ("reduce", "g/t", {"how": "mean", "axis": ("time", "lon")})),
    "reduce by month": (["g/t"], ["--with", "p25", "--by", "month"], ("reduce", "g/t", {"how": "p25", "by": "month"})),
    "reduce by labels": (["g/t"], ["--with", "sum", "--axis", "lon", "--by", "g/labels"],
                         ("reduce", "g/t", {"how": "sum", "axis": "lon", "by": "g/labels"})),
    "reduce kept": (["g/t"], ["--with", "argmax", "--axis", "-1", "--keep-dims", "--dtype", "i2"],
                    ("reduce", "g/t", {"how": "argmax", "axis": -1, "keepdims": True, "dtype": "i2"})),
    "reduce weighted": (["g/t"], ["--with", "mean", "--axis", "lat,lon", "--weights", "area"],
                        ("reduce", "g/t", {"how": "mean", "axis": ("lat", "lon"), "weights": "area"})),
    "reduce weighted by an array": (["g/t"], ["--with", "std", "--axis", "lon", "--weights", "g/labels"],
                                    ("reduce", "g/t", {"how": "std", "axis": "lon", "weights": "g/labels"})),
    "reduce rolling": (["g/t"], ["--with", "mean", "--rolling", "time=7", "--min-count", "3", "--center"],
                       ("reduce", "g/t", {"how": "mean", "rolling": {"time": 7}, "min_count": 3, "center": True})),
    "calc anomalies": (None, ["(t - mean(t, by=month)) / std(t, time)", "t=g/t"],
                       ("calc", "(t - mean(t, by=month)) / std(t, time)", {"operands": {"t": "g/t"}})),
    "regrid": (["g/t"], ["--to", "lat=-60:60:15,lon=-10:300:10"], ("regrid", "g/t", {"to": "lat=-60:60:15,lon=-10:300:10"})),
    "regrid like": (["g/t"], ["--like", "g/t", "--method", "conservative"], ("regrid", "g/t", {"like": "g/t", "method": "conservative"})),
    "coarsen": (["g/t"], ["--by", "lat=2,lon=3", "--with", "max"], ("coarsen", "g/t", {"by": {"lat": 2, "lon": 3}, "how": "max"})),
    "stack": (["g/t", "g/t"], ["--axis", "1", "--dtype", "f8"], ("stack", ["g/t", "g/t"], {"axis": 1, "dtype": "f8"})),
    "concat": (["g/t", "g/t", "g/t"], ["--axis", "lat"], ("concat", ["g/t", "g/t", "g/t"], {"axis": "lat"})),
    "reduce set": (["g"], ["--with", "mean", "--axis", "time", "--sel", "lat@1:5"],
                   ("reduce", "g", {"how": "mean", "axis": "time", "sel": "lat@1:5"})),
    "reduce set by month": (["g"], ["--with", "max", "--by", "month", "--except", "packed"],
                            ("reduce", "g", {"how": "max", "by": "month", "exclude": "packed"})),
    "coarsen set": (["g"], ["--by", "lat=2", "--only", "t"], ("coarsen", "g", {"by": {"lat": 2}, "only": ["t"]})),
    "regrid set": (["g"], ["--like", "fine", "--method", "nearest", "--sel", "time=2001-02", "--except", "labels"],
                   ("regrid", "g", {"like": "fine", "method": "nearest", "sel": "time=2001-02", "exclude": "labels"})),
    "concat sets": (["g", "h"], ["--axis", "time"], ("concat", ["g", "h"], {"axis": "time"})),
    "calc set": (None, ["a - b", "a=g", "b=h", "--only", "t"],
                 ("calc", "a - b", {"operands": {"a": "g", "b": "h"}, "only": "t"})),
    "copy set": (["g"], ["--only", "t,packed"], ("copy", "g", {"only": "t,packed"})),
    "pyramid": (["g/t"], ["--axes", "t,y,x", "--levels", "2", "--scale", "1,0.5,0.5", "--by", "2"],
                ("pyramid", "g/t", {"axes": ["t", "y", "x"], "levels": 2, "scale": (1, 0.5, 0.5), "by": 2})),
}


def test_all_faces_make_the_same():
    data_set()
    for case, (sources, words, (command, source, keywords)) in RECIPES.items():
        name = case.split()[0]
        made = {}
        line = [name, *(sources or []), None, *words]
        for face in "program", "program's job":
            made[face] = f"{case} of the {face}".replace(" ", "_").replace("'", "")
            whole = [made[face] if word is None else word for word in line]
            if face == "program":
                program(*whole)
            else:
                program("plan", "--out", made[face] + ".json", *whole)
                program("work", made[face] + ".json", "--quiet")
                program("finish", made[face] + ".json")
        made["python"] = case.replace(" ", "_") + "_python"
        call = getattr(tessera, {"rechunk": "copy"}.get(name, name))
        call(*((made["python"], source) if name == "calc" else (source, made["python"])), **keywords)
        made["python's job"] = case.replace(" ", "_") + "_pythons_job"
        job = tessera.plan(command, source, made["python's job"], out=made["python's job"] + ".json", **keywords)
        for unit in job.units():
            job.run(unit)
        assert job.finish()["finished"], case
        wanted = facts(made["program"])
        for face, path in made.items():
            assert facts(path) == wanted, f"{case}: {face}: {facts(path)}, the program: {wanted}"


# Of each function: its recipe, the class of its further options, and the keywords of the recipe's rows that it leaves out:
# the source, which has another name; what the function says itself; and what only copies of files and groups have.
OF_COPIES = {"dry_run", "resume", "object_strings", "drop_attributes", "skip_unreadable", "unlimited"}
KEYWORDS = {
    "copy": ("copy", "CopyOptions", {"array"}),
    "convert": ("copy", "ConversionOptions", {"array"}),
    "calc": ("calc", "ComputedOptions", {"dry_run", "reverse_dims"}),
    "reduce": ("reduce", "ComputedOptions", {"dry_run", "reverse_dims"}),
    "coarsen": ("coarsen", "ComputedOptions", {"dry_run", "reverse_dims", "as_stored"}),
    "regrid": ("regrid", "ComputedOptions", {"dry_run", "reverse_dims"}),
    "stack": ("join", "JoiningOptions", {"new_axis", "keep_ones", *OF_COPIES}),
    "concat": ("join", "JoiningOptions", {"new_axis", "keep_ones", *OF_COPIES}),
    "pyramid": ("pyramid", "LevelOptions",
                {"dtype", "cast", "reverse_dims", "shards", "dims", "separator", "structures", "order", "deflate"}),
}


def keywords_of_rows(recipe):
    """As the error about a keyword that there is not names them."""
    asked = {"do": recipe, "no_such_keyword": 1}
    work = tessera._tessera.WorkOptions()
    try:
        if recipe == "copy":
            place = tessera._tessera.PlaceOptions(True)
            tessera._tessera.copy(asked, None, place, "never", place, work)
        else:
            tessera._tessera.make(asked, None, work)
    except TypeError as error:
        return set(str(error).split("there are: ")[1].split(", "))
    raise AssertionError(f"{recipe} takes any keyword")


def test_types_have_the_keywords_of_the_rows():
    """The signatures and the classes of options are written by hand, for type checkers; what is taken are the rows."""
    for name, (recipe, options, left_out) in KEYWORDS.items():
        function = getattr(tessera, name)
        typed = set(inspect.signature(function).parameters) | set(hints_of_options(getattr(tessera._options, options)))
        assert keywords_of_rows(recipe) - typed == left_out, f"{name}: {keywords_of_rows(recipe) - typed}"
        for keyword in left_out:
            assert keyword not in typed, f"{name}: {keyword} is offered"


def test_open_arrays_are_what_their_paths_are():
    data_set()
    array = tessera.open("g/t")
    for how, keywords in ("mean", {"axis": "time"}), ("max", {"by": "month"}), ("sum", {"axis": "lon", "by": tessera.open("g/labels")}):
        wanted = tessera.reduce("g/t", how=how, **{key: "g/labels" if isinstance(value, tessera.Array) else value
                                                    for key, value in keywords.items()})
        np.testing.assert_array_equal(tessera.reduce(array, how=how, **keywords), wanted)
    np.testing.assert_array_equal(tessera.concat([array, "g/t"], axis="lat"), np.concatenate([array[:], array[:]], axis=1))


def test_results_of_joins_keep_what_parts_have():
    data_set()
    tessera.concat(["g/t", "g/t"], "joined.zarr", axis="time")
    joined = tessera.open("joined.zarr")
    assert joined.dims == ("time", "lat", "lon") and joined.fill_value == -9 and dict(joined.attrs) == {"units": "K", "scale": 2}
    tessera.stack(["g/t", "g/t"], "joined.nc", axis=0)
    assert tessera.open("joined.nc::t").shape == (2, 45, 6, 8) and tessera.open("joined.nc::lat").shape == (6,)


def test_what_cannot_be_planned_is_refused_in_words():
    data_set()
    for source, keywords, kind, says in ((np.zeros(3), {"how": "mean"}, tessera.InvalidArgument, "in memory"),
                                         ("g/t", {"how": "mean", "axis": "depth"}, tessera.InvalidArgument, "axis: "),
                                         ("g/t", {"how": "average"}, tessera.InvalidArgument, "how: "),
                                         ("g/t", {"how": "mean", "wide": 1}, TypeError, "wide")):
        with module.raises(kind, says):
            tessera.plan("reduce", source, "no.zarr", out="no.json", **keywords)
        assert not os.path.exists("no.zarr") and not os.path.exists("no.json")
    for option in "dry_run", "resume", "link", "verify":
        with module.raises(tessera.InvalidArgument, f"{option}: it cannot be planned"):
            tessera.plan("copy", "g/t", "no.zarr", out="no.json", **{option: True})
    assert not os.path.exists("no.zarr") and not os.path.exists("no.json")


def test_single_elements_of_each_face():
    data_set()
    program("get", "g/t", "--points", "points.npy", "--out", "picked.npy")
    tessera.copy("g/t", "python.npy", points="points.npy")
    job = tessera.plan("copy", "g/t", "job.zarr", out="job.json", points="points.npy")
    for unit in job.units():
        job.run(unit)
    assert job.finish()["finished"]
    values = tessera.load("g/t")
    wanted = [values[0, 0, 0], values[44, 5, 7], values[44, 2, 3], values[7, 1, 6]]
    for place in "picked.npy", "python.npy", "job.zarr":
        np.testing.assert_array_equal(tessera.load(place), wanted)


def test_patterns_are_parts():
    for n in range(12):
        np.save(f"day-{n}.npy", np.full(2, n))
    for arrays in ["day-*.npy"], "day-*.npy", ["day-[0-9].npy", "day-1?.npy"]:
        np.testing.assert_array_equal(tessera.stack(arrays)[:, 0], np.arange(12))
    tessera.concat(["day-*.npy"], "days.zarr", chunks=5)
    program("concat", "day-*.npy", "same.zarr", "--chunks", "5")
    assert facts("days.zarr") == facts("same.zarr")
    with module.raises(tessera.NotFound, "night-"):
        tessera.stack(["night-*.npy"])


if __name__ == "__main__":
    module.run(dict(globals()))
