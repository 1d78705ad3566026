"""tessera.Array: a chunked array, or an array file, as NumPy sees it."""

from __future__ import annotations

import functools
import html
import os
from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional, Sequence, Union

import numpy as np

from . import _bfloat16, _indexing, _ml_types, _tessera
from ._attrs import Attributes
from ._closing import Closing
from ._converted import Converted, require_copy
from ._describe import array_facts, html_table
from ._options import ProgressCallback, memory, work
from ._picture import Picture, selection_text, thumbnail_html
from ._results import ArrayInfo
from ._sel import sel_text

if TYPE_CHECKING:
    from ._serve import Shown
    from ._editing import Cached, Edit

BRIEF = _tessera.WorkOptions()


class Array(Closing):
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

    def __init__(self, handle: _tessera.ArrayHandle, path: str, mode: str, options: dict[str, Any]):
        self._handle = handle
        self._path = path
        self._mode = mode
        self._options = options
        self._brief = self._work() if "max_memory" in options else BRIEF
        self._dtype = handle.dtype
        self._bfloat16 = _bfloat16.order(handle.dtype_text)
        self._shown = _ml_types.shown(handle)

    def _work(self, threads: int = 0, max_memory: Union[int, str] = 0, progress: ProgressCallback = None) -> Any:
        """How one call works: within the memory that it names, or else the one that open() was given."""
        return work(threads, max_memory or self._options.get("max_memory", 0), progress)

    # ---- what it is

    @property
    def path(self) -> str:
        """The place of the array: a path, ``file.npz::member``, or a place in a zip."""
        return self._path

    @property
    def mode(self) -> str:
        """``"r"`` for reading, ``"r+"`` for reading and writing."""
        return self._mode

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths, as last read; :meth:`refresh` shows a resize by others."""
        return self._handle.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype: ``object`` for text, bytes and sequences of any length.

        bfloat16, small floats and small integers have the dtypes of ml_dtypes, if that is installed; else ``V2``,
        ``float32`` and ``int8`` or ``uint8``.
        """
        return self._dtype if self._shown is None else self._shown

    def _as_shown(self, values: Any) -> Any:
        """Elements as the library has them in memory, as this array's dtype has them."""
        return values if self._shown is None else _ml_types.as_shown(values, self._bfloat16, self._shown)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._handle.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        size = 1
        for length in self._handle.shape:
            size *= length
        return size

    @property
    def nbytes(self) -> int:
        """The bytes of all elements, decoded."""
        return self.size * self._handle.item_size

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self._handle.item_size

    @property
    def chunks(self) -> Optional[tuple[int, ...]]:
        """The lengths of a chunk, which is decoded as a whole; None for a plain file.

        Where chunks differ in length, the longest of each dimension: see :attr:`chunk_lengths`.
        """
        chunks: Optional[tuple[int, ...]] = self._handle.layout()["chunks"]
        return chunks

    @property
    def shards(self) -> Optional[tuple[int, ...]]:
        """The lengths of a shard, which is a file of many chunks; None without shards."""
        shards: Optional[tuple[int, ...]] = self._handle.layout()["shards"]
        return shards

    @property
    def nchunks(self) -> int:
        """The number of chunks that cover the array, stored or not; 1 for a plain file."""
        return self._handle.chunk_count(False)

    @property
    def chunk_lengths(self) -> tuple[tuple[int, ...], ...]:
        """The lengths of all chunks along each dimension, cut at the array's edge: dask's ``chunks``.

        Examples
        --------
        >>> a = tessera.create("uneven.zarr", shape=25, dtype="u1", chunks=[[10, 10, 5]], format="v3")
        >>> a.chunk_lengths
        ((10, 10, 5),)
        """
        return self._handle.chunk_lengths(False)

    @property
    def codec(self) -> Optional[str]:
        """The codecs of a chunk as :func:`tessera.create` takes them: ``"blosc:lz4:5:shuffle"``; None for files."""
        return self._handle.order_and_codec()[1]

    @property
    def order(self) -> str:
        """The order of the elements in a chunk, or in a file: ``"C"`` or ``"F"``."""
        return self._handle.order_and_codec()[0]

    @property
    def fill_value(self) -> Any:
        """The value of elements that were never written; None if it is undefined, and for files."""
        fill = self._handle.fill_value()
        return fill if fill is None or self._shown is None else self._as_shown(np.asarray(fill))[()]

    @property
    def dims(self) -> Optional[tuple[Optional[str], ...]]:
        """The names of the dimensions, from wherever the format keeps them; None if there are none."""
        return self._handle.dims()

    @dims.setter
    def dims(self, names: Optional[Sequence[Optional[str]]]) -> None:
        self._require_writable()
        self._handle.set_dimension_names(None if names is None else list(names))

    @property
    def format(self) -> Optional[str]:
        """``"zmeta"``, ``"v1"``, ``"v2"`` or ``"v3"``; None for an array file."""
        return self._handle.format()

    @property
    def attrs(self) -> Attributes:
        """The attributes: a mapping that reads and writes the stored document on each access."""
        return Attributes(self._handle, self._require_writable)

    @property
    def info(self) -> ArrayInfo:
        """The output of ``tessera info --json``: a dict whose members are attributes, too."""
        return array_facts(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        if self._handle.closed:
            return f"<tessera.Array {self._path!r}, closed>"
        layout = self._handle.layout()
        text = f"<tessera.Array {self._path!r} {self.shape} {self._handle.dtype_text}"
        if layout["chunks"] is not None:
            text += f", chunks {layout['chunks']}"
        if layout["shards"] is not None:
            text += f" in shards {layout['shards']}"
        return f"{text}, {self.format or 'file'}, {self._mode}>"

    def _repr_html_(self) -> str:
        return html_table(self.info) + thumbnail_html(self)

    def show(self, *, height: int = 600, threads: int = 0, max_memory: Union[int, str] = 0) -> "Union[Shown, Picture]":
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
        from ._serve import show

        return show(self, height, threads=threads, max_memory=max_memory)

    # ---- reading

    def __getitem__(self, key: Any) -> Any:
        handle = self._handle
        picked = handle.pick(key)
        if picked is None:
            fields, rest = _indexing.split_fields(key)
            if fields is not None:
                _indexing.require_fields(self, fields)
                return self[rest][fields]
            return self._as_shown(_indexing.read_key(self, key))
        out = np.empty(picked.shape, self._dtype)
        handle.read(picked, out, self._brief)
        out = self._as_shown(out)
        return out[()] if picked.element else out

    def read(self, sel: Any = ..., out: Optional[np.ndarray[Any, Any]] = None, *, threads: int = 0,
             max_memory: Union[int, str] = 0, progress: ProgressCallback = None) -> Any:
        """Read a basic selection, optionally into existing memory.

        Parameters
        ----------
        sel : basic index
            Integers, slices, ``...`` and None, as in ``a[sel]``.
        out : numpy.ndarray, optional
            Memory for the result, of its shape and of this dtype (in either byte order). Chunks are decoded straight
            into it if its strides allow; it is not copied.
        threads : int
            The largest number of threads; 0 for all cores.
        max_memory : int or str
            Bytes that block-by-block work may hold, such as ``"256M"``.
        progress : callable or True
            Called as ``progress(done, total)`` with bytes; True draws a bar if tqdm is installed.

        Returns
        -------
        numpy.ndarray or scalar
            `out`, if it was given.
        """
        picked = self._handle.pick(sel)
        if picked is None:
            raise _indexing.not_basic(sel)
        given = out is not None
        if out is None:
            out = np.empty(picked.shape, self._dtype)
        elif out.shape != picked.shape:
            raise ValueError(f"out has shape {out.shape}, what is picked has {picked.shape}")
        elif self._shown is not None and out.dtype == self._shown:
            out[...] = self.read(sel, threads=threads, max_memory=max_memory, progress=progress)
            return out
        elif out.dtype.newbyteorder("=") != self._dtype.newbyteorder("="):
            raise TypeError(f"out has dtype {out.dtype}, the array {self.dtype}")
        self._handle.read(picked, out, self._work(threads, max_memory, progress))
        if given:
            return out
        values = self._as_shown(out)
        return values[()] if picked.element else values

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray[Any, Any]:
        require_copy(copy)
        values = np.asarray(self[...])
        return values if dtype is None else np.asarray(self._astype(values, dtype))

    def _astype(self, values: Any, dtype: Any) -> Any:
        """What was read, as another dtype: bfloat16 by its value."""
        return _bfloat16.astype(values, self._bfloat16 if self._shown is None else None, dtype)

    def astype(self, dtype: Any) -> "Converted":
        """The same array with its elements converted when they are read.

        Examples
        --------
        >>> a = tessera.create("small.zarr", shape=3, dtype="<i2", fill_value=5)
        >>> a.astype("float32")[:2]
        array([5., 5.], dtype=float32)
        """
        return Converted(self, dtype)

    def sel(self, text: str = "", *, method: Optional[str] = None, **values: Any) -> Any:
        """Read by the names of dimensions and the values of their coordinates, as xarray's ``sel``.

        The coordinate of a dimension is the one-dimensional array of that name in the array's group. Times of the CF
        conventions are decoded. A slice of values includes both ends. Where there is no coordinate, slices are indices.

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
        return self[self._handle.select(sel_text(text, method, values), self._brief)]

    def where(self, condition: str, *, threads: int = 0, max_memory: Union[int, str] = 0,
              progress: ProgressCallback = None) -> np.ndarray[Any, Any]:
        """The rows of a table that meet a condition: an expression over its fields.

        Examples
        --------
        >>> with open("days.csv", "w") as file:
        ...     _ = file.write("day,close\\n2026-01-01,99\\n2026-01-02,101\\n")
        >>> tessera.open("days.csv").where("close > 100")["close"]
        array([101])
        """
        rows: np.ndarray[Any, Any] = self._handle.where(condition, self._work(threads, max_memory, progress))
        return rows

    def isel(self, **indices: Any) -> Any:
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

    @property
    def vindex(self) -> "_indexing.VIndex":
        """Elements at many places: ``a.vindex[rows, columns]``, or selected by a mask of the array's shape.

        The index is NumPy's, as in ``a[rows, columns]``. Among slices, the dimensions of lists and arrays always come
        first in the result: ``a.vindex[:, rows, columns]`` has shape ``(len(rows), a.shape[0])``.
        """
        return _indexing.VIndex(self)

    @property
    def oindex(self) -> "_indexing.OIndex":
        """An independent index for each dimension: ``a.oindex[[0, 5], 2:4]`` has shape ``(2, 2)``.

        The index of a dimension is an integer, a slice, a list of integers or a mask, as in
        ``numpy_array[numpy.ix_(...)]``. Assigning changes each chunk in one step.
        """
        return _indexing.OIndex(self)

    def view(self, selection: Any = "", *, axes: Sequence[Union[int, str]] = (), reduce: Optional[str] = None,
             range: Optional[tuple[Union[float, str], Union[float, str]]] = None, map: str = "viridis",
             missing: Union[float, str] = "auto", size: tuple[int, int] = (960, 720), limit: Union[int, str] = "2G",
             threads: int = 0, max_memory: Union[int, str] = 0) -> Picture:
        """A slice as a picture, drawn as by ``tessera view --png``; a notebook displays it.

        Only what the picture needs is read, whatever the size of the array.

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
            Elements that are shown differently: a number, "fill", "none" or "auto", the fill value unless it is 0.
        size : (width, height)
            The largest size of the whole picture, in pixels.
        limit : int or str
            Bytes of elements that may be decoded; a slice that would take more is sampled.

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
                             self._work(threads, max_memory))
        return Picture(data)

    def to_dask(self, chunks: Any = None, limit: Any = None) -> Any:
        """A dask array of this array's elements, read block by block when it is computed.

        ``dask.array.store(d, a, lock=False)`` writes a dask array to this one. Threads, processes and workers of a
        cluster need no lock, with blocks of any shape, because writers of one chunk take turns.

        Parameters
        ----------
        chunks : as in :func:`dask.array.from_array`, optional
            Lengths of blocks; by default about `limit` bytes, in multiples of chunks (with shards, of shards).
        limit : int or str, optional
            Bytes of a block; by default dask's ``array.chunk-size``.

        Returns
        -------
        dask.array.Array
        """
        from ._dask import to_dask

        return to_dask(self, chunks, limit)

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

    def __dask_tokenize__(self) -> Any:
        from ._dask import token

        return token(self)

    def iter_chunks(self, shards: bool = False) -> Iterator[tuple[slice, ...]]:
        """The parts of the array that its chunks (or shards) cover, as keys: ``for key in a.iter_chunks(): a[key]``.

        Examples
        --------
        >>> a = tessera.create("grid.zarr", shape=(2, 5), dtype="u1", chunks=(2, 3), overwrite=True)
        >>> list(a.iter_chunks())
        [(slice(0, 2, 1), slice(0, 3, 1)), (slice(0, 2, 1), slice(3, 5, 1))]
        """
        for number in range(self._handle.chunk_count(shards)):
            yield self._handle.chunk_key(number, shards)

    # ---- writing

    def __setitem__(self, key: Any, value: Any) -> None:
        self._require_writable()
        picked = self._handle.pick(key)
        if picked is None:
            self._assign_otherwise(key, value)
            return
        self._handle.write(picked, self._values(value, picked.shape, picked.element), self._brief)

    def write(self, sel: Any, values: Any, casting: str = "same_kind", *, threads: int = 0,
              max_memory: Union[int, str] = 0, progress: ProgressCallback = None) -> None:
        """Assign as ``a[sel] = values`` does, but refuse conversions that `casting` does not allow.

        Parameters
        ----------
        sel : basic index
            Integers, slices, ``...`` and None.
        values : array_like
            Broadcast to the selection. An array of this dtype is not copied.
        casting : {'no', 'equiv', 'safe', 'same_kind', 'unsafe'}
            The conversions that are allowed, as in :func:`numpy.can_cast`.

        Raises
        ------
        TypeError
            If the rule does not allow the conversion. Nothing is written.
        """
        self._require_writable()
        picked = self._handle.pick(sel)
        if picked is None:
            raise _indexing.not_basic(sel)
        values = self._castable(values, casting)
        self._handle.write(picked, self._values(values, picked.shape, picked.element),
                           self._work(threads, max_memory, progress))

    def update(self, sel: Any, function: Callable[..., Any], *, where: bool = False, threads: int = 0,
               progress: ProgressCallback = None) -> None:
        """Compute new values from the present ones, so that no other writer's change is lost.

        Each chunk's part of the selection is read, changed by the function and written under that chunk's lock:
        increments from many threads and processes all count. Chunks are changed one by one, not all at once.

        Parameters
        ----------
        sel : basic index
            Integers, slices, ``...`` and None.
        function : callable
            Called as ``function(values)`` with one chunk's part, an array that it may change in place. If it returns
            anything but None, that is written instead. Types that NumPy lacks are as without ml_dtypes. The part has all dimensions of the array; those picked by an
            integer have length 1. The function runs in any thread. It must not write to this array, and gets an error
            if it does. If two functions of `update` write to each other's arrays and would wait for each other for
            ever, one of them gets an error; in two processes they wait until Ctrl-C.
        where : bool
            Call ``function(values, place)`` with the place of `values` in the selection, as slices.

        Raises
        ------
        Exception
            Any exception of the function. Its chunk is then unchanged; chunks that were changed before stay changed.

        Examples
        --------
        >>> a = tessera.create("counts.zarr", shape=6, dtype="<i8", chunks=4)
        >>> a.update(slice(2, 6), lambda values: values + 1)
        >>> a[:]
        array([0, 0, 1, 1, 1, 1])
        """
        self._require_writable()
        picked = self._handle.pick(sel)
        if picked is None:
            raise _indexing.not_basic(sel)
        self._handle.update(picked, function, where, self._work(threads, 0, progress))

    def resize(self, *shape: Any) -> None:
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

    def refresh(self) -> None:
        """Reload the metadata, such as a shape that others changed; open what took the array's place, if any did."""
        self._handle.refresh()
        self._dtype = self._handle.dtype
        self._bfloat16 = _bfloat16.order(self._handle.dtype_text)
        self._shown = _ml_types.shown(self._handle)

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
        from ._editing import Edit
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
        from ._editing import Cached
        return Cached(self, memory(max_memory))

    # ---- other

    def close(self) -> None:
        """Release what the array holds open, such as the file of an ``.npy``. It is of no use afterwards.

        An array that is not closed does so when it is no longer referenced. ``with tessera.open(path) as a:`` closes it
        at the end of the block.
        """
        _tessera.close(self._handle)

    def __reduce__(self) -> Any:
        from . import open as reopen

        return functools.partial(reopen, **self._options), (self._path, self._mode), None, None, None

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        step = self.chunks[0] if self.chunks else 1024
        for first in range(0, len(self), step):
            yield from self[first:first + step]

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, Array):
            return (self._path, self._mode) == (other._path, other._mode)
        if isinstance(other, (bool, int, float, complex, str, bytes, list, tuple, np.generic, np.ndarray)):
            raise TypeError(f"{self._path}: an array in chunks is not compared with values; a[...] == value compares its "
                            "elements")
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self._path, self._mode))

    def _require_writable(self) -> None:
        if self._mode == "r":
            raise _indexing.read_only(self._path)

    def _castable(self, values: Any, casting: str) -> Any:
        """The values, if the rule allows converting them to this array's dtype; else raises TypeError."""
        if isinstance(values, (Array, Converted)):
            values = values[...]
        if casting == "unsafe" or self._bfloat16 is not None or self._dtype == object:
            return np.asanyarray(values)
        values = _indexing.padding_named(np.asanyarray(values), self._dtype)
        texts = {values.dtype.kind, self._dtype.kind} == {"U", "S"} and casting == "same_kind"  # what is not ASCII raises
        if not texts and not _indexing.can_cast(values, self._dtype, casting):
            raise TypeError(f"Cannot cast array data from {values.dtype!r} to {self._dtype!r} "
                            f"according to the rule '{casting}'")
        return values

    def _values(self, value: Any, shape: tuple[int, ...], element: bool) -> np.ndarray[Any, Any]:
        """The value as NumPy would store it, broadcast to the shape."""
        if isinstance(value, (Array, Converted)):
            value = value[...]
        if self._bfloat16 is not None:
            value = _bfloat16.encode(value, self._bfloat16)
        return _indexing.stored(value, self._dtype, shape, element)

    def _assign_otherwise(self, key: Any, value: Any) -> None:
        fields, rest = _indexing.split_fields(key)
        picked = None if fields is None else self._handle.pick(rest)
        if picked is None:
            _indexing.write_key(self, rest, value, fields)
            return
        part = np.empty(0, self._dtype)[fields]  # the errors of unknown names
        shape = picked.shape + part.shape[1:]
        values = _indexing.stored(value, part.dtype, shape, False)
        whole = _indexing.with_dropped(picked, values)

        def assign(elements: np.ndarray[Any, Any], place: tuple[slice, ...]) -> None:
            elements[fields] = whole[place]

        self._handle.update(picked, assign, True, self._brief)
