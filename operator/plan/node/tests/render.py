#!/usr/bin/env python3
"""Renders what the operator renders from this folder: user data and the Run Command document.

usage: render.py userdata CONFIG.json | render.py document
The operator's own rendering has to give the same; this one lets the scripts be tested without it."""
import base64
import gzip
import io
import json
import os
import sys
import tarfile

NODE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILES = {"head": ["boot.sh", "head.py", "node.py", "slurm.conf"], "compute": ["boot.sh", "node.py"]}


def read(name):
    with open(os.path.join(NODE, name)) as file:
        return file.read()


def payload(config):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        texts = {"config.json": json.dumps(config, separators=(",", ":"))}
        texts.update((name, read(name)) for name in FILES[config["role"]])
        for name in sorted(texts):
            data = texts[name].encode()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755 if name == "boot.sh" else 0o644
            tar.addfile(entry, io.BytesIO(data))
    return gzip.compress(packed.getvalue(), 9, mtime=0)


def userdata(config):
    text = read("stub.sh") + "__PAYLOAD__\n" + base64.b64encode(payload(config)).decode() + "\n"
    return text.encode()


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
