"""TIFF, GeoTIFF and COG through the program, beside GDAL; stacks and OME-TIFF by a writer of a few lines."""

import itertools
import json
import shutil
import struct
import subprocess
import unittest
import zlib

import numpy as np

import program
from program import ProgramTest, chosen, zarr

try:
    import fsspec
except ImportError:
    fsspec = None

ENVI = {"u1": 1, "<i2": 2, "<i4": 3, "<f4": 4, "<f8": 5, "<c8": 6, "<c16": 9, "<u2": 12, "<u4": 13}


def tiff(pages, order="<", big=False, subfiles=None, tags=None):
    """A TIFF of strips: each page an array (height, width) or (height, width, samples). `tags`: tag → (type, values) of the
    first page. `subfiles`: the kind of each page."""
    sizes = {1: "B", 2: "B", 3: "H", 4: "I", 12: "d", 16: "Q"}
    word = "Q" if big else "I"
    out = bytearray((b"II" if order == "<" else b"MM") + struct.pack(order + "H", 43 if big else 42))
    if big:
        out += struct.pack(order + "HH", 8, 0)
    link = len(out)
    out += struct.pack(order + word, 0)
    for n, page in enumerate(pages):
        kind = {"u": 1, "i": 2, "f": 3, "c": 6}[page.dtype.kind]
        samples = page.shape[2] if page.ndim == 3 else 1
        strip = len(out)
        out += page.astype(page.dtype.newbyteorder(order)).tobytes()
        entries = {256: (4, [page.shape[1]]), 257: (4, [page.shape[0]]), 258: (3, [page.dtype.itemsize * 8] * samples),
                   259: (3, [1]), 262: (3, [1]), 273: (16 if big else 4, [strip]), 277: (3, [samples]),
                   278: (4, [page.shape[0]]), 279: (16 if big else 4, [page.nbytes]), 339: (3, [kind] * samples)}
        if subfiles:
            entries[254] = (4, [subfiles[n]])
        if n == 0:
            entries |= tags or {}
        at = len(out)
        out[link:link + struct.calcsize(word)] = struct.pack(order + word, at)
        behind = at + (8 if big else 2) + len(entries) * (20 if big else 12) + struct.calcsize(word)
        directory, values = struct.pack(order + ("Q" if big else "H"), len(entries)), b""
        for tag in sorted(entries):
            code, numbers = entries[tag]
            raw = struct.pack(order + sizes[code] * len(numbers), *numbers)
            directory += struct.pack(order + "HH" + word, tag, code, len(numbers))
            if len(raw) <= struct.calcsize(word):
                directory += raw.ljust(struct.calcsize(word), b"\0")
            else:
                directory += struct.pack(order + word, behind + len(values))
                values += raw
        link = len(out) + len(directory)
        out += directory + struct.pack(order + word, 0) + values
    return bytes(out)


def text(value):
    return 2, list(value.encode() + b"\0")


class Tiff(ProgramTest):
    def write(self, name, *arguments, **options):
        (self.folder / name).write_bytes(tiff(*arguments, **options))
        return name

    def attributes(self, path):
        return self.tessera_json("info", path)["header"]["attributes"]

    def test_types_orders_and_sizes_of_words(self):
        kinds = "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "c8", "c16"
        for order, big, kind in chosen(itertools.product("<>", (False, True), kinds)):
            page = (np.arange(7 * 5).reshape(7, 5) % 100).astype(kind)
            with self.subTest(order=order, big=big, kind=kind):
                self.write("a.tif", [page], order, big)
                info = self.tessera_json("info", "a.tif")
                self.assertEqual((info["format"], info["shape"], info["header"]["big"]), ("tiff", [7, 5], big))
                self.tessera("copy", "a.tif", "a.npy", "--overwrite", "--quiet")
                np.testing.assert_array_equal(np.load(self.folder / "a.npy"), page)

    def test_pages_are_an_axis(self):
        stack = np.arange(4 * 6 * 5, dtype="u2").reshape(4, 6, 5)
        self.write("s.tif", stack)
        self.assertEqual(self.tessera_json("info", "s.tif")["shape"], [4, 6, 5])
        self.assertEqual(self.attributes("s.tif")["_ARRAY_DIMENSIONS"], ["page", "y", "x"])
        self.tessera("copy", "s.tif", "s.zarr", "--quiet")
        np.testing.assert_array_equal(self.exported("s.zarr"), stack)
        self.tessera("copy", "s.tif", "part.npy", "--sel", "1:3, 2:, 4", "--quiet")
        np.testing.assert_array_equal(np.load(self.folder / "part.npy"), stack[1:3, 2:, 4])
        self.tessera("copy", "s.zarr", "back.tif", "--quiet")
        np.testing.assert_array_equal(self.exported("back.tif"), stack)

    def test_pages_of_different_sizes_are_several(self):
        self.write("m.tif", [np.zeros((4, 4), "u1"), np.ones((2, 3), "u1")])
        self.refused("copy", "m.tif", "m.npy", says=["series/1", "series/2"])
        self.tessera("copy", "m.tif", "m.zarr", "--quiet")
        self.assertEqual(self.exported("m.zarr/series/2").tolist(), [[1, 1, 1], [1, 1, 1]])
        self.tessera("verify", "m.tif")

    def test_ome_xml_names_the_axes(self):
        planes = np.arange(6 * 4 * 5, dtype="u2").reshape(6, 4, 5)
        xml = ('<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0">'
               '<Pixels ID="P" DimensionOrder="XYCTZ" Type="uint16" SizeX="5" SizeY="4" SizeZ="1" SizeC="2" SizeT="3">'
               "{}</Pixels></Image></OME>")
        self.write("o.ome.tif", planes, tags={270: text(xml.format("<TiffData/>"))})
        self.assertEqual(self.attributes("o.ome.tif")["_ARRAY_DIMENSIONS"], ["t", "c", "y", "x"])
        self.assertIn("<OME", self.attributes("o.ome.tif")["tiff"]["ImageDescription"])
        np.testing.assert_array_equal(self.exported("o.ome.tif"), planes.reshape(3, 2, 4, 5))
        # Planes in the reverse order.
        data = "".join(f'<TiffData IFD="{n}" FirstT="{(5 - n) // 2}" FirstC="{(5 - n) % 2}" PlaneCount="1"/>'
                       for n in range(6))
        self.write("o.ome.tif", planes, tags={270: text(xml.format(data))})
        np.testing.assert_array_equal(self.exported("o.ome.tif"), planes[::-1].reshape(3, 2, 4, 5))
        # The description goes on with the planes.
        self.tessera("copy", "o.ome.tif", "o.zarr", "--quiet")
        self.tessera("copy", "o.zarr", "back.tif", "--quiet")
        self.assertEqual(self.tessera_json("info", "back.tif")["shape"], [3, 2, 4, 5])

    def test_more_dimensions_come_back(self):
        array = np.arange(2 * 3 * 20 * 18, dtype="<f4").reshape(2, 3, 20, 18)
        self.save("a.npy", array)
        self.tessera("copy", "a.npy", "a.tif", "--deflate", "5", "--quiet")
        np.testing.assert_array_equal(self.exported("a.tif"), array)

    def test_packed_bits(self):
        rows = np.random.default_rng(1).integers(0, 2, (5, 19)).astype("u1")
        packed = np.packbits(rows, axis=1)
        for bits, expected in (1, rows), (4, None):
            width = 19 if bits == 1 else 6
            self.write("b.tif", [packed], tags={256: (4, [width]), 258: (3, [bits])})
            if expected is None:
                expected = np.stack([packed >> 4, packed & 15], 2).reshape(5, 6)
            np.testing.assert_array_equal(self.exported("b.tif"), expected)

    def test_a_stack_of_imagej_in_one_directory(self):
        """Beyond 4 GiB ImageJ writes no other directories: the images follow the first."""
        stack = np.arange(4 * 5 * 6, dtype="<u2").reshape(4, 5, 6)
        for order in "<", ">":
            for images, wanted, names in ((4, stack, ["z", "y", "x"]), (500, stack[0], ["y", "x"])):
                described = {270: text(f"ImageJ=1.53\nimages={images}\nslices={images}\n")}
                whole = tiff([stack.reshape(20, 6)], order, tags=described | {257: (4, [5]), 278: (4, [5]), 279: (4, [60])})
                (self.folder / "i.tif").write_bytes(whole)
                np.testing.assert_array_equal(self.exported("i.tif"), wanted)
                self.assertEqual(self.attributes("i.tif")["_ARRAY_DIMENSIONS"], names)

    def test_a_single_strip_without_a_size(self):
        """libtiff reads it, as long as it lies somewhere; one that lies nowhere was never written."""
        page = np.arange(30, dtype="<u2").reshape(5, 6)
        for place, wanted in (({}, page), ({273: (4, [0])}, page * 0 + 7)):
            self.write("s.tif", [page], tags={279: (4, [0]), 42113: text("7")} | place)
            np.testing.assert_array_equal(self.exported("s.tif"), wanted)

    def test_planar_configurations(self):
        page = np.zeros((5, 6, 3), "u1")
        for planar in (0, 3):
            self.write("p.tif", [page], tags={284: (3, [planar])})
            self.refused("get", "p.tif", says=["284 (PlanarConfiguration)", f"says {planar}"])

    def test_nodata_as_others_spell_it(self):
        page = np.array([[1, -9999, -3.4028234663852886e38, np.nan]], "<f4")
        for spelt, value in (("-9999,0", -9999.0), ("-3.40282e+38", -3.4028234663852886e38), (" -9999 ", -9999.0)):
            self.write("n.tif", [page], tags={42113: text(spelt)})
            self.assertAlmostEqual(self.attributes("n.tif")["_FillValue"] / value, 1, 6)
            self.tessera("copy", "n.tif", "n.zarr", "--quiet", "--overwrite")
            self.tessera("copy", "n.zarr", "back.tif", "--quiet", "--overwrite")
            self.assertEqual(self.attributes("back.tif"), self.attributes("n.tif"))
        self.write("n.tif", [page], tags={42113: text("-1.#IND")})
        self.assertEqual(self.attributes("n.tif")["_FillValue"], "NaN")
        self.write("n.tif", [page], tags={42113: text("none")})
        self.assertNotIn("_FillValue", self.attributes("n.tif"))

    def test_numbers_that_gdal_packs(self):
        page = np.array([[1, -9, 300]], "<i2")
        item = '  <Item name="{}" sample="{}" role="{}">{}</Item>\n'

        def metadata(*bands):
            items = "".join(item.format("OFFSET", n, "offset", offset) + item.format("SCALE", n, "scale", scale)
                            for n, (scale, offset) in enumerate(bands))
            return text(f'<GDALMetadata>\n  <Item name="A">x</Item>\n{items}</GDALMetadata>\n')
        self.write("n.tif", [page], tags={42112: metadata((0.5, 10)), 42113: text("-9")})
        self.assertEqual(json.loads(self.tessera("get", "n.tif", "--json")), [[10.5, None, 160.0]])
        self.assertEqual(json.loads(self.tessera("get", "n.tif", "--raw", "--json")), page.tolist())
        attributes = self.attributes("n.tif")
        self.assertEqual((attributes["scale_factor"], attributes["add_offset"]), (0.5, 10.0))
        self.assertEqual(attributes["tiff"]["GDAL_METADATA"].count("<Item"), 1)
        self.tessera("copy", "n.tif", "n.zarr", "--quiet")
        self.tessera("copy", "n.zarr", "back.tif", "--quiet")
        self.assertEqual(self.attributes("back.tif"), attributes)
        self.tessera("calc", "twice.tif", "n * 2", "n=n.tif", "--quiet")
        self.assertNotIn("scale_factor", self.attributes("twice.tif"))
        self.assertEqual(json.loads(self.tessera("get", "twice.tif", "--json")), [[21.0, None, 320.0]])
        if shutil.which("gdalinfo"):
            for name, wanted in (("n.tif", 1), ("back.tif", 1), ("twice.tif", 0)):
                told = subprocess.run(["gdalinfo", name], cwd=self.folder, capture_output=True, text=True, check=True).stdout
                self.assertEqual(told.count("Offset: 10,   Scale:0.5"), wanted)
                self.assertEqual("A=x" in told, wanted == 1)
        # Bands that are packed in two ways stay codes, and keep what GDAL says of them.
        two = np.stack([page, page], 2)
        for bands in ((0.5, 10), (0.5, 10)), ((0.5, 10), (0.5, 11)):
            self.write("b.tif", [two], tags={42112: metadata(*bands)})
            self.assertEqual("scale_factor" in self.attributes("b.tif"), bands[0] == bands[1])
            self.tessera("copy", "b.tif", "b.zarr", "--quiet", "--overwrite")
            self.tessera("copy", "b.zarr", "c.tif", "--quiet", "--overwrite")
            self.assertEqual(self.attributes("c.tif"), self.attributes("b.tif"))

    def test_overviews_are_members(self):
        base = np.arange(64, dtype="u1").reshape(8, 8)
        self.write("p.tif", [base, base[::2, ::2], base[::4, ::4]], subfiles=[0, 1, 1])
        np.testing.assert_array_equal(self.exported("p.tif"), base)
        np.testing.assert_array_equal(self.exported("p.tif::overview/2"), base[::4, ::4])
        self.refused("get", "p.tif::overview/3", says="overview/3")
        self.assertIn("::overview/1", self.tessera("info", "p.tif"))

    def test_a_pyramid_becomes_overviews(self):
        base = np.arange(1200 * 700, dtype="<u2").reshape(1200, 700)
        self.save("a.npy", base)
        self.tessera("pyramid", "a.npy", "p.zarr", "--quiet")
        self.tessera("copy", "p.zarr", "p.tif", "--deflate", "1", "--quiet")
        np.testing.assert_array_equal(self.exported("p.tif"), base)
        for level in 1, 2:
            np.testing.assert_array_equal(self.exported(f"p.tif::overview/{level}"), self.exported(f"p.zarr/{level}"))
        self.tessera("import", "a.npy", "g/a", "--quiet")
        self.tessera("import", "a.npy", "g/b", "--quiet")
        self.refused("copy", "g", "g.tif", says=["pyramid", "a, b"])
        self.assertFalse((self.folder / "g.tif").exists())

    def test_damage_is_named(self):
        whole = tiff([np.arange(12, dtype="u1").reshape(3, 4)])
        cut = whole[:40]
        for damaged, says in (cut, "directory"), (whole[:4] + b"\xff\xff\xff\x7f" + whole[8:], "beyond the end"):
            (self.folder / "d.tif").write_bytes(damaged)
            self.refused("copy", "d.tif", "d.npy", says=["d.tif", says])
        # A directory that follows itself.
        at = struct.unpack("<I", whole[4:8])[0]
        count = struct.unpack("<H", whole[at:at + 2])[0]
        end = at + 2 + 12 * count
        (self.folder / "d.tif").write_bytes(whole[:end] + struct.pack("<I", at) + whole[end + 4:])
        self.refused("info", "d.tif", says="follows itself")
        self.write("d.tif", [np.zeros((3, 4), "u1")], tags={256: (4, [2**31 - 1]), 257: (4, [2**31 - 1])})
        self.refused("copy", "d.tif", "d.zarr", says="d.tif")
        self.write("d.tif", [np.zeros((3, 4), "u1")], tags={258: (3, [24])})
        self.refused("copy", "d.tif", "d.npy", says="24 bits")

    def test_what_it_cannot_hold_is_refused(self):
        self.save("t.npy", np.array(["a", "b"]).reshape(1, 2))
        self.refused("copy", "t.npy", "t.tif", says="<U1")
        self.save("l.npy", np.arange(3))
        self.refused("copy", "l.npy", "l.tif", says="(height, width)")
        self.assertFalse((self.folder / "l.tif").exists() or (self.folder / "t.tif").exists())

    def test_within_the_memory_budget(self):
        self.tessera("create", "big.zarr", "--shape", "9000,9000", "--dtype", "<f4", "--fill", "1.5", "--quiet")
        self.tessera("copy", "big.zarr", "big.tif", "--max-memory", "48M", "--deflate", "1", "--quiet")
        self.tessera("copy", "big.tif", "again.zarr", "--max-memory", "48M", "--quiet")
        self.tessera("diff", "big.zarr", "again.zarr")


@unittest.skipUnless(shutil.which("gdal_translate"), "GDAL is not installed")
class BesideGdal(ProgramTest):
    def gdal(self, *words):
        return subprocess.run(list(map(str, words)), cwd=self.folder, check=True, capture_output=True, text=True).stdout

    def envi(self, name, bands):
        """A file that GDAL reads without any library: (bands, height, width)."""
        count, height, width = bands.shape
        (self.folder / name).write_bytes(bands.tobytes())
        kind = ENVI[bands.dtype.newbyteorder("<").str.replace("|", "")]
        (self.folder / f"{name}.hdr").write_text(
            f"ENVI\nsamples = {width}\nlines = {height}\nbands = {count}\nheader offset = 0\ndata type = {kind}\n"
            "interleave = bsq\nbyte order = 0\n")
        return name

    def from_gdal(self, path, dtype, shape):
        self.gdal("gdal_translate", "-q", "-of", "ENVI", "-co", "INTERLEAVE=BSQ", path, "back.img")
        return np.fromfile(self.folder / "back.img", dtype).reshape(shape)

    def test_what_gdal_writes(self):
        rng = np.random.default_rng(38)
        available = self.gdal("gdalinfo", "--format", "GTiff")
        cases = 0
        for kind in ENVI:
            for options in (["COMPRESS=NONE"], ["COMPRESS=LZW", "PREDICTOR=2"], ["COMPRESS=DEFLATE", "TILED=YES"],
                            ["COMPRESS=ZSTD", "TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=32"], ["COMPRESS=PACKBITS"],
                            ["COMPRESS=DEFLATE", "PREDICTOR=3"], ["ENDIANNESS=BIG"],
                            ["ENDIANNESS=BIG", "COMPRESS=LZW"], ["BIGTIFF=YES", "SPARSE_OK=TRUE", "TILED=YES"]):
                predictor = next((o for o in options if o.startswith("PREDICTOR")), "")
                if (predictor.endswith("3") and "f" not in kind) or (predictor.endswith("2") and kind[-1] in "68"):
                    continue
                if options[0].removeprefix("COMPRESS=") not in available and "COMPRESS" in options[0]:
                    continue
                for interleave in "PIXEL", "BAND":
                    bands = rng.integers(0, 50, (3, 75, 110)).astype(kind)
                    bands[:, 32:, 64:] = 0
                    self.envi("in.img", bands)
                    words = [w for o in [*options, f"INTERLEAVE={interleave}"] for w in ("-co", o)]
                    self.gdal("gdal_translate", "-q", "-of", "GTiff", *words, "in.img", "g.tif")
                    with self.subTest(kind=kind, options=options, interleave=interleave):
                        got = self.exported("g.tif")
                        expected = np.moveaxis(bands, 0, 2) if interleave == "PIXEL" else bands
                        np.testing.assert_array_equal(got, expected)
                        cases += 1
        self.assertGreater(cases, 100)

    def test_references_to_what_gdal_writes(self):
        """Tiles that Zarr can say are read where they lie, here and by zarr-python; others are refused by name."""
        rng = np.random.default_rng(39)
        tiled = ["TILED=YES", "BLOCKXSIZE=64", "BLOCKYSIZE=32"]
        cases = ([([*tiled, *more], None) for more in ([], ["COMPRESS=DEFLATE"], ["COMPRESS=ZSTD"], ["ENDIANNESS=BIG"],
                                                       ["BIGTIFF=YES", "SPARSE_OK=TRUE", "COMPRESS=DEFLATE"])] +
                 [(["BLOCKYSIZE=25"], None), (["BLOCKYSIZE=40"], "its last strip is short"),
                  ([*tiled, "COMPRESS=DEFLATE", "PREDICTOR=2"], "predictor 2"), ([*tiled, "COMPRESS=LZW"], "compression 5"),
                  ([*tiled, "COMPRESS=PACKBITS"], "compression 32773"), ([*tiled, "NBITS=4"], "elements of 4 bits")])
        available = self.gdal("gdalinfo", "--format", "GTiff")
        for options, refused in cases:
            if any(o.startswith("COMPRESS=") and o[9:] not in available for o in options):
                continue
            for interleave in "PIXEL", "BAND":
                bands = rng.integers(1, 15, (3, 75, 110)).astype("u1" if "NBITS=4" in options else "<u2")
                bands[:, 32:64, 64:] = 0
                self.envi("in.img", bands)
                words = [w for o in [*options, f"INTERLEAVE={interleave}"] for w in ("-co", o)]
                self.gdal("gdal_translate", "-q", "-of", "GTiff", *words, "in.img", "g.tif")
                with self.subTest(options=options, interleave=interleave):
                    if refused:
                        self.refused("refs", "g.tif", says=["g.tif", refused])
                        continue
                    (self.folder / "g.json").write_text(self.tessera("refs", "g.tif"))
                    refs = json.loads((self.folder / "g.json").read_text())["refs"]
                    empty = "1.1.0" if interleave == "PIXEL" else "0.1.1"
                    self.assertEqual(empty in refs, "SPARSE_OK=TRUE" not in options and "BLOCKYSIZE=25" not in options)
                    expected = np.moveaxis(bands, 0, 2) if interleave == "PIXEL" else bands
                    np.testing.assert_array_equal(self.exported("g.json"), expected)
                    # Debian's numcodecs reads no zstd without its size, its fsspec no chunk that is missing.
                    if fsspec is not None and "COMPRESS=ZSTD" not in options and empty in refs:
                        store = fsspec.filesystem("reference", fo=self.path("g.json"), skip_instance_cache=True).get_mapper("")
                        np.testing.assert_array_equal(zarr.open(store, "r")[...], expected)

    def test_what_gdal_reads(self):
        for kind in ENVI:
            for level in 0, 6:
                bands = np.random.default_rng(3).integers(0, 200, (2, 530, 600)).astype(kind)
                self.save("b.npy", bands[0])
                self.tessera("copy", "b.npy", "w.tif", "--overwrite", "--deflate", str(level), "--quiet")
                np.testing.assert_array_equal(self.from_gdal("w.tif", kind, (530, 600)), bands[0])
        colours = np.random.default_rng(4).integers(0, 255, (40, 30, 4)).astype("u1")
        self.save("c.npy", colours)
        self.tessera("copy", "c.npy", "c.tif", "--quiet")
        self.assertIn("ColorInterp=Alpha", self.gdal("gdalinfo", "c.tif"))
        np.testing.assert_array_equal(self.from_gdal("c.tif", "u1", (4, 40, 30)), np.moveaxis(colours, 2, 0))

    def test_georeference_goes_through_zarr(self):
        bands = np.arange(20 * 30, dtype="<i2").reshape(1, 20, 30)
        self.envi("in.img", bands)
        self.gdal("gdal_translate", "-q", "-a_srs", "EPSG:32633", "-a_ullr", 500000, 5000000, 500300, 4999800,
                  "-a_nodata", -9999, "in.img", "g.tif")
        self.tessera("copy", "g.tif", "g.zarr", "--quiet")
        attributes = json.loads(self.tessera("attrs", "g.zarr"))
        self.assertEqual(attributes["spatial:transform"], [10, 0, 500000, 0, -10, 5000000])
        self.assertEqual(attributes["proj:code"], "EPSG:32633")
        self.tessera("copy", "g.zarr", "w.tif", "--quiet")
        before, after = (json.loads(self.gdal("gdalinfo", "-json", f)) for f in ("g.tif", "w.tif"))
        for what in "geoTransform", "coordinateSystem", "size":
            self.assertEqual(before[what], after[what])
        self.assertEqual(after["bands"][0]["noDataValue"], -9999)
        # A part lies elsewhere.
        self.tessera("copy", "g.zarr", "part.tif", "--sel", "5:, :", "--quiet")

    def test_cloud_optimised(self):
        bands = np.arange(600 * 900, dtype="<u2").reshape(1, 600, 900)
        self.envi("in.img", bands)
        self.gdal("gdal_translate", "-q", "-of", "COG", "-co", "BLOCKSIZE=256", "in.img", "c.tif")
        np.testing.assert_array_equal(self.exported("c.tif"), bands[0])
        self.assertEqual(self.tessera_json("info", "c.tif::overview/1")["shape"], [300, 450])
        self.tessera("pyramid", "c.tif", "p.zarr", "--quiet")
        self.tessera("copy", "p.zarr", "w.tif", "--deflate", "6", "--quiet")
        self.assertIn("Overviews: 450x300", self.gdal("gdalinfo", "w.tif"))


if __name__ == "__main__":
    program.main()
