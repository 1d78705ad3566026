"""A codec and a kind of store of a program's own: extensions.py COPY, a new array on the disk, encoded by the codec."""
import collections
import sys

import numpy as np

import tessera


class Xor:
    """Each byte xor a key. In the manner of numcodecs, whose codecs can be added as they are."""

    codec_id = "xor"

    def __init__(self, key=42):
        self.key = key

    def encode(self, data):
        return np.frombuffer(data, "u1") ^ np.uint8(self.key)

    decode = encode


# Before anything is opened or created. "mem:NAME/PREFIX" is the key PREFIX in the dict stores[NAME].
stores = collections.defaultdict(dict)
tessera.add_codec(Xor)
tessera.add_store("mem", stores.__getitem__)

codec = '{"name": "numcodecs.xor", "configuration": {"key": 7}}'
a = tessera.create("mem:scratch/waves", (4, 6), "i4", chunks=(2, 3), codec=codec, format="v2")
a[1::2, :3] = [[1, 2, 3], [4, 5, 6]]
print(sorted(stores["scratch"]))
print(tessera.open("mem:scratch")["waves"][:])
tessera.copy("mem:scratch/waves", sys.argv[1])
