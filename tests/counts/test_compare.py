"""compare.py sees what changed, lets pass what is within its margin, and accepts when told to."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import compare  # noqa: E402

BASELINE = pathlib.Path(__file__).with_name("baseline.tsv")

TRACE = """\
100 execve("operations", ["operations"], 0x7ffd /* 5 vars */) = 0
100 read(3, ""..., 832)                  = 832
100 getppid()                           = 99
100 openat(5, ""..., O_RDONLY|O_CLOEXEC)  = 6
100 pread64(6, ""..., 4096, 0)           = 4096
100 pread64(6, ""..., 100, 4096)         = 17
100 openat(5, ""..., O_RDONLY|O_CLOEXEC)  = -1 ENOENT (No such file or directory)
100 mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, -1, 0) = 0x7f0000000000
100 write(7, ""..., 33)                  = 33
100 getppid()                           = 99
100 write(1, ""..., 20)                  = 20
100 +++ exited with 0 +++
"""


class Compare(unittest.TestCase):
    def setUp(self):
        self.made, self.rows = compare.load(BASELINE)
        self.again = compare.load(BASELINE)[1]

    def changes(self, name, what, change):
        self.again[name][what] = change(self.again[name][what])
        return [(operation, what) for operation, what, _, _ in compare.differences(self.rows, self.again)]

    def test_only_calls_between_the_marks_count(self):
        read, written, calls = compare.parse_strace(TRACE)
        self.assertEqual((read, written), (4096 + 17, 33))
        self.assertEqual(calls, {"openat": 2, "pread64": 2, "write": 1})

    def test_the_baseline_agrees_with_itself(self):
        self.assertGreater(len(self.rows), 20)
        self.assertEqual(compare.differences(self.rows, self.again), [])

    def test_one_allocation_more_is_seen(self):
        self.assertEqual(self.changes("open_v2", "allocations", lambda n: n + 1), [("open_v2", "allocations")])

    def test_one_byte_less_is_seen(self):
        self.assertEqual(self.changes("read_20_boxes", "read_bytes", lambda n: n - 1), [("read_20_boxes", "read_bytes")])

    def test_what_names_of_the_machine_add_is_let_pass(self):
        self.assertEqual(self.changes("write_box_undoable", "written_bytes", lambda n: n + 90), [])
        self.assertEqual(self.changes("write_box_undoable", "written_bytes", lambda n: n + 90),
                         [("write_box_undoable", "written_bytes")])

    def test_another_system_call_is_seen(self):
        self.again["open_v2"]["calls"]["fsync"] += 1
        self.assertEqual([f[1:] for f in compare.differences(self.rows, self.again)], [("fsync()", 0, 1)])

    def test_instructions_have_a_margin(self):
        self.assertEqual(self.changes("digest", "instructions", lambda n: int(n * 1.04)), [])
        self.assertEqual(self.changes("digest", "instructions", lambda n: int(n * 1.04)), [("digest", "instructions")])

    def test_fewer_instructions_have_to_be_accepted_too(self):
        self.assertEqual(self.changes("digest", "instructions", lambda n: n // 2), [("digest", "instructions")])

    def test_instructions_of_another_compiler_are_not_compared(self):
        self.again["digest"]["instructions"] *= 2
        self.assertEqual(compare.differences(self.rows, self.again, instructions=False), [])

    def test_operations_that_come_and_go_are_seen(self):
        self.again["new"] = self.again.pop("digest")
        self.assertEqual([f[0] for f in compare.differences(self.rows, self.again)], ["digest", "new"])

    def test_what_is_stored_is_what_is_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder, "baseline.tsv")
            compare.store(copy, self.made, self.rows)
            self.assertEqual(copy.read_text(), BASELINE.read_text())

    def test_the_table_names_both_numbers(self):
        text = compare.table([("open_v2", "allocations", 100, 150)])
        for word in ("open_v2", "allocations", "100", "150", "+50.0 %"):
            self.assertIn(word, text)


if __name__ == "__main__":
    unittest.main()
