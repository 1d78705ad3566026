#!/usr/bin/env python3
"""What CTest's report says, for tools/test: test_report.py REPORT.xml PRESET SAID

Prints, in one line, how many tests passed and failed, and the names of those that failed and of those that were
skipped. Appends the last lines of what failed to the file SAID. A test of CTest that runs many cases of GoogleTest
counts as that many.
"""

import re
import sys
import xml.etree.ElementTree as tree

NOISE = re.compile(r"[.]{3} ok$|^[-= ]*$|^(Ran|FAILED) |^\[ +(OK|RUN) |^\[-+\]")


def cases_inside(text, word):
    """The names of GoogleTest's cases that the closing lines list: "[  FAILED  ] Suite.name, where GetParam() = 3"."""
    lines = re.findall(rf"^\[ +{word} +\] ([^\s,]+[.][^\s,]+)(?=,|$| \()", text, re.M)
    return list(dict.fromkeys(lines))


def main(report, preset, said):
    tests = list(tree.parse(report).getroot().iter("testcase"))
    if not tests:
        sys.exit("no tests")
    passed, failed, skipped = 0, [], []
    bad = [test for test in tests if test.get("status") != "run" and test.find("skipped") is None]
    for test in tests:
        name, text = test.get("name"), test.findtext("system-out") or ""
        inside = [int(n) for n in re.findall(r"^\[  PASSED  \] (\d+) test", text, re.M)]
        if test.find("skipped") is not None:
            skipped.append(name)
            continue
        skipped += cases_inside(text, "SKIPPED")
        passed += sum(inside) if inside else test not in bad
        if test in bad:
            failed += cases_inside(text, "FAILED") or [name]
            lines = [line[:300] for line in text.splitlines() if not NOISE.search(line)][-max(8, 60 // len(bad)):]
            with open(said, "a", encoding="utf-8") as out:
                out.write("\n".join(["", f"== {name} ({preset})", *lines, ""]))
    print(passed, len(failed), *failed, *skipped)


if __name__ == "__main__":
    main(*sys.argv[1:])
