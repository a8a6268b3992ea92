"""Accounts and keys, without touching this machine's own: commands are noted instead of run."""
import importlib
import json
import os
import sys
import types
import unittest

from . import render
from .stage import Head

sys.path.insert(0, render.NODE)
ALICE = {"name": "alice", "uid": 4001, "keys": ["ssh-ed25519 AAAA alice@laptop"]}
BOB = {"name": "bob", "uid": 4002, "keys": []}


class Accounts(unittest.TestCase):
    def setUp(self):
        self.stage = Head()
        self.addCleanup(self.stage.close)
        os.environ.update({key: value for key, value in self.stage.environment().items() if key.startswith("HPCOPS_")})
        importlib.reload(importlib.import_module("node"))
        self.users = importlib.reload(importlib.import_module("users"))
        self.stage.make("state/keys")
        self.ran, self.machine = [], {}
        self.users.run = self.run_command
        self.users.lookup = lambda find, name: self.machine.get(name)
        self.users.pwd = types.SimpleNamespace(getpwnam=self.machine.get)

    def run_command(self, *command):
        self.ran.append(" ".join(command))
        if command[0] == "useradd":
            self.machine[command[-1]] = types.SimpleNamespace(pw_uid=int(command[2]))
        if command[0] == "cp":
            os.makedirs(command[-1])
        if "test" in command:
            raise self.users.Trouble("no key yet")
        return "ssh-ed25519 OWN %s\n" % command[2] if "cat" in command else ""

    def settle(self, is_head, *users):
        self.users.keep(list(users))
        self.users.settle(is_head)

    def key_files(self):
        return {name: self.stage.read("state/keys/" + name) for name in os.listdir(os.path.join(self.stage.state, "keys"))}

    def test_the_head_makes_account_home_and_keys(self):
        os.makedirs(os.path.join(self.stage.state, "home"))
        self.settle(True, ALICE)
        self.assertIn("useradd -u 4001 -g alice -M -d %s/home/alice -s /bin/bash alice" % self.stage.state, self.ran)
        self.assertEqual(os.stat(os.path.join(self.stage.state, "home/alice")).st_mode & 0o777, 0o700)
        self.assertEqual(self.key_files(), {"alice": "ssh-ed25519 AAAA alice@laptop\nssh-ed25519 OWN alice\n"})

    def test_a_node_makes_the_account_and_leaves_the_rest_to_the_head(self):
        self.settle(False, BOB)
        self.assertEqual([line.split()[0] for line in self.ran], ["groupadd", "useradd"])

    def test_root_touches_nothing_in_a_home_but_as_its_user(self):
        os.makedirs(os.path.join(self.stage.state, "home/alice"))
        self.settle(True, ALICE)
        within = [line for line in self.ran if "/home/alice/" in line]
        self.assertTrue(within and all(line.startswith("runuser -u alice -- ") for line in within), within)

    def test_whoever_is_taken_out_loses_the_keys_and_keeps_the_files(self):
        os.makedirs(os.path.join(self.stage.state, "home/alice"))
        os.makedirs(os.path.join(self.stage.state, "home/bob"))
        self.settle(True, ALICE, BOB)
        self.settle(True, BOB)
        self.assertEqual(set(self.key_files()), {"bob"})
        self.assertTrue(os.path.isdir(os.path.join(self.stage.state, "home/alice")))

    def test_a_name_that_the_image_has_with_another_uid_is_told_and_keeps_nobody_back(self):
        self.machine["alice"] = types.SimpleNamespace(pw_uid=1000)
        with self.assertRaisesRegex(self.users.Trouble, "the image has a user alice with uid 1000, not 4001"):
            self.settle(False, ALICE, BOB)
        self.assertIn("bob", self.machine)

    def test_a_list_that_is_the_same_is_not_written_again(self):
        self.assertTrue(self.users.keep([ALICE]))
        self.assertFalse(self.users.keep([json.loads(json.dumps(ALICE))]))


if __name__ == "__main__":
    unittest.main()
