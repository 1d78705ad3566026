# mypy: ignore-errors
"""zarr-python 3: a store of anything that Tessera opens, and a codec pipeline.

========================  =======================================================================================
:class:`Store`            what Tessera opens, as a store: ``zarr.open(tessera.zarr.Store("dem.zarr"))``
:class:`CodecPipeline`    Tessera's codecs and locks in zarr's own arrays:
                          ``zarr.config.set({"codec_pipeline.path": "tessera.zarr.CodecPipeline"})``
========================  =======================================================================================

Takes zarr-python 3; with zarr-python 2 there are :func:`tessera.zarr_view` and :class:`tessera.KeyStore`.
"""

from __future__ import annotations

import importlib.metadata

_version = importlib.metadata.version("zarr")
if int(_version.partition(".")[0]) < 3:
    raise ImportError(f"tessera.zarr takes zarr-python 3, and {_version} is installed: use tessera.zarr_view() to read "
                      "and tessera.KeyStore to write")

from zarr.registry import register_pipeline  # noqa: E402

from ._calls import in_words  # noqa: E402
from ._zarr_pipeline import CodecPipeline  # noqa: E402
from ._zarr_store import Store  # noqa: E402

# Under these names they are configured, pickled and documented.
CodecPipeline.__module__ = Store.__module__ = __name__
# Afterwards, because zarr-python 3.0 finds it by the name that it has then.
register_pipeline(CodecPipeline)
in_words(Store)

__all__ = ["CodecPipeline", "Store"]
