"""Arrays over HTTP: for the browser, and for programs that read Zarr there."""

from __future__ import annotations

import atexit
import html
import os
import weakref
from typing import Any, Sequence, Union

from . import _tessera
from ._closing import Closing
from ._errors import InvalidArgument, NotFound, Unsupported
from ._node import Node
from ._options import work
from ._picture import Picture

# Threads that still run when the interpreter ends would meet a library that is being taken down.
_running: "weakref.WeakSet[Server]" = weakref.WeakSet()


class Server(Closing):
    """A running server, from :func:`serve`. ``str()`` of it is its URL.

    It ends with :meth:`close`, at the end of a ``with`` block, when nothing refers to it any more, or with the process.
    In a forked child it is closed.
    """

    def __init__(self, handle: "_tessera.ServerHandle"):
        self._handle = handle
        _running.add(self)

    @property
    def url(self) -> str:
        """The page: ``"http://127.0.0.1:4711/t/TOKEN/"``. Zarr is below ``url + "v2/"`` and ``url + "v3/"``."""
        return self._handle.url

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._handle.port

    @property
    def closed(self) -> bool:
        """Whether it has ended, or belongs to the parent of this forked process."""
        return self._handle.closed

    def close(self) -> None:
        """End the server and all connections. May be called twice."""
        self._handle.close()

    def __str__(self) -> str:
        return self.url

    def __repr__(self) -> str:
        return f"<tessera.Server {'closed' if self.closed else self.url}>"


@atexit.register
def _close_all() -> None:
    for server in list(_running):
        server.close()


def _path_of(path: Any) -> Any:
    if isinstance(path, Node):
        return path.path
    try:
        return os.fspath(path)
    except TypeError:
        raise InvalidArgument(f"serve: expected a path, an Array or a Group, found {type(path).__name__}") from None


def _texts(texts: Union[str, Sequence[str]]) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)


def serve(*paths: Any, port: int = 0, token: bool = True, bind: str = "127.0.0.1", hosts: Union[str, Sequence[str]] = (),
          allow_origins: Union[str, Sequence[str]] = (), follow_links: bool = False, frames: bool = False, threads: int = 0,
          max_memory: Union[int, str] = 0) -> Server:
    """Serve arrays over HTTP, as ``tessera serve``, for the browser and for every program that reads Zarr v2 or v3.

    Serves arrays of every format, array files, files of several arrays, hierarchies and directories of all these, all
    read-only. Each appears as Zarr v2 below ``url + "v2/"`` and as v3 below ``url + "v3/"``. The work is done in
    threads of the library, beside Python's.

    Parameters
    ----------
    *paths : path, Array or Group
        If there are several, each appears below its own name.
    port : int
        0: the system chooses a free one.
    token : bool
        Whether URLs hold a random token. Without it every user of this machine can read what is served.
    bind : str
        The address to listen on. Addresses other than the default let other machines connect, unencrypted.
    hosts : str or sequence of str
        Further host names that clients use for this machine.
    allow_origins : str or sequence of str
        Origins of pages that may read: ``"https://viewer.example"``.
    follow_links : bool
        Whether symbolic links may lead out of a path.
    frames : bool
        Whether pages of this machine, such as notebooks, and those of `allow_origins` may show the page in a frame.
    threads : int
        Threads for the work of one request; 0: all cores.
    max_memory : int or str
        Memory for the data of all requests together, such as ``"512M"``. A request that does not fit is answered with
        status 503.

    Returns
    -------
    Server
        Keep it: it ends when nothing refers to it.

    Examples
    --------
    >>> import urllib.request
    >>> tessera.save("ramp.zarr", np.arange(6).reshape(2, 3), chunks=(1, 3), format="v3", codec="none")
    >>> with tessera.serve("ramp.zarr") as server:
    ...     chunk = urllib.request.urlopen(f"{server}v2/1.0").read()
    >>> np.frombuffer(chunk, "i8")
    array([3, 4, 5])
    """
    if not paths:
        raise InvalidArgument("serve: there is nothing to serve")
    handle = _tessera.serve([_path_of(path) for path in paths], port, token=token, hosts=_texts(hosts),
                            origins=_texts(allow_origins), bind=bind, follow_links=follow_links, frames=frames,
                            options=work(threads, max_memory))
    return Server(handle)


class Shown:
    """The page of an array, from :meth:`tessera.Array.show`. A notebook displays it as a frame.

    Its server ends with :meth:`close`, when nothing refers to this any more, or with the process.
    """

    def __init__(self, server: Server, name: str, height: int):
        self.server = server
        """The server behind it."""
        self.height = height
        """Of the frame, in pixels."""
        self._name = name

    @property
    def url(self) -> str:
        """The page, for a browser."""
        return self.server.url

    def close(self) -> None:
        """End the server. May be called twice."""
        self.server.close()

    def _repr_html_(self) -> str:
        if self.server.closed:
            return f"<p>{html.escape(self._name)}: its server was closed.</p>"
        return (f'<iframe src="{html.escape(self.url)}" title="{html.escape(self._name)}" width="100%" '
                f'height="{self.height}" style="border:1px solid #868b94;border-radius:6px"></iframe>')

    def __repr__(self) -> str:
        return f"<tessera.Shown {self._name!r} {'closed' if self.server.closed else self.url}>"


def show(array: Any, height: int, **options: Any) -> Union[Shown, Picture]:
    """What :meth:`tessera.Array.show` returns."""
    try:
        server = serve(array, frames=True, **options)
    except (InvalidArgument, NotFound, Unsupported):
        picture: Picture = array.view()  # it lies in no file of this machine, or this build has no server
        return picture
    return Shown(server, array.path, height)
