"""test_report.py counts each case of GoogleTest, and names what failed and what was skipped."""

import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(os.environ["TESSERA_SOURCE"], "tools", "checks")))
import test_report  # noqa: E402

REPORT = """<testsuite>
<testcase name="alone" status="run"><system-out>fine</system-out></testcase>
<testcase name="many" status="run"><system-out>[ RUN      ] A.one
[       OK ] A.one (3 ms)
[  PASSED  ] 38 tests.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] A.needs_root</system-out></testcase>
<testcase name="broken" status="fail"><system-out>[ RUN      ] A.two
file.cpp:3: Failure
[  FAILED  ] A.two, where GetParam() = "v3" (4 ms)
[  PASSED  ] 5 tests.
[  FAILED  ] 2 tests, listed below:
[  FAILED  ] A.two, where GetParam() = "v3"
[  FAILED  ] All/B.three/0
</system-out></testcase>
<testcase name="crashed" status="fail"><system-out>[ RUN      ] A.four</system-out></testcase>
<testcase name="absent" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
</testsuite>"""


class Report(unittest.TestCase):
    def test_counts_and_names(self):
        with tempfile.TemporaryDirectory(prefix="tessera-test-") as folder:
            report, said = pathlib.Path(folder, "tests.xml"), pathlib.Path(folder, "failed.txt")
            report.write_text(REPORT)
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                test_report.main(str(report), "release", str(said))
            self.assertEqual(printed.getvalue().split(),
                             ["44", "3", "A.two", "All/B.three/0", "crashed", "A.needs_root", "absent"])
            text = said.read_text()
            self.assertIn("== broken (release)\nfile.cpp:3: Failure", text)
            self.assertNotIn("RUN", text)

    def test_no_tests_are_a_failure(self):
        with tempfile.TemporaryDirectory(prefix="tessera-test-") as folder:
            report = pathlib.Path(folder, "tests.xml")
            report.write_text("<testsuite/>")
            with self.assertRaises(SystemExit):
                test_report.main(str(report), "release", "")


if __name__ == "__main__":
    unittest.main()
