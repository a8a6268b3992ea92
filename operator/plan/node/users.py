#!/usr/bin/env python3
"""Accounts, the same on every node: the head keeps the operator's list on the state volume, with homes and keys.

usage: users.py   (makes the accounts of this node; on the head their homes and keys as well)"""
import grp
import json
import os
import pwd
import subprocess
import sys

import node

LIST = os.path.join(node.STATE, "users.json")
KEYS = os.path.join(node.STATE, "keys")  # root's, so no user decides who else may log in as him


class Trouble(Exception):
    # An account cannot be as it should; the text says why.
    pass


def run(*command):
    answer = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    text = answer.stdout.decode(errors="replace")
    if answer.returncode:
        raise Trouble("%s: %s" % (" ".join(command), node.words(text)))
    return text


def listed():
    return node.read_json(LIST).get("users", [])


def keep(users):
    """Stores the operator's list; true when it is another one."""
    is_new = listed() != users
    if is_new:
        node.write(LIST, json.dumps({"users": users}))
    return is_new


def lookup(find, name):
    try:
        return find(name)
    except KeyError:
        return None


def account(name, uid):
    home = os.path.join(node.STATE, "home", name)
    if not lookup(grp.getgrnam, name):
        run("groupadd", "-g", str(uid), name)
    if not lookup(pwd.getpwnam, name):
        run("useradd", "-u", str(uid), "-g", name, "-M", "-d", home, "-s", "/bin/bash", name)
    found = pwd.getpwnam(name)
    if found.pw_uid != uid:
        raise Trouble("the image has a user %s with uid %d, not %d" % (name, found.pw_uid, uid))
    return home


def furnish(name, home):
    """A home, once; what stands there already is the user's own."""
    if not os.path.isdir(home):
        new = home + ".new"
        run("cp", "-rT", "/etc/skel", new) if os.path.isdir("/etc/skel") else os.makedirs(new, exist_ok=True)
        run("chown", "-R", "%s:%s" % (name, name), new)
        os.chmod(new, 0o700)
        os.rename(new, home)


def own_key(name, home):
    """The key by which a user goes from node to node. All as the user: root follows no link in a home."""
    secret = home + "/.ssh/id_ed25519"
    be = ("runuser", "-u", name, "--")
    run(*be, "mkdir", "-p", "-m", "700", home + "/.ssh")
    try:
        run(*be, "test", "-e", secret)
    except Trouble:
        run(*be, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", secret)
    return run(*be, "cat", secret + ".pub").splitlines()[:1]


def authorize(user, home):
    lines = user.get("keys", []) + own_key(user["name"], home)
    node.write(os.path.join(KEYS, user["name"]), "".join(line + "\n" for line in lines))


def settle(is_head):
    """Makes every account of the list; one that fails does not keep the others back."""
    troubles = []
    for user in listed():
        try:
            home = account(user["name"], user["uid"])
            if is_head:
                furnish(user["name"], home)
                authorize(user, home)
        except (Trouble, OSError) as error:
            troubles.append(str(error))
    if is_head:
        for name in set(os.listdir(KEYS)) - {user["name"] for user in listed()}:
            os.remove(os.path.join(KEYS, name))  # whoever is taken out can log in no more
    if troubles:
        raise Trouble("; ".join(troubles))


if __name__ == "__main__":
    try:
        settle(node.config()["role"] == "head")
    except Trouble as error:
        sys.exit(str(error))
