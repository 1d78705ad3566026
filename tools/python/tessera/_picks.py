"""Keys with lists, arrays and masks: which elements they pick, and in which boxes of the array these lie."""

from __future__ import annotations

import itertools
import operator
from typing import Any, Iterator, Optional, TypeVar, Union

import numpy as np

from ._types import Values

_Part = Union[slice, Values]
_Item = TypeVar("_Item")  # of a key, with lists as arrays; `...` stands for itself
# Of a dimension of the result: the array's, that of the shape of the places, or a new one.
_Source = Union[None, int, tuple[str, int]]

# Elements of a mask that are looked at together.
_MASKED = 1 << 20


def _no_index(item: object) -> IndexError:
    text = repr(item)
    return IndexError("only integers, slices (`:`), ellipsis (`...`), None, and arrays of integers or booleans are valid "
                      f"indices, found {text if len(text) <= 60 else text[:57] + '...'}")


def as_index(item: Any) -> Values:
    """An item of a key as an array of integers or booleans."""
    if not isinstance(item, (bool, np.bool_, np.ndarray, list, tuple, range)):
        try:
            return np.asarray(operator.index(item))
        except TypeError:
            pass
    try:
        array = np.asarray(item)
    except ValueError:
        raise _no_index(item) from None
    if array.size == 0 and not isinstance(item, np.ndarray) and array.dtype.kind == "f":
        array = array.astype(np.intp)
    if array.dtype.kind not in "biu":
        if array.ndim == 0:
            raise _no_index(item)
        raise IndexError(f"arrays used as indices must be of integer (or boolean) type, found {array.dtype}")
    return array


def _inside(index: Values, length: int, axis: int) -> Values:
    """Indices within a dimension, negative ones counted from its end."""
    least, most = (int(index.min()), int(index.max())) if index.size else (0, -1)
    if least < -length or most >= length:
        bad = (index < -length) | (index >= length)
        raise IndexError(f"index {index[bad].flat[0]} is out of bounds for axis {axis} with size {length}")
    index = index.astype(np.int64, copy=False)
    return index if least >= 0 else np.where(index < 0, index + length, index)


def _require_fit(mask: Values, shape: tuple[int, ...], axis: int) -> None:
    for d, length in enumerate(mask.shape):
        if length != shape[axis + d]:
            raise IndexError(f"boolean index did not match indexed array along dimension {axis + d}; dimension is "
                             f"{shape[axis + d]} but corresponding boolean dimension is {length}")


def _takes(item: object) -> int:
    """How many dimensions an item indexes."""
    if isinstance(item, np.ndarray):
        return item.ndim if item.dtype == bool else 1
    return int(isinstance(item, slice))


def _range(item: slice, length: int) -> slice:
    """A slice with all its numbers inside a dimension; its `stop` may be -1."""
    found = range(*item.indices(length))
    return slice(found.start, found.stop, found.step) if found else slice(0, 0, 1)


def _completed(items: list[_Item], rank: int) -> list[Union[_Item, slice]]:
    """The items with `...` as slices. One that stands for nothing stays: it comes between its neighbours."""
    ellipses = [at for at, item in enumerate(items) if item is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    given = sum(map(_takes, items))
    if given > rank:
        raise IndexError(f"too many indices for array: array is {rank}-dimensional, but {given} were indexed")
    at = ellipses[0] if ellipses else len(items)
    rest = [slice(None)] * (rank - given)
    return [*items[:at], *(rest or items[at:at + 1]), *items[at + 1:]]


def _index_arrays(index: Values, shape: tuple[int, ...], axis: int) -> list[tuple[Optional[int], Values]]:
    """An item as integers inside the dimensions that it indexes, from `axis` on."""
    if index.dtype != bool:
        return [(axis, _inside(index, shape[axis], axis))]
    if index.ndim == 0:
        return [(None, np.zeros(int(index), np.int64))]
    _require_fit(index, shape, axis)
    return [(axis + d, found) for d, found in enumerate(np.nonzero(index))]


class Picks:
    """What a key picks from an array of this shape.

    The picked elements are read as a table, whose dimensions are: one for the places of all dimensions that are indexed
    `together`, if any are, then each dimension of `alone` with its own indices, a slice or an array.
    """

    def __init__(self, shape: tuple[int, ...]):
        self.full = shape
        self.together: Optional[list[int]] = None  # the dimensions that the rows of `places` index
        self.places: Values = np.empty((0, 0), np.int64)
        self.alone: dict[int, _Part] = {}
        self._spread: tuple[int, ...] = ()  # the shape of the places in the result
        self._order: list[int] = []         # of the result's dimensions those of the table, all of `_spread`; -1: new
        self._dropped: list[int] = []       # those that integers pick from

    # ---- keys

    @classmethod
    def of(cls, key: object, shape: tuple[int, ...], first: bool = False) -> "Picks":
        """As NumPy picks. With `first`, the dimensions of index arrays lead the result in any case."""
        items = [item if item is None or item is Ellipsis or isinstance(item, slice) else as_index(item)
                 for item in (key if isinstance(key, tuple) else (key,))]
        picks = cls(shape)
        arrays: list[tuple[Optional[int], Values]] = []  # (dimension, indices); no dimension: a mask without any
        at: list[int] = []  # the items that are index arrays
        result: list[_Source] = []
        lead = 0
        axis = 0
        for n, item in enumerate(_completed(items, len(shape))):
            if isinstance(item, slice):
                picks.alone[axis] = _range(item, shape[axis])
                result.append(axis)
            elif item is None:
                result.append(None)
            elif item is not Ellipsis:
                lead = lead if at else len(result)
                at.append(n)
                arrays += _index_arrays(item, shape, axis)
            axis += _takes(item)
        spread = picks._join(arrays)
        apart = bool(at) and at[-1] - at[0] != len(at) - 1
        lead = 0 if first or apart else lead
        picks._finish(result[:lead] + spread + result[lead:])
        return picks

    @classmethod
    def orthogonal(cls, key: object, shape: tuple[int, ...]) -> "Picks":
        """With an independent index for each dimension."""
        items = [item if item is Ellipsis or isinstance(item, slice) else as_index(item)
                 for item in (key if isinstance(key, tuple) else (key,))]
        if any(isinstance(item, np.ndarray) and (item.ndim > 1 or (item.ndim == 0 and item.dtype == bool))
               for item in items):
            raise IndexError("oindex takes integers, slices, and arrays of one dimension")
        picks = cls(shape)
        result: list[_Source] = []
        for axis, item in enumerate(item for item in _completed(items, len(shape)) if item is not Ellipsis):
            if isinstance(item, slice):
                picks.alone[axis] = _range(item, shape[axis])
            else:
                picks.alone[axis] = _index_arrays(item, shape, axis)[0][1].reshape(-1)
            if isinstance(item, slice) or item.ndim == 1:
                result.append(axis)
        picks._finish(result)
        return picks

    def _join(self, arrays: list[tuple[Optional[int], Values]]) -> list[_Source]:
        """Index arrays: all are indexed together, unless each varies along a dimension of its own (`numpy.ix_`).

        Returns of each dimension of their common shape what it is in the result, for `_finish`.
        """
        try:
            self._spread = np.broadcast_shapes(*[index.shape for _, index in arrays])
        except ValueError:
            shapes = " ".join(str(index.shape).replace(" ", "") for _, index in arrays)
            raise IndexError(f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}") \
                from None
        rank = len(self._spread)
        varying = [(axis, index) for axis, index in arrays if index.size != 1]
        own = {rank - index.ndim + d: axis for axis, index in varying for d, n in enumerate(index.shape) if n != 1}
        self.alone.update((axis, index.reshape(-1)) for axis, index in arrays if axis is not None)
        if len(own) == len(varying) and all(axis is not None and np.count_nonzero(np.array(index.shape) != 1) == 1
                                            for axis, index in varying):
            return [own.get(d) for d in range(rank)]
        self.together = [axis for axis, _ in varying if axis is not None]
        columns = [np.broadcast_to(index, self._spread).reshape(-1) for axis, index in varying if axis is not None]
        self.places = np.stack(columns, axis=-1) if columns else np.empty((0, 0), np.int64)
        for axis in self.together:
            del self.alone[axis]
        return [("spread", d) for d in range(rank)]

    def _finish(self, result: list[_Source]) -> None:
        """Takes the dimensions of the result: of the array, of the places, or None for new ones."""
        self.alone = dict(sorted(self.alone.items()))
        ahead = 0 if self.together is None else len(self._spread)
        number = {axis: ahead + n for n, axis in enumerate(self.alone)}
        self._order = [-1 if item is None else item[1] if isinstance(item, tuple) else number[item] for item in result]
        self._dropped = [n for n in number.values() if n not in self._order]

    # ---- shapes

    @property
    def table(self) -> tuple[int, ...]:
        """The shape of the picked elements as they are read."""
        lengths = [len(range(part.start, part.stop, part.step)) if isinstance(part, slice) else len(part)
                   for part in self.alone.values()]
        return tuple(lengths) if self.together is None else (len(self.places), *lengths)

    def _unfolded(self) -> tuple[int, ...]:
        """The table's shape with all dimensions of the places."""
        return self.table if self.together is None else (*self._spread, *self.table[1:])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        lengths = self._unfolded()
        return tuple(1 if d < 0 else lengths[d] for d in self._order)

    def arranged(self, table: Values) -> Values:
        """The result: a view of the table."""
        kept = [d for d in self._order if d >= 0]
        numbers = sorted(kept)
        table = table.reshape(self._unfolded())
        key: list[Union[int, slice]] = [0 if d in self._dropped else slice(None) for d in range(table.ndim)]
        table = table[(*key, ...)]  # never a scalar
        table = table.transpose([numbers.index(d) for d in kept])
        made: Values = table[(*(None if d < 0 else slice(None) for d in self._order), ...)]
        return made

    def tabled(self, values: Values) -> Values:
        """The reverse: values of the result's shape as the table's. Further dimensions stay at the end."""
        key: list[Union[int, slice]] = [0 if d < 0 else slice(None) for d in self._order]
        values = values[(*key, ...)]
        kept = [d for d in self._order if d >= 0]
        further = range(len(kept), values.ndim)
        values = values.transpose([*sorted(range(len(kept)), key=kept.__getitem__), *further])
        if self.together is not None:
            values = values.reshape((len(self.places), *values.shape[len(self._spread):]))
        ahead = 0 if self.together is None else len(self._spread)
        places = [] if self.together is None else [slice(None)]
        alone = [None if ahead + n in self._dropped else slice(None) for n in range(len(self.alone))]
        made: Values = values[(*places, *alone, ...)]
        return made

    def basic(self) -> Optional[tuple[slice, ...]]:
        """The table's part of the array as slices, if no array of indices is needed."""
        if self.together is not None:
            return None
        parts = []
        for part in self.alone.values():
            if not isinstance(part, slice):
                if len(part) != 1:
                    return None
                part = slice(int(part[0]), int(part[0]) + 1, 1)
            parts.append(part if part.stop >= 0 else slice(part.start, None, part.step))
        return tuple(parts)

    # ---- single elements

    def are_points(self) -> bool:
        """Whether single elements are picked, rather than rows or boxes."""
        parts = list(self.alone.values())
        ahead = [] if self.together is None else [self.places]
        longer = [part for part, n in zip([*ahead, *parts], self.table) if n != 1]
        return len(longer) <= 1 and not any(isinstance(part, slice) for part in longer)

    def points(self) -> Values:
        """Rows of the indices in the array of the elements, if these are points."""
        if self.together == list(range(len(self.full))):
            return self.places
        rows = np.empty((int(np.prod(self.table, dtype=np.int64)), len(self.full)), np.int64)
        for column, axis in enumerate(self.together or []):
            rows[:, axis] = self.places[:, column]
        for axis, part in self.alone.items():
            rows[:, axis] = part.start if isinstance(part, slice) else part  # a slice picks one element here
        return rows

    def rows(self, first: int, last: int) -> tuple[tuple[Values, ...], Values]:
        """Of these elements of the table, in C order: their places in it, and rows of their indices in the array."""
        at = np.unravel_index(np.arange(first, last), self.table)
        rows = np.empty((last - first, len(self.full)), np.int64)
        for column, axis in enumerate(self.together or []):
            rows[:, axis] = self.places[at[0], column]
        for (axis, part), where in zip(self.alone.items(), at if self.together is None else at[1:]):
            rows[:, axis] = part.start + part.step * where if isinstance(part, slice) else part[where]
        return at, rows

    # ---- boxes

    def boxes(self, block: tuple[int, ...]) -> Iterator["Box"]:
        """A box of the array for each block that any of the picked elements lie in."""
        axes: list[list[_Piece]] = []
        if self.together is not None:
            axes.append(list(_joint_pieces(self.places, [block[axis] for axis in self.together])))
        for axis, part in self.alone.items():
            axes.append(list((_range_pieces if isinstance(part, slice) else _list_pieces)(part, block[axis])))  # type: ignore
        dimensions = [*(self.together or []), *self.alone]
        for pieces in itertools.product(*axes):
            yield Box(dimensions, self.together is not None, pieces)


class _Piece:
    """The picks of one dimension, or of those that are indexed together, that lie in one block.

    `local` are the indices from `start` on, one for each dimension; `positions` are the places in the table.
    """

    __slots__ = ("start", "length", "local", "positions")

    def __init__(self, start: list[int], length: list[int], local: list[_Part], positions: _Part):
        self.start, self.length, self.local, self.positions = start, length, local, positions


def _equal_rows(rows: Values) -> Iterator[Values]:
    """The positions of equal rows, each in ascending order."""
    order = np.lexsort(rows.T[::-1])
    changes = np.flatnonzero(np.diff(rows[order], axis=0).any(axis=1)) + 1
    return (part for part in np.split(order, changes) if len(part))


def _joint_pieces(places: Values, block: list[int]) -> Iterator[_Piece]:
    if not len(places):
        return
    for positions in _equal_rows(places // np.asarray(block)):
        picks = places[positions]
        start = picks.min(axis=0)
        length = picks.max(axis=0) - start + 1
        yield _Piece(start.tolist(), length.tolist(), list((picks - start).T), positions)


def _list_pieces(part: Values, block: int) -> Iterator[_Piece]:
    if not len(part):
        return
    for positions in _equal_rows((part // block).reshape(-1, 1)):
        picks = part[positions]
        start = int(picks.min())
        length = int(picks.max()) - start + 1
        steps = np.arange(len(picks))
        if np.array_equal(picks - start, steps) and np.array_equal(positions, steps + positions[0]):
            first = int(positions[0])
            yield _Piece([start], [length], [slice(0, length, 1)], slice(first, first + length, 1))
        else:
            yield _Piece([start], [length], [picks - start], positions)


def _range_pieces(part: slice, block: int) -> Iterator[_Piece]:
    picks = range(part.start, part.stop, part.step)
    at = 0
    while at < len(picks):
        number = picks[at] // block
        end = min(part.stop, (number + 1) * block) if part.step > 0 else max(part.stop, number * block - 1)
        count = len(range(picks[at], end, part.step))
        first, last = picks[at], picks[at + count - 1]
        length = abs(last - first) + 1
        local = slice(0, length, part.step) if part.step > 0 else slice(length - 1, None, part.step)
        yield _Piece([min(first, last)], [length], [local], slice(at, at + count, 1))
        at += count


def _independent(parts: list[_Part], lengths: list[int]) -> tuple[_Part, ...]:
    """An index in which each part picks by itself."""
    if sum(not isinstance(part, slice) for part in parts) < 2:
        return tuple(parts)
    return np.ix_(*[np.arange(*part.indices(length)) if isinstance(part, slice) else part
                    for part, length in zip(parts, lengths)])


class Box:
    """A box of the array, and which of its elements belong where in the table of the picks."""

    def __init__(self, dimensions: list[int], joint: bool, pieces: tuple[_Piece, ...]):
        self._dimensions = dimensions
        self._joint = joint
        self._pieces = pieces
        starts = dict(zip(dimensions, (n for piece in pieces for n in piece.start)))
        lengths = dict(zip(dimensions, (n for piece in pieces for n in piece.length)))
        self.start = [starts[d] for d in range(len(dimensions))]
        self.shape = tuple(lengths[d] for d in range(len(dimensions)))

    @property
    def key(self) -> tuple[slice, ...]:
        """The box as a basic key."""
        return tuple(slice(start, start + length) for start, length in zip(self.start, self.shape))

    def is_plain(self) -> bool:
        """Whether its elements are a box of the table as they are."""
        return all(isinstance(part, slice) and part.step == 1 for piece in self._pieces
                   for part in (*piece.local, piece.positions))

    def of_table(self) -> tuple[_Part, ...]:
        """The index of the elements in the table."""
        parts = [piece.positions for piece in self._pieces]
        return _independent(parts, [part.stop if isinstance(part, slice) else 0 for part in parts])

    def of_box(self, elements: Values) -> tuple[Values, tuple[_Part, ...]]:
        """A view of the box's elements, and their index in it, in the order of :meth:`of_table`."""
        further = range(len(self._dimensions), elements.ndim)
        view = elements.transpose([*self._dimensions, *further])
        parts = [part for piece in self._pieces for part in piece.local]
        return view, tuple(parts) if self._joint else _independent(parts, list(view.shape))


# ---- masks of all dimensions


def is_full_mask(key: object, shape: tuple[int, ...]) -> Optional[Values]:
    """A key that is one mask of all dimensions, as an array."""
    if isinstance(key, tuple) and len(key) == 1:
        key = key[0]
    if not shape or not (isinstance(key, list) or hasattr(key, "__array__")):
        return None
    mask = as_index(key)
    if mask.dtype != bool or mask.ndim != len(shape):
        return None
    _require_fit(mask, shape, 0)
    return mask


def _blocks(shape: tuple[int, ...], chunks: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Boxes of whole chunks that cover a shape, of about so many elements as are looked at together."""
    block = list(chunks)
    left = max(1, _MASKED // max(1, int(np.prod(block, dtype=np.int64))))
    for d in reversed(range(len(shape))):
        times = min(left, -(-shape[d] // block[d]))
        block[d] *= max(1, times)
        left //= max(1, times)
    axes = [[slice(at, min(at + step, n)) for at in range(0, n, step)] for n, step in zip(shape, block)]
    return itertools.product(*axes)


class MaskedBox:
    """A box of whole chunks, and what a mask picks there."""

    def __init__(self, box: tuple[slice, ...], part: Values, positions: Values):
        self.box = box
        self.part = part
        self.positions = positions  # in the result, in C order

    def divided(self, chunks: tuple[int, ...], many: int, share: int) -> tuple[list[tuple[slice, ...]], Values]:
        """Parts of the box that are worth taking as a whole, and the mask of what else is picked.

        Such a part is a chunk of which at least `many` elements are picked, and one of `share`.
        """
        axes = [[slice(at, min(at + step, n)) for at in range(0, n, step)] for n, step in zip(self.part.shape, chunks)]
        dense = []
        rest = self.part
        for chunk in itertools.product(*axes):
            count = np.count_nonzero(self.part[chunk])
            if count >= many and count * share >= self.part[chunk].size:
                rest = rest.copy() if rest is self.part else rest
                rest[chunk] = False
                dense.append(chunk)
        return dense, rest

    def moved(self, part: tuple[slice, ...]) -> tuple[slice, ...]:
        """A part of the box as a part of the array."""
        return tuple(slice(a.start + b.start, a.start + b.stop) for a, b in zip(self.box, part))

    def places(self, mask: Values) -> Values:
        """Rows of the indices in the array of what a mask of the box picks."""
        places: Values = np.argwhere(mask) + [item.start for item in self.box]
        return places


def masked(mask: Values, chunks: tuple[int, ...]) -> Iterator[MaskedBox]:
    """The boxes where anything is picked."""
    counts = np.asarray(np.count_nonzero(mask, axis=-1))
    taken = (np.cumsum(counts.reshape(-1)) - counts.reshape(-1)).reshape(counts.shape)  # of each row the next position
    for box in _blocks(mask.shape, chunks):
        part = mask[box]
        found = np.asarray(np.count_nonzero(part, axis=-1)).reshape(-1)
        total = int(found.sum())
        if total == 0:
            continue
        begins = taken[box[:-1]].reshape(-1) - (np.cumsum(found) - found)
        yield MaskedBox(box, part, np.repeat(begins, found) + np.arange(total))
        taken[box[:-1]] += found.reshape(part.shape[:-1])
