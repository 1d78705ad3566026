"""Checking, repairing, sealing, snapshots and undo, as functions."""

from __future__ import annotations

import os
from typing import Mapping, Optional, Sequence, Union

from . import _tessera
from ._array import Array
from ._errors import InvalidArgument
from ._group import Group
from ._making import Path
from ._options import ProgressCallback, absolute, over_network_of_node, work
from .types import Finding, Repair, Seal, Verification
from ._commands import Place, _path_of, _place, open
from ._types import Document, Remote


def _file(path: Optional[Path]) -> Optional[str]:
    return None if path is None else os.fspath(path)


@over_network_of_node
def verify(path: Place, *, seals: bool = True, complete: bool = False, ome: bool = False, geo: bool = False,
           record: bool = False, rate: Union[int, str, None] = None, signers: Optional[Path] = None, threads: int = 0, max_memory: Union[int, str] = 0, progress: ProgressCallback = None,
           storage_options: Remote = None) -> Verification:
    """Decode every chunk and account for every file of an array, a hierarchy, a zip or an array file.

    A chunk that was stored when its array was imported, copied or restored, and is not now, is found as `absent`, unless Tessera
    erased it since.

    Parameters
    ----------
    complete : bool
        Every chunk that is not stored is `absent`.
    ome : bool
        Check the metadata of OME-Zarr in the groups at and below `path`, and nothing else. Findings then have a `rule`:
        ``ome/schema``, ``ome/version``, ``ome/text``, ``ome/advice`` or ``ome/tree``.
    geo : bool
        The same for the metadata of GeoZarr (multiscales, spatial, proj) in arrays and groups: ``geo/schema`` and so on.
    record : bool
        Add a line to the fixity log of the array or group, which must lie in a directory; `recorded` is then the line's
        hash. See :func:`fixity`.
    rate : int or str, optional
        Read no more bytes than this in a second: ``"50M"``.
    signers : path, optional
        The seal has to be signed by one of these: a file of allowed signers of OpenSSH, or a public key of minisign.
    storage_options : dict, optional
        As in :func:`open`; by default those that the array or group was opened with.

    Returns
    -------
    Verification
        A dict, with the members of ``tessera verify --json`` also as attributes: `sound`, `findings` (each with `kind`, `node`, `key`, `chunk`,
        `text`), counts.

    Examples
    --------
    >>> a = tessera.create("small.zarr", shape=3, dtype="<i2", overwrite=True)
    >>> tessera.verify(a).sound
    True
    """
    found = _tessera.verify(_path_of(path), seals=seals, complete=complete, ome=ome, geo=geo, record=record,
                            rate="" if rate is None else str(rate), signers=_file(signers),
                            options=work(threads, max_memory, progress))
    return Verification(found, findings=[Finding(finding) for finding in found["findings"]])


def fixity(path: Place) -> Document:
    """The fixity log of an array or a group in a directory: what ``verify(record=True)``, :func:`seal`, :func:`repair`
    and :func:`restore` recorded.

    Returns
    -------
    dict
        `records` (each with `time`, `who`, `what`, `sound`, numbers, and the `hash` of its line), `last`, the hash of the
        last line, and `intact`, whether every line follows the one before. Keep `last` elsewhere: a log whose end was cut
        off no longer has it.
    """
    found: Document = _tessera.fixity(_path_of(path))
    return found


def diff_sums(a: Place, b: Place) -> Document:
    """Compare two sealed copies by the sums of their seals, file by file, without reading data.

    Returns
    -------
    dict
        `equal`; `same`, the number of files with the same sum; and the paths of the others: `different`, `only_in_a`,
        `only_in_b`. Whether the files still are as they were sealed is for :func:`verify` to say.
    """
    found: Document = _tessera.difference_of_sums(_path_of(a), _path_of(b))
    return found


@over_network_of_node
def repair(path: Place, *, dry_run: bool = False, give_up_batches: bool = False, drop_damaged: bool = False,
           to_seal: Union[bool, Sequence[str]] = False, from_copy: Optional[Path] = None, break_seal: bool = False, threads: int = 0,
           max_memory: Union[int, str] = 0, progress: ProgressCallback = None,
           storage_options: Remote = None) -> Repair:
    """Repair those findings of :func:`verify` that have a remedy. Damaged chunks are set aside, not deleted.

    Parameters
    ----------
    dry_run : bool
        Only report what would be done.
    give_up_batches : bool
        Take back batches that were committed but are not in place, instead of finishing them.
    drop_damaged : bool
        Delete the chunks that were set aside.
    to_seal : bool or sequence of str
        From the parity of a seal, also restore files that may have been edited since: all of them, or these.
    from_copy : path, optional
        Another copy, of which files are taken that are damaged or missing here, if they have the sums of the seal here.
    break_seal : bool
        Whether sealed arrays and groups may be changed, as in :func:`open`.
    storage_options : dict, optional
        As in :func:`verify`.
    """
    names = [] if isinstance(to_seal, bool) else [to_seal] if isinstance(to_seal, str) else list(to_seal)
    report = _tessera.repair(_path_of(path), dry_run=dry_run, give_up_batches=give_up_batches, drop_damaged=drop_damaged,
                             to_seal=bool(to_seal), to_seal_names=names,
                             from_copy=None if from_copy is None else absolute(from_copy), place=_place(break_seal),
                             options=work(threads, max_memory, progress))
    return Repair(report, actions=list(map(Finding, report["actions"])), remaining=list(map(Finding, report["remaining"])))


def _bag_words(info: Union[Mapping[str, Union[str, Sequence[str]]], Path, None]) -> list[str]:
    if info is None:
        return []
    if not isinstance(info, Mapping):
        return [absolute(info)]
    values = ((label, [value] if isinstance(value, str) else value) for label, value in info.items())
    return [f"{label}={each}" for label, several in values for each in several]


@over_network_of_node
def seal(path: Place, *, bag: Optional[Path] = None, info: Union[Mapping[str, Union[str, Sequence[str]]], Path, None] = None,
         overwrite: bool = False, unchecked: bool = False,
         parity: Union[str, int, None] = None, accept: Sequence[str] = (), check: bool = False, readme: bool = False,
         ro_crate: Union[bool, Path] = False, sign: Optional[Path] = None, progress: ProgressCallback = None,
         storage_options: Remote = None) -> Seal:
    """Write a manifest of SHA-256 sums, which shows later whether a file was changed.

    Parameters
    ----------
    bag : path, optional
        Make a BagIt bag there instead, a copy with manifests.
    info : dict or path, optional
        Labels of a bag and their values, as ``{"Source-Organization": "..."}``; or a file of such lines, or a DataCite
        record in JSON.
    overwrite : bool
        Replace the manifest even if files have changed since.
    unchecked : bool
        Do not verify first.
    parity : str or int, optional
        Also write parity, from which :func:`repair` restores files: a share such as ``"5%"``, or the number of files
        that may vanish; 0 removes it. By default, existing parity is kept up to date.
    accept : sequence of str
        Files below `path` that are sealed as they are now, whatever has happened to them since the seal.
    check : bool
        Read everything, even files with parity that have the size and time of the seal.
    readme : bool
        Put the page ``README.tessera.txt`` beside the data, which says how to read them without Tessera.
    sign : path, optional
        Sign the seal with this key: of OpenSSH, by ``ssh-keygen``, or of minisign, by ``minisign``.
    ro_crate : bool or path
        Write ``ro-crate-metadata.json`` first, an RO-Crate of what the attributes, a ``CITATION.cff`` and the log say: with
        that in the folder, or with this one.
    storage_options : dict, optional
        As in :func:`verify`.

    Raises
    ------
    Corrupt
        The data are damaged, and were not sealed.
    AlreadyExists
        Files differ from the last seal, and neither `overwrite` nor `accept` allows that.

    Examples
    --------
    >>> a = tessera.create("archive.zarr", shape=1000, dtype="<i2", format="v2", overwrite=True)
    >>> a[...] = 7
    >>> tessera.seal(a, parity="5%").parity_bytes > 0
    True
    """
    place = _path_of(path)
    if info is not None and bag is None:
        raise InvalidArgument("info: says what a bag is, which bag= makes")
    if bag is not None and (readme or sign is not None or ro_crate is not False or overwrite or accept):
        raise InvalidArgument("readme, sign, ro_crate, overwrite, accept: a bag leaves the data as they are; seal them before")
    options = _tessera.PlaceOptions(False)
    redundancy = "" if parity is None else str(parity)
    if bag is not None:
        return Seal(_tessera.make_bag(place, unchecked, absolute(bag), redundancy, _bag_words(info), options, work(0, 0, progress)))
    return Seal(_tessera.seal(place, unchecked=unchecked, overwrite=overwrite, parity=redundancy, accept=list(accept), check=check,
                              readme=readme, sign=_file(sign),
                              citation=None if ro_crate is False else "" if ro_crate is True else absolute(ro_crate),
                              place=options, options=work(0, 0, progress)))


def package(path: Place, folder: Path, size: Union[int, str], *, parity: Union[str, int, None] = None,
            progress: ProgressCallback = None) -> Document:
    """Make a folder of zips of an array or a hierarchy, as a tape takes them, with an index that opens as the whole.

    Parameters
    ----------
    folder : path
        A new directory. ``tessera.open(folder / "index.json")`` opens the whole in place.
    size : int or str
        The largest size of a zip: ``"10G"``. Chunks are never cut.
    parity : str or int, optional
        Parity of the folder, from which :func:`repair` restores lost packages: a share as ``"10%"``, or a number of them.

    Returns
    -------
    dict
        `packages`, `files`, `bytes`, `parity_bytes`.
    """
    found: Document = _tessera.make_packages(_path_of(path), absolute(folder), str(size), "" if parity is None else str(parity),
                                             _tessera.PlaceOptions(False), work(0, 0, progress))
    return found


def seal_ocfl(path: Place, root: Path, id: str, *, message: str = "", unchecked: bool = False,
              progress: ProgressCallback = None) -> Document:
    """Add an array or a group as the next version of an object of OCFL 1.1. The path ``ocfl:ROOT::ID@v2`` opens a version.

    Parameters
    ----------
    root : path
        The storage root, which is made where there is none.
    id : str
        The object's identifier, a URI.
    message : str
        Why there is this version.
    unchecked : bool
        Do not verify first.

    Raises
    ------
    Corrupt
        The data, or the object, are damaged.
    """
    place = _path_of(path)
    return _tessera.add_ocfl_version(place, unchecked, absolute(root), id, message, _tessera.PlaceOptions(False),
                                     work(0, 0, progress))


def snapshot(path: Place, name: str, *, sums: bool = False, progress: ProgressCallback = None) -> Document:
    """Keep the present state of an array or a hierarchy beside it, sharing bytes if the file system allows it.

    Parameters
    ----------
    name : str
        Name of the snapshot, which opens like any array: ``ROOT.snapshots/NAME``.
    sums : bool
        Record SHA-256 sums, so that copies of the snapshot can be checked.
    """
    return _tessera.create_snapshot(_path_of(path), name, sums=sums, place=_tessera.PlaceOptions(False),
                                    options=work(0, 0, progress))


def snapshots(path: Place) -> list[Document]:
    """The snapshots of the array or group at a path."""
    return _tessera.list_snapshots(_path_of(path))


def restore(path: Place, name: str, *, skip_damaged: bool = False, break_seal: bool = False,
            progress: ProgressCallback = None) -> list[str]:
    """Restore the state of a snapshot in one step. The present content is lost.

    Parameters
    ----------
    skip_damaged : bool
        Leave out files that have changed since the snapshot was made.
    break_seal : bool
        Whether sealed arrays and groups may be changed, as in :func:`open`.

    Returns
    -------
    list of str
        With `skip_damaged`: the paths that were left out.
    """
    return _tessera.restore_snapshot(_path_of(path), name, skip_damaged=skip_damaged, place=_place(break_seal),
                                     options=work(0, 0, progress))


def remove_snapshot(path: Place, name: str) -> None:
    """Delete a snapshot."""
    _tessera.remove_snapshot(_path_of(path), name, _tessera.PlaceOptions(False))


def undo(array: Union[Path, Array, Group], *, break_seal: bool = False) -> int:
    """Take back the last batch (:meth:`Array.edit`, :meth:`Group.edit`), or the last change by the program. A second undo
    restores it.

    Assignments in Python can be undone only if they are made in a batch.

    Parameters
    ----------
    break_seal : bool
        Whether sealed arrays and groups may be changed, as in :func:`open`.

    Returns
    -------
    int
        The number of values that changed.

    Examples
    --------
    >>> a = tessera.create("grid.zarr", shape=4, dtype="<i4", overwrite=True)
    >>> with a.edit() as batch:
    ...     batch[:] = 7
    >>> tessera.undo(a), a[0]
    (1, 0)
    """
    opened = open(_path_of(array), "r+", break_seal=break_seal) if break_seal or not isinstance(array, (Array, Group)) else array
    if not isinstance(opened, (Array, Group)):
        raise InvalidArgument(f"{opened.path}: expected an array or a group, found a file")
    opened._require_writable()
    changed = _tessera.undo(opened._handle)
    if isinstance(opened, Array):
        opened.refresh()
    return changed
