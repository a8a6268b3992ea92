#!/usr/bin/env python3
"""Renders what the operator renders from this folder: user data and the Run Command document.

usage: render.py userdata CONFIG.json | render.py document
The operator's own rendering gives the same, but for comments; this one lets the scripts be tested without it."""
import gzip
import json
import os
import sys

NODE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILES = {"head": ["boot.sh", "head.py", "node.py", "power.py", "resume.sh", "slurm.conf", "suspend.sh",
                  "users.py"],
         "compute": ["boot.sh", "node.py", "users.py"]}


def read(name):
    with open(os.path.join(NODE, name)) as file:
        return file.read()


def userdata(config):
    files = {"config.json": json.dumps(config, separators=(",", ":"))}
    files.update((name, read(name)) for name in FILES[config["role"]])
    text = "%s\n__PAYLOAD__\n%s\n" % (read("stub.sh").rstrip(), json.dumps(files, separators=(",", ":"), sort_keys=True))
    return gzip.compress(text.encode(), 9, mtime=0)


def document():
    lines = []
    for line in read("document.sh").splitlines():
        lines.append(read(line.split()[1]).rstrip("\n") if line.startswith("#include ") else line)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if sys.argv[1] == "userdata":
        with open(sys.argv[2]) as given:
            sys.stdout.buffer.write(userdata(json.load(given)))
    else:
        sys.stdout.write(document())
