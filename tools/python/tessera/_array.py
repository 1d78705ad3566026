"""tessera.Array: a chunked array, or an array file, as NumPy sees it; and what is made from one, an edit and a cache."""

from __future__ import annotations

import os
import uuid
from typing import Any, Iterator, Optional, Sequence, Union

import numpy as np

from . import _dask, _tessera
from ._closing import Committing
from ._indexing import Decoded, Indexable
from ._lazy import Lazy, View
from ._options import ProgressCallback, memory, work
from ._picture import Picture, selection_text
from .types import ArrayInfo, ChunkStatistics
from ._sel import sel_text
from ._serve import Shown, show
from ._types import Values

_MA: Any = np.ma  # of which some NumPy has no types


def _with_none(values: Any, lacks: Values) -> Any:
    """Values of which those that `lacks` names are none."""
    if values.dtype.kind not in "fMm":
        return _MA.masked_array(values, lacks)
    values[lacks] = "NaT" if values.dtype.kind in "Mm" else np.nan
    return values


def _none_in(values: Any, marked: bool) -> Any:
    """Where values are missing: `marked` is the least integer, else NaN or NaT."""
    if marked:
        return values == np.iinfo("i8").min
    if values.dtype.kind == "V":  # bfloat16
        return (values.view("u2") & 0x7FFF) > 0x7F80
    return np.isnat(values) if values.dtype.kind in "mM" else np.isnan(values)


class DecodedArray(Decoded):
    """An array by what its elements stand for; see :attr:`Array.decoded`."""

    def __init__(self, array: "Array"):
        super().__init__(array)
        self._whole = array

    def append(self, values: Any, axis: Union[int, str] = 0) -> int:
        """As :meth:`Array.append`, of values that are packed as the array's are.

        A value that does not fit, or would be stored as a marker, raises InvalidArgument, and nothing is appended.
        """
        if self._decoded is None:
            return self._whole.append(values, axis)
        shape = np.shape(values)
        return self._whole.append(self._codes(values, np.zeros(shape, self._whole.dtype)), axis)


class Array(Indexable):
    """An array whose elements lie in chunks or in a file, and are read and written by indexing.

    Arrays are opened by :func:`tessera.open` and made by :func:`tessera.create`. Indexing reads and assigns as NumPy
    does: by integers, slices, lists, arrays and masks. A read returns an array in memory; an assignment is written when
    it returns. Threads and processes may use one array at once: writers of one chunk take turns.

    Examples
    --------
    >>> a = tessera.create("grid.zarr", shape=(4, 6), dtype="<i4", chunks=(2, 3), fill_value=7)
    >>> a[1:3, ::2] = [[1, 2, 3], [4, 5, 6]]
    >>> a[1]
    array([1, 7, 2, 7, 3, 7], dtype=int32)
    >>> a[[1, 2], [0, 4]]
    array([1, 6], dtype=int32)
    >>> a[a[:] < 3] = 0
    >>> a[1]
    array([0, 7, 0, 7, 3, 7], dtype=int32)
    """

    def show(self, *, height: int = 600, threads: int = 0, max_memory: Union[int, str] = 0) -> Union[Shown, Picture]:
        """The page of ``tessera serve`` in a notebook: pictures to zoom into, tables, chunks and details.

        Serves this array to the browser on this machine, until the returned object is closed or nothing refers to it.
        Where there can be no server, because the array lies in memory or this build has none, the result is a picture
        as of :meth:`view`.

        Parameters
        ----------
        height : int
            Of the frame, in pixels.
        threads, max_memory
            As of :func:`tessera.serve`.
        """
        return show(self, height, threads=threads, max_memory=max_memory)

    # ---- reading

    @property
    def decoded(self) -> "DecodedArray":
        """The same array by what its elements stand for, for reading, assigning and appending; ``a[...]`` are the stored codes.

        Packed numbers are unpacked, missing ones NaN (masked among integers of 64 bits), and times datetimes. Assigning
        packs, halves to even; a value that does not fit, or would be stored as a marker, raises InvalidArgument.

        Examples
        --------
        >>> a = tessera.create("packed.zarr", shape=3, dtype="<i2", fill_value=0, overwrite=True,
        ...                    attrs={"scale_factor": 0.5, "_FillValue": -1})
        >>> a.decoded[...] = [1.5, np.nan, 2]
        >>> a[...]
        array([ 3, -1,  4], dtype=int16)
        >>> a.decoded.append([2.5]), a.decoded[2:]
        (3, array([2. , 2.5]))
        """
        return DecodedArray(self)

    @property
    def lazy(self) -> Lazy:
        """Parts of the array without reading: ``a.lazy[::2, 5]`` is a :class:`View`, which reads and assigns by keys as this does."""
        return Lazy(View._whole(self))

    @property
    def T(self) -> View:
        """The array with its dimensions in reverse, without reading; see :class:`View`."""
        return View._whole(self).T

    def sel(self, text: str = "", *, method: Optional[str] = None, **values: object) -> Any:
        """Read by the names of dimensions and the values of their coordinates, as xarray's ``sel``.

        The coordinate of a dimension is the one-dimensional array of that name in the array's group. Times of the CF
        conventions are decoded. A slice of values includes both ends; longitudes go around the earth, so that
        ``lon=slice(-10, 40)`` of 0 to 359 takes 350 to 359 and 0 to 40. Where there is no
        coordinate, values are refused: ``a.sel("z@4:9")`` takes indices.

        Parameters
        ----------
        text : str, optional
            The selection in the program's notation: ``"time=2020-01:2020-06, lat~45, z@4:9"``.
        method : {"nearest"}, optional
            Take the nearest value where the coordinate lacks the given one.
        **values
            A value or a slice of values for each dimension that is selected from. Times are text or datetimes;
            ``time="2020-01"`` is the whole month.

        Examples
        --------
        >>> g = tessera.create_group("weather.zarr")
        >>> a = g.create_array("t", shape=(3, 4), dtype="f8", fill_value=1, dims=("y", "x"))
        >>> g.create_array("x", data=np.array([10.0, 20.0, 30.0, 40.0]), dims=("x",))[:]
        array([10., 20., 30., 40.])
        >>> a.sel(x=slice(15, 30)).shape, a.sel(x=33, method="nearest").shape
        ((3, 2), (3,))
        """
        key = self._handle.select(sel_text(text, method, values), self._brief)
        plain = all(isinstance(index, (int, slice)) for index in key)
        return self[key] if plain else self.oindex[key]

    def where(self, condition: str, selection: object = "", *, threads: int = 0, max_memory: Union[int, str] = 0,
              progress: ProgressCallback = None) -> Values:
        """The rows of a table that meet a condition, an expression over its fields; or all elements of any other array, masked
        where the condition, in which ``value`` is an element, does not hold.

        Masked are missing elements, too. Chunks in which nothing can match are not read, as in :meth:`find`. `selection`, a
        basic index, takes a part of the array, or of the table before its rows are chosen.

        Examples
        --------
        >>> with open("days.csv", "w") as file:
        ...     _ = file.write("day,close\\n2026-01-01,99\\n2026-01-02,101\\n")
        >>> tessera.open("days.csv").where("close > 100")["close"]
        array([101])
        >>> a = tessera.create("some.zarr", data=np.arange(6).reshape(2, 3), overwrite=True)
        >>> print(a.where("value > 3"))
        [[-- -- --]
         [-- 4 5]]
        """
        found, marked = self._handle.where(condition, selection_text(selection), self._work(threads, max_memory, progress))
        if found.dtype.names is not None:
            return found
        lacks = _none_in(found, marked)
        wanted = self.decoded.dtype
        if marked and wanted != found.dtype:
            found = np.where(lacks, 0, found).astype(wanted)
        masked: Values = _MA.masked_array(found, lacks)
        return masked

    def isel(self, **indices: object) -> Any:
        """Read by the names of dimensions and indices along them, as xarray's ``isel``.

        Examples
        --------
        >>> a = tessera.create("named.zarr", shape=(3, 4), dtype="i4", dims=("y", "x"), overwrite=True)
        >>> a.isel(x=slice(1, 3)).shape
        (3, 2)
        """
        key: list[Any] = [slice(None)] * self.ndim
        for name, index in indices.items():
            key[self._handle.axis(name)] = index
        plain = all(isinstance(index, (int, np.integer, slice)) for index in key)
        return self[tuple(key)] if plain else self.oindex[tuple(key)]

    def find(self, condition: str, selection: object = "", *, raw: bool = False, index: bool = True, threads: int = 0,
             max_memory: Union[int, str] = 0) -> Values:
        """The indices of the elements that meet a condition, a row for each, as :func:`numpy.argwhere` gives them.

        Parameters
        ----------
        condition : str
            An expression as of :func:`tessera.calc`, in which ``value`` is the array: ``"(value > 3) & (value < 5)"``.
            Missing elements and NaN meet no comparison but ``!=``, as in NumPy.
        selection : str or basic index
            Only in this region.
        raw : bool
            Of the stored codes, not of what they stand for.
        index : bool
            Of an array with an index of its chunks (:func:`tessera.index`), do not read chunks in which no element can
            match a comparison with numbers, or several joined by ``&``.

        Examples
        --------
        >>> a = tessera.create("found.zarr", data=np.arange(6).reshape(2, 3), overwrite=True)
        >>> a.find("value > 3").tolist()
        [[1, 1], [1, 2]]
        """
        return _tessera.find(self._handle, condition, selection_text(selection), raw, index, work(threads, max_memory))

    def chunk_stats(self, *, raw: bool = False, index: bool = True, threads: int = 0, max_memory: Union[int, str] = 0,
                    progress: ProgressCallback = None) -> ChunkStatistics:
        """What each chunk amounts to: whether it is stored, its bytes, the least and the greatest of its elements, their mean
        and how many there are; as NumPy arrays in the shape of the grid of chunks.

        Parameters
        ----------
        raw : bool
            Of the stored codes, not of what they stand for.
        index : bool
            Take what an index of the chunks says (:func:`tessera.index`); False: read all. The results are the same.

        Examples
        --------
        >>> a = tessera.create("by_chunk.zarr", data=np.arange(6.0).reshape(2, 3), chunks=(1, 3), overwrite=True)
        >>> found = a.chunk_stats()
        >>> found.max
        array([[2.],
               [5.]])
        >>> np.argwhere(found.max > 4).tolist()
        [[1, 0]]
        """
        found = _tessera.chunk_stats(self._handle, raw, index, self._work(threads, max_memory, progress))
        lacks = found.pop("lacks", None)
        if lacks is not None:
            for name in ("min", "max"):
                found[name] = _with_none(found[name], lacks)
        return ChunkStatistics(**found)

    def view(self, selection: object = "", *, axes: Sequence[Union[int, str]] = (), reduce: Optional[str] = None,
             range: Optional[tuple[Union[float, str], Union[float, str]]] = None, map: str = "viridis",
             missing: Union[float, str] = "auto", size: tuple[int, int] = (960, 720), limit: Union[int, str] = "2G",
             raw: bool = False, threads: int = 0, max_memory: Union[int, str] = 0) -> Picture:
        """A slice as a picture, drawn as by ``tessera view --png``; a notebook displays it.

        It shows what elements stand for: packed numbers unpacked, and coordinates along the axes. Only what the picture
        needs is read, whatever the size of the array.

        Parameters
        ----------
        selection : str or key, optional
            The part to show, by basic indexing: ``"5, ..."`` or ``np.s_[5, ...]``. Dimensions that are not shown are
            taken at their middle.
        axes : sequence of int or str, optional
            The dimensions that are shown, down and across, or one for a line. By default the last two that are longer
            than 1.
        reduce : {"mean", "min", "max", "nearest"}, optional
            How several elements become one value. By default the mean, unless that takes more than `limit`.
        range : (low, high), optional
            Values at the ends of the colours: numbers, or percentiles such as ``("2%", "98%")``.
        map : str
            The colours: "viridis", "plasma", "inferno", "magma", "dusk", "ocean", "forest", "copper", "rose", "grey",
            "diverging", "cyclic" or "labels", each also reversed: "viridis_r".
        missing : float or str
            Elements that are shown differently: a number, "fill", "none" or "auto": those that are marked as missing,
            and the fill value unless it is 0.
        size : (width, height)
            The largest size of the whole picture, in pixels.
        limit : int or str
            Bytes of elements that may be decoded; a slice that would take more is sampled.
        raw : bool
            The stored codes, not what they stand for.

        Examples
        --------
        >>> a = tessera.create("grid.zarr", shape=(40, 60), dtype="<f4")
        >>> a[:20] = 1
        >>> a.view(size=(300, 240))  # doctest: +SKIP
        <tessera.Picture 240×233>
        """
        ends = "" if range is None else ",".join(str(end) for end in range)
        data = _tessera.draw(self._handle, os.path.basename(self._path), selection_text(selection),
                             [str(axis) for axis in axes],
                             reduce or "", ends, map, str(missing), (int(size[0]), int(size[1])), memory(limit),
                             raw, self._work(threads, max_memory))
        return Picture(data)

    def to_dask(self, chunks: object = None, limit: object = None, where: Optional[str] = None) -> Any:
        """A dask array of this array's elements, read block by block when it is computed.

        ``dask.array.store(d, a, lock=False)`` writes a dask array to this one. Threads, processes and workers of a
        cluster need no lock, with blocks of any shape, because writers of one chunk take turns.

        Parameters
        ----------
        chunks : as in :func:`dask.array.from_array`, optional
            Lengths of blocks; by default about `limit` bytes, in multiples of chunks (with shards, of shards).
        limit : int or str, optional
            Bytes of a block; by default dask's ``array.chunk-size``.
        where : str, optional
            A condition as of :meth:`find`: ``"value > 40"``. The blocks are masked arrays of what elements stand for, as
            :meth:`where` returns them, and the shape stays. Blocks in which nothing can match, by the index of chunks and
            what is stored at this moment, are masked as a whole and never read.

        Returns
        -------
        dask.array.Array
        """
        return _dask.to_dask(self, chunks, limit, where)

    def as_zarr(self, zarr_format: Optional[int] = None) -> Any:
        """This array as a ``zarr.Array`` of zarr-python 2 or 3, without a copy.

        Opened with ``"r+"`` and stored as Zarr v2 or v3 in a directory, it can be written, too.

        Parameters
        ----------
        zarr_format : {2, 3}, optional
            The format in which it is shown; see :class:`tessera.zarr.Store`.
        """
        from ._zarr import as_zarr

        return as_zarr(self, zarr_format)

    def __dask_tokenize__(self) -> object:
        return _dask.token(self)

    def iter_chunks(self, shards: bool = False) -> Iterator[tuple[slice, ...]]:
        """The parts of the array that its chunks (or shards) cover, as keys: ``for key in a.iter_chunks(): a[key]``.

        Examples
        --------
        >>> a = tessera.create("grid.zarr", shape=(2, 5), dtype="u1", chunks=(2, 3), overwrite=True)
        >>> list(a.iter_chunks())
        [(slice(0, 2, 1), slice(0, 3, 1)), (slice(0, 2, 1), slice(3, 5, 1))]
        """
        return (self._handle.chunk_key(number, shards) for number in range(self._handle.chunk_count(shards)))

    # ---- writing

    def resize(self, *shape: object) -> None:
        """Grow or shrink along any dimensions. New elements read as the fill; elements outside are deleted.

        Examples
        --------
        >>> a = tessera.create("row.zarr", shape=3, dtype="u1", fill_value=9)
        >>> a.resize(5)
        >>> a[:]
        array([9, 9, 9, 9, 9], dtype=uint8)
        """
        self._require_writable()
        self._handle.resize(shape[0] if len(shape) == 1 else shape, self._brief)

    def append(self, values: Any, axis: Union[int, str] = 0, casting: str = "same_kind") -> int:
        """Write values after the present end along an axis, and grow the array by them.

        Concurrent appends take turns, so that they do not overlap.

        Parameters
        ----------
        values : array_like
            As long as the array along all other axes. Values with one dimension less are one step along `axis`, such as
            a frame.
        axis : int or str
            The axis that grows, by number or name.
        casting : {'no', 'equiv', 'safe', 'same_kind', 'unsafe'}
            The conversions that are allowed, as in :meth:`write`.

        Returns
        -------
        int
            The previous length, which is the index of the first new value.

        Examples
        --------
        >>> series = tessera.create("series.zarr", (0, 2), "<i4", overwrite=True)
        >>> series.append([1, 2]), series.append([[3, 4], [5, 6]]), series.shape
        (0, 1, (3, 2))
        """
        self._require_writable()
        axis = self._handle.axis(axis) if isinstance(axis, str) else axis
        values = self._castable(values, casting)
        if np.ndim(values) == self.ndim - 1:
            values = np.expand_dims(values, axis)
        if np.ndim(values) != self.ndim:
            raise ValueError(f"values have {np.ndim(values)} dimensions, the array has {self.ndim}; one less is one step "
                             f"along axis {axis}")
        return self._handle.append(self._values(values, values.shape, False), axis, self._brief)

    def edit(self, keep_old: bool = True) -> "Edit":
        """A batch of changes that take effect all together or not at all.

        Within ``with``, nobody else sees the changes, and other writers of the array wait. At the end of the block the
        changes take effect, unless an exception leaves it. :func:`tessera.undo` takes the last batch back, unless
        `keep_old` is False.

        Examples
        --------
        >>> a = tessera.create("grid.zarr", shape=4, dtype="<i4", overwrite=True)
        >>> with a.edit() as batch:
        ...     batch[0] = 1
        ...     batch.attrs["units"] = "m"
        >>> a[:], a.attrs["units"]
        (array([1, 0, 0, 0], dtype=int32), 'm')
        """
        self._require_writable()
        return Edit(self, keep_old)

    def cached(self, max_memory: Union[int, str] = "256M") -> "Cached":
        """The same array with its chunks kept decoded in memory, for loops of small reads and writes.

        Within ``with``, each touched chunk is decoded at most once and encoded once. Written values reach the array at
        the end, at ``flush()``, or when their chunk is evicted.

        Examples
        --------
        >>> a = tessera.create("grid.zarr", shape=1000, dtype="<i4", overwrite=True)
        >>> with a.cached() as fast:
        ...     for i in range(1000):
        ...         fast[i] = i
        >>> a[998:]
        array([998, 999], dtype=int32)
        """
        return Cached(self, memory(max_memory))

    # ---- other

    def close(self) -> None:
        """Release what the array holds open, such as the file of an ``.npy``. It is of no use afterwards.

        An array that is not closed does so when it is no longer referenced. ``with tessera.open(path) as a:`` closes it
        at the end of the block.
        """
        _tessera.close(self._handle)

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        step = self.chunks[0] if self.chunks else 1024
        for first in range(0, len(self), step):
            yield from self[first:first + step]

    def __eq__(self, other: object) -> Any:
        if isinstance(other, (bool, int, float, complex, str, bytes, list, tuple, np.generic, np.ndarray)):
            raise TypeError(f"{self._display}: an array in chunks is not compared with values; a[...] == value compares its "
                            "elements")
        return super().__eq__(other)

    __hash__ = Indexable.__hash__


class Changed(Array):
    """An array in a batch."""

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a batch of edits cannot be pickled; pickle the array")

    def __dask_tokenize__(self) -> object:
        return uuid.uuid4().hex


class Edit(Committing, Changed):
    """A batch of changes to an array; see :meth:`Array.edit`."""

    def __init__(self, array: Array, keep_old: bool):
        self._batch = _tessera.EditHandle(array._handle, keep_old=keep_old)
        super().__init__(self._batch.array(), array._path, "r+", array._options)
        self._array = array

    def commit(self) -> int:
        """Make all changes take effect. Returns the number of values that changed."""
        try:
            changed = self._batch.commit()
        finally:
            self.discard()
        self._array.refresh()
        return changed

    def discard(self) -> None:
        """End the batch. Changes that were not committed are dropped."""
        _tessera.close(self._handle)
        self._batch.close()


class Cached(Array):
    """An array with its chunks kept decoded; see :meth:`Array.cached`."""

    def __init__(self, array: Array, budget: int):
        super().__init__(_tessera.open_cache(array._handle, budget), array._path, array._mode,
                         {**array._options, "max_memory": budget + _tessera.usual_memory()})
        self._array = array

    def flush(self) -> None:
        """Write all cached changes to the array."""
        _tessera.flush(self._handle, self._brief)

    def close(self) -> None:
        """Flush, and drop the chunks."""
        self.flush()
        _tessera.close(self._handle)
        self._array.refresh()

    @property
    def chunks(self) -> Optional[tuple[int, ...]]:
        return self._array.chunks

    @property
    def fill_value(self) -> Any:
        return self._array.fill_value

    @property
    def format(self) -> Optional[str]:
        return self._array.format

    @property
    def info(self) -> ArrayInfo:
        return self._array.info

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a cache cannot be pickled; pickle the array")

    def __dask_tokenize__(self) -> object:
        return uuid.uuid4().hex
