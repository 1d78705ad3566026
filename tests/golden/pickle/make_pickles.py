"""Writes the pickles beside this script. Run with CPython 3.11 and NumPy 1.24: /usr/bin/python3 make_pickles.py

good_*: object arrays of str or bytes in every protocol, with expected.json of their content (bytes as Latin-1 text).
../bad/pickle/*: what must be refused, named for the attack; none of them is ever to be unpickled by Python.
"""

import io
import json
import pathlib
import pickle
import struct

import numpy as np

here = pathlib.Path(__file__).resolve().parent
bad_folder = here.parent / "bad" / "pickle"
bad_folder.mkdir(parents=True, exist_ok=True)
expected = {}


def good(name, array, pickled):
    (here / f"good_{name}.pkl").write_bytes(pickled)
    flat = [x if isinstance(x, str) else x.decode("latin-1") for x in array.ravel().tolist()]
    expected[f"good_{name}.pkl"] = {
        "shape": list(array.shape),
        "bytes": any(isinstance(x, bytes) for x in array.ravel().tolist()),
        "elements": flat,
    }


arrays = {
    "text": np.array(["hello", "é☃", "", "😀\\u0041\\ \n\r\x00x", "y" * 300, "hello", "z", "z", ""], dtype=object),
    "bytes": np.array([b"hello", b"\xff\x00\x80z", b"", b"w" * 300, b"b", b"b", b""], dtype=object),
    "rows": np.array([["a1", "b1"], ["c1", "d1"], ["e1", "f1"]], dtype=object),
    "fortran": np.array([["a1", "b1"], ["c1", "d1"], ["e1", "f1"]], dtype=object, order="F"),
    "four_dims": np.array([str(i) * 3 for i in range(24)], dtype=object).reshape(1, 2, 3, 4),
    "zero_d": np.array("only", dtype=object),
    "one": np.array(["only"], dtype=object),
    "empty": np.zeros((0, 3), dtype=object),
    "batches": np.array([f"element {i}" for i in range(2001)], dtype=object),
}
for name, array in arrays.items():
    for protocol in range(6):
        if name == "batches" and protocol not in (0, 3, 5):
            continue
        good(f"{name}_p{protocol}", array, pickle.dumps(array, protocol=protocol))

text = arrays["text"]
# Pure Python's pickler; NumPy 2's names; what pickletools.optimize leaves of the memo; bytes behind the end.
out = io.BytesIO()
pickle._Pickler(out, protocol=2).dump(text)
good("python_pickler", text, out.getvalue())
good("numpy2", text, pickle.dumps(text, protocol=3).replace(b"numpy.core.multiarray", b"numpy._core.multiarray"))
import pickletools

good("optimized", text, pickletools.optimize(pickle.dumps(text, protocol=3)))
good("trailing", text, pickle.dumps(text, protocol=3) + b"more")
# Python 2: names and strings are str, the elements unicode and ASCII str.
good(
    "python2",
    np.array(["ab", "é"], dtype=object),
    b"\x80\x02cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\x00\x85U\x01b\x87Rq\x03(K\x01K\x02\x85"
    b"cnumpy\ndtype\nq\x04U\x02O8K\x00K\x01\x87Rq\x05(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tb\x89]q\x06("
    b"U\x02abq\x07X\x02\x00\x00\x00\xc3\xa9q\x08etb.".replace(b"q\x01", b"q\x00", 1)
    .replace(b"q\x02K", b"q\x01K")
    .replace(b"q\x03(", b"q\x02(")
    .replace(b"q\x04U", b"q\x03U")
    .replace(b"q\x05(", b"q\x04(")
    .replace(b"q\x06(", b"q\x05(")
    .replace(b"q\x07X", b"q\x06X")
    .replace(b"q\x08e", b"q\x07e"),
)
good("quoted_strings", np.array(["ab", "c'd"], dtype=object), (
    b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR(I1\n(I2\ntcnumpy\ndtype\n(S'O8'\nI0\nI1\ntR"
    b"(I3\nS'|'\nNNNI-1\nI-1\nI63\ntbI00\n(lp0\nS'ab'\naS\"c'd\"\natb."))
(here / "expected.json").write_text(json.dumps(expected, indent=0, sort_keys=True) + "\n")

# ---- bad ones

head = pickle.dumps(np.array(["xx", "yy"], dtype=object), protocol=3)
start, end = head[: head.index(b"]q\r(") + 4], b"etq\x10b."  # around the elements
assert start + b"X\2\0\0\0xxq\x0eX\2\0\0\0yyq\x0f" + end == head


def bad(name, pickled, error):
    (bad_folder / f"{name}.pkl").write_bytes(pickled)
    errors[f"{name}.pkl"] = error


class Run:
    def __reduce__(self):
        import os

        return os.system, ("touch pickle_was_executed",)


class Evil:
    def __reduce__(self):
        return eval, ("__import__('os').system('touch pickle_was_executed')",)


errors = {}
bad("os_system", pickle.dumps(Run(), protocol=3), "'posix'.'system'")
bad("os_system_p0", pickle.dumps(Run(), protocol=0), "'posix'.'system'")
bad("os_system_p5", pickle.dumps(Run(), protocol=5), "'posix'.'system'")
bad("os_system_element", pickle.dumps(np.array(["a", Run()], dtype=object), protocol=3), "'posix'.'system'")
bad("eval_element", pickle.dumps(np.array([Evil()], dtype=object), protocol=4), "'builtins'.'eval'")
bad("long_name", b"\x80\x03c" + b"m" * 5000 + b"\nname\n.", "…")
bad("bytes_of_something", start + b"cbuiltins\nbytes\nX\x01\0\0\0a\x85R" + end, "bytes() of something")
bad("encode_as_zip", start + b"c_codecs\nencode\nX\x01\0\0\0aX\x03\0\0\0zip\x86R" + end, "encoded as 'zip'")
bad("encode_again", start + b"c_codecs\nencode\nq\x0eX\xe8\x03\0\0" + b"x" * 1000 + b"q\x0fX\x06\0\0\0latin1q\x10\x86R" +
    b"h\x0eh\x0fh\x10\x86R" * 99 + b"etq\x11b.", "more bytes are encoded")
bad("dict", pickle.dumps(np.array(["a", {"k": 1}], dtype=object), protocol=3), "a dict at element 1")
bad("list", pickle.dumps(np.array([None, ["a"]], dtype=object)[1:], protocol=3), "a list at element 0")
bad("none", pickle.dumps(np.array(["a", "b", None], dtype=object), protocol=3), "None at element 2")
bad("number", pickle.dumps(np.array(["a", 1], dtype=object), protocol=0), "a number at element 1")
bad("float", pickle.dumps(np.array([1.5], dtype=object), protocol=3), "a float at element 0")
bad("bool", pickle.dumps(np.array(["a", True], dtype=object), protocol=3), "a bool at element 1")
bad("set", pickle.dumps(np.array([set()], dtype=object), protocol=4), "a set at element 0")
nested = np.zeros(2, dtype=object)
nested[0], nested[1] = "a", bytearray(b"x")
bad("bytearray", pickle.dumps(nested, protocol=5), "a bytearray at element 1")
nested[0], nested[1] = "a", np.zeros(2)
bad("array", pickle.dumps(nested, protocol=3), "a NumPy object at element 1")
nested[1] = nested
bad("itself", pickle.dumps(nested, protocol=3), "a NumPy array at element 1")
nested[1] = ("a", "b")
bad("tuple", pickle.dumps(nested, protocol=3), "a tuple at element 1")
bad("mixed", pickle.dumps(np.array(["a", b"b"], dtype=object), protocol=3), "bytes at element 1")
bad("numpy_str", pickle.dumps(np.array([np.str_("a"), 1], dtype=object)[:1], protocol=3), "'scalar'")
bad("surrogate", pickle.dumps(np.array(["a", "\ud800"], dtype=object), protocol=3), "not UTF-8")
bad("surrogate_p0", pickle.dumps(np.array(["\ud800"], dtype=object), protocol=0), "no character")
bad("not_objects", pickle.dumps(np.arange(3), protocol=3), "dtype 'i8'")
bad("no_array", pickle.dumps("text", protocol=3), "does not hold a NumPy array")
bad("protocol_6", b"\x80\x06" + head[2:], "protocol 6")
bad("deep_marks", b"\x80\x03" + b"(" * 50000 + b".", "does not hold")
bad("deep_tuples", b"\x80\x03)" + b"\x85" * 50000 + b".", "does not hold")
bad("deep_lists", b"\x80\x03" + b"]" * 50000, "a list")
bad("deep_dicts", b"\x80\x03" + b"}" * 1000, "a dict")
bad("tuple_bomb", b"\x80\x03)" + b"".join(b"q%c(" % i + b"h%c" % i * 10 + b"t" for i in range(100)) + b".", "does not hold")
bad("memo_gap", b"\x80\x03Nr\xff\xff\xff\xff.", "memo number 4294967295")
bad("memo_gap_p0", b"Np99999999999999999999\n.", "no memo number")
bad("memo_missing", b"\x80\x03h\x05.", "memo number 5")
bad("memo_of_nothing", b"\x80\x03q\x00.", "notes what is not there")
bad("huge_text", start + b"X\xff\xff\xff\xffab", "4294967295 bytes are needed")
bad("huge_text8", start + b"\x8d" + struct.pack("<Q", 1 << 62) + b"ab", "at most 4 GiB")
bad("huge_bytes8", start + b"\x8e" + b"\xff" * 8, "at most 4 GiB")
bad("huge_frame", b"\x80\x04\x95" + b"\xff" * 8, "a frame of")
bad("huge_long", b"\x80\x03\x8a\xff" + b"\x01" * 300, "255 bytes")
bad("long4", b"\x80\x03\x8b\xff\xff\xff\x7f", "opcode 0x8b")
bad("no_line_end", b"cnumpy", "inside a line")
bad("persistent_id", b"Pevil\n.", "opcode 0x50")
bad("inst", b"(S'x'\nios\nsystem\n.", "opcode 0x69")
bad("newobj", b"\x80\x02cnumpy\nndarray\n)\x81.", "opcode 0x81")
bad("extension", b"\x80\x02\x82\x01.", "opcode 0x82")
bad("dup", b"\x80\x03)2.", "opcode 0x32")
bad("empty", b"", "0")
bad("stop", b".", "does not hold")
bad("no_stop", head[:-1], "bytes are needed")
bad("reduce_nothing", b"\x80\x03R", "takes more")
bad("build_nothing", b"\x80\x03)b.", "nothing")
bad("append_nothing", b"\x80\x03a.", "appends")
bad("appends_nothing", b"\x80\x03(e.", "appends")
bad("append_to_tuple", b"\x80\x03)(Nae.", "appends")
bad("tuple_without_mark", b"\x80\x03Nt.", "no mark")
bad("tuple_over_mark", b"\x80\x03(\x85.", "takes more")
bad("reconstruct_dtype", b"\x80\x03cnumpy.core.multiarray\n_reconstruct\ncnumpy\ndtype\nNN\x87R.", "no ndarray")
bad("call_ndarray", b"\x80\x03cnumpy\nndarray\n)R.", "direct call")
bad("state_twice", head[:-1] + b"(K\x01K\x02\x85h\nh\x0dh\x0dtb.", "state of the array")
bad("shape_of_text", head.replace(b"K\x01K\x02\x85", b"K\x01X\0\0\0\0\x85"), "not made of lengths")
bad("shape_negative", head.replace(b"K\x01K\x02\x85", b"K\x01J\xff\xff\xff\xff\x85"), "not made of lengths")
bad("shape_huge", head.replace(b"K\x01K\x02\x85", b"K\x01\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x3f\x85"), "2 are in the list")
bad("shape_overflow", head.replace(b"K\x01K\x02\x85", b"K\x01" + b"(" + b"\x8a\x08" + b"\xff" * 7 + b"\x3fK\x08t"), "")
bad("shape_33_dims", head.replace(b"K\x01K\x02\x85", b"K\x01(" + b"K\x01" * 33 + b"t"), "33")
bad("shape_short", head.replace(b"K\x01K\x02\x85", b"K\x01K\x01\x85"), "has 1 elements, but 2")
(bad_folder / "errors.json").write_text(json.dumps(errors, indent=0, sort_keys=True) + "\n")
