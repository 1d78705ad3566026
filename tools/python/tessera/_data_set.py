"""Arrays of a data set in memory."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Optional, Sequence

from ._types import Document, Values


class DataSet(Mapping[str, Values]):
    """What is computed of a group or a file of several arrays without a destination: NumPy arrays by their names.

    Attributes
    ----------
    dims : dict
        The names of each array's dimensions; () where they have none.
    attrs : dict
        The attributes of each array, and under "" those of the whole.

    Examples
    --------
    >>> g = tessera.create_group("earth.zarr")
    >>> for name, values in (("time", [0, 1]), ("t", [[1.0, 2.0], [3.0, 5.0]])):
    ...     tessera.save(f"earth.zarr/{name}", np.array(values), dims=["time", "x"] if name == "t" else [name])
    >>> mean = tessera.reduce(g, how="mean", axis="time")
    >>> mean["t"], mean.dims["t"]
    (array([2. , 3.5]), ('x',))
    """

    def __init__(self, arrays: Sequence[tuple[str, Sequence[Optional[str]], Values, Document]],
                 groups: Mapping[str, Document]) -> None:
        self._arrays = {name: values for name, _, values, _ in arrays}
        self.dims = {name: tuple(dims) for name, dims, _, _ in arrays}
        self.attrs = {**groups, **{name: attrs for name, _, _, attrs in arrays}}

    def __getitem__(self, name: str) -> Values:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        rows = [f"    {name}: {values.dtype} {values.shape}, {', '.join(str(dim) for dim in self.dims[name]) or 'no names'}"
                for name, values in self.items()]
        return "\n".join(["DataSet of arrays in memory", *rows])

    def to_xarray(self) -> Any:
        """A Dataset of xarray, with coordinates, and with times and packed numbers decoded; it shares the elements."""
        import xarray

        variables = {}
        for name, values in self.items():
            dims = [dim or f"{name}_{axis}" for axis, dim in enumerate(self.dims[name] or (None,) * values.ndim)]
            variables[name] = (dims, values, self.attrs[name])
        return xarray.decode_cf(xarray.Dataset(variables, attrs=self.attrs.get("", {})))
