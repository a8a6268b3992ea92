#!/usr/bin/env python3
"""Counts the tests in a stage's log: prints how many passed and how many failed. A stage that runs no test counts as one.

usage: count.py LOG EXIT_CODE
"""
import re
import sys

RUST = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed", re.M)
PYTHON = re.compile(r"^Ran (\d+) tests? in ", re.M)
PYTHON_BAD = re.compile(r"^FAILED \((?:.*?)(?:failures=(\d+))?(?:, )?(?:errors=(\d+))?\)", re.M)


def count(text, code):
    passed = failed = 0
    for good, bad in RUST.findall(text):
        passed, failed = passed + int(good), failed + int(bad)
    bad_python = sum(int(n or 0) for pair in PYTHON_BAD.findall(text) for n in pair)
    passed, failed = passed + sum(map(int, PYTHON.findall(text))) - bad_python, failed + bad_python
    if passed + failed == 0:
        return (1, 0) if code == 0 else (0, 1)
    # A failure without a failed test, such as one that does not compile, must not be lost.
    return passed, max(failed, int(code != 0))


if __name__ == "__main__":
    print(*count(open(sys.argv[1], errors="replace").read(), int(sys.argv[2])))
