"""Boot steps that set a machine up, in a tree of their own: what would change the machine is noted instead of run."""
import os
import shutil
import subprocess
import tempfile
import unittest

from . import render

STUBS = "blkid() { :; }\n" + "\n".join('%s() { echo "%s $*"; }' % (name, name) for name in ("vgcreate", "lvcreate", "mkfs.ext4", "mount"))


class Steps(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.top)

    def write(self, path, text):
        path = os.path.join(self.top, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)

    def read(self, path):
        with open(os.path.join(self.top, path)) as file:
            return file.read()

    def run_step(self, step, settings=""):
        """One function of boot.sh, without the rest of the boot."""
        functions = render.read("boot.sh").split("# until_true ", 1)[1]
        functions = functions.rsplit("\nmain\n", 1)[0].split("\n", 1)[1]
        script = "set -euo pipefail\nsys=%s here=%s\n%s\n%s\n%s\nstep_%s\n" % (
            self.top, render.NODE, functions, STUBS, settings, step)
        environment = dict(os.environ, HPCOPS_SYS=self.top, HPCOPS_HERE=self.top)
        answer = subprocess.run(["bash", "-c", script], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        self.assertEqual(answer.returncode, 0, answer.stdout.decode())
        return answer.stdout.decode().splitlines()

    def cpus(self, siblings):
        for cpu, text in enumerate(siblings):
            self.write("devices/system/cpu/cpu%d/topology/thread_siblings_list" % cpu, text + "\n")
            self.write("devices/system/cpu/cpu%d/online" % cpu, "1\n")

    def online(self, count):
        return [int(self.read("devices/system/cpu/cpu%d/online" % cpu)) for cpu in range(count)]

    def test_all_but_the_first_thread_of_each_core_go_off_line(self):
        for siblings, expected in ((("0,2", "1,3", "0,2", "1,3"), [1, 1, 0, 0]), (("0-1", "0-1", "2-3", "2-3"), [1, 0, 1, 0]),
                                   (("0", "1"), [1, 1])):
            with self.subTest(siblings):
                self.cpus(siblings)
                self.run_step("threads", "threads=False")
                self.assertEqual(self.online(len(siblings)), expected)

    def test_with_multithreading_every_thread_stays(self):
        self.cpus(("0,2", "1,3", "0,2", "1,3"))
        self.run_step("threads", "threads=True")
        self.assertEqual(self.online(4), [1, 1, 1, 1])

    def disk(self, name, model):
        self.write("block/%s/device/model" % name, model + "\n")

    def scratch(self):
        self.write("config.json", "{}")
        return self.run_step("local_scratch", "scratch=%s/local; here=%s" % (self.top, render.NODE))

    def test_the_nodes_own_disks_become_one_file_system_and_others_are_left_alone(self):
        self.disk("nvme0n1", "Amazon Elastic Block Store")
        self.disk("nvme1n1", "Amazon EC2 NVMe Instance Storage              ")
        self.disk("nvme2n1", "Amazon EC2 NVMe Instance Storage")
        self.assertEqual(self.scratch(), [
            "vgcreate -y -W y hpcops /dev/nvme1n1 /dev/nvme2n1",
            "lvcreate -y -W y -n scratch -i 2 -l 100%FREE hpcops",
            "mkfs.ext4 -q -E nodiscard /dev/hpcops/scratch",
            "mount -o noatime,nodiratime /dev/hpcops/scratch %s/local" % self.top])
        self.assertEqual(os.stat(os.path.join(self.top, "local")).st_mode & 0o7777, 0o1777)

    def test_a_type_without_disks_of_its_own_has_no_scratch(self):
        self.disk("nvme0n1", "Amazon Elastic Block Store")
        self.assertEqual(self.scratch(), [])
        self.assertFalse(os.path.exists(os.path.join(self.top, "local")))


if __name__ == "__main__":
    unittest.main()
