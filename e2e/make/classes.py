#!/usr/bin/env python3
"""Checks that every story named in docs/bug-classes.md has passed in this run.

usage: classes.py PAGE RESULTS"""
import re
import sys

STORY = re.compile(r"`e2e/tests/stories/(\w+)\.rs::(\w+)`")


def unpassed(page, results):
    """Stories of the page without a line that says ok."""
    rows = (line.split("\t") for line in results.splitlines())
    passed = {row[2].rsplit("stories::", 1)[-1] for row in rows if len(row) == 3 and row[1] == "ok"}
    named = {"%s::%s" % pair for pair in STORY.findall(page)}
    return sorted(named - passed)


if __name__ == "__main__":
    missing = unpassed(*(open(path, errors="replace").read() for path in sys.argv[1:3]))
    for name in missing:
        print("%s is named in %s and has not passed" % (name, sys.argv[1]))
    sys.exit(bool(missing))
