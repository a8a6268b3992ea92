"""A head in a temporary folder: configuration, shared storage, Slurm's commands."""
import base64
import gzip
import json
import os
import pwd
import shutil
import subprocess
import tempfile

from . import render

HERE = os.path.dirname(os.path.abspath(__file__))
INSTANCE = "i-0123456789abcdef0"


def an_unprivileged_user():
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())


class Head:
    def __init__(self):
        self.top = tempfile.mkdtemp()
        os.chmod(self.top, 0o755)
        self.user = an_unprivileged_user()
        self.storage = self.make("fsx")
        self.make("fsx/.hpcops")
        self.slurm = self.make("slurm")
        os.chmod(self.slurm, 0o777)  # jobs.json is written by root and by the user
        self.make("slurm/bin")
        self.make("slurm/etc")
        self.write("slurm/etc/slurm.conf", "SlurmUser=slurm\n")
        shutil.copy(os.path.join(HERE, "fake_slurm.py"), os.path.join(self.slurm, "fake"))
        os.chmod(os.path.join(self.slurm, "fake"), 0o755)
        for name in ("sbatch", "squeue", "scancel", "scontrol", "sinfo"):
            shutil.copy(os.path.join(self.slurm, "fake"), os.path.join(self.slurm, "bin", name))
        os.umask(0)
        self.write("slurm/jobs.json", "[]")
        os.chmod(os.path.join(self.slurm, "jobs.json"), 0o666)
        os.umask(0o022)
        self.state = self.make("state")
        self.make("state/nodes")
        self.make("state/demand")
        self.write("slurm.conf", render.read("slurm.conf"))
        self.write("hosts", "127.0.0.1 localhost\n")
        self.config = {
            "role": "head", "clusterUid": "uid-1", "region": "us-east-1", "headIp": "10.0.0.10",
            "user": {"name": self.user.pw_name, "uid": self.user.pw_uid},
            "storage": [{"name": "fsx", "mountPath": self.storage, "dnsName": "fs-1", "mountName": "abcd1234"}],
            "queues": [{"name": "compute", "standing": "1-2", "most": 4, "idleSeconds": 300, "cpus": 36,
                        "memoryMiB": 180000}],
            "image": {"slurmPrefix": self.slurm, "mpi": {"OpenMPI": "/opt/amazon/openmpi"}},
        }
        self.write("config.json", json.dumps(self.config))
        self.write("instance.json", json.dumps({"instanceId": INSTANCE, "ip": "10.0.0.10", "name": "head"}))

    def make(self, name):
        path = os.path.join(self.top, name)
        os.makedirs(path, mode=0o755, exist_ok=True)
        return path

    def write(self, name, text):
        with open(os.path.join(self.top, name), "w") as file:
            file.write(text)

    def read(self, name):
        with open(os.path.join(self.top, name)) as file:
            return file.read()

    def remove(self, name):
        os.unlink(os.path.join(self.top, name))

    def close(self):
        shutil.rmtree(self.top)

    def environment(self):
        return dict(os.environ, HPCOPS_HERE=self.top, HPCOPS_STATE=self.state, SECRET="of root",
                    HPCOPS_ETC_HOSTS=os.path.join(self.top, "hosts"))

    def run_document(self, payload):
        """Runs the rendered document as the agent does, the payload put in as text."""
        text = render.document().replace("{{ payload }}", payload)
        return subprocess.run(["sh", "-c", text], env=self.environment(), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)

    def ask_raw(self, payload):
        answer = self.run_document(payload)
        lines = answer.stdout.decode().splitlines()
        if len(lines) != 1 or len(lines[0]) > 23000:
            raise AssertionError("not one short line: %r %s" % (answer.stdout[:300], answer.stderr.decode()))
        return answer.returncode, json.loads(lines[0])

    def ask(self, **question):
        return self.ask_raw(base64.b64encode(gzip.compress(json.dumps(question).encode())).decode())

    def folder(self, name="a1"):
        return "%s/.hpcops/run-1/%s" % (self.storage, name)

    def attempt(self, name="a1", **changes):
        return dict({"id": "run-1-" + name, "folder": self.folder(name), "user": self.user.pw_name, "queue": "compute",
                     "nodes": 2, "ranksPerNode": 1, "timeLimitMinutes": 60, "script": "echo hello\n",
                     "environment": {}}, **changes)

    def submit(self, *attempts):
        code, answer = self.ask(op="submit", attempts=list(attempts))
        assert code == 0, answer
        return answer["attempts"]

    def poll(self, *names):
        code, answer = self.ask(op="poll", heads={INSTANCE: [
            {"id": "run-1-" + name, "folder": self.folder(name)} for name in names]})
        assert code == 0, answer
        return answer["attempts"]

    def jobs(self):
        return json.loads(self.read("slurm/jobs.json"))

    def set_job(self, index, **changes):
        jobs = self.jobs()
        jobs[index].update(changes)
        self.write("slurm/jobs.json", json.dumps(jobs))

    def forget_jobs(self):
        self.write("slurm/jobs.json", "[]")

    def job(self, name="a1", **changes):
        """The command line and environment of an attempt's batch script on its first node."""
        environment = {"PATH": "%s/bin:/usr/bin:/bin" % self.slurm, "SLURM_JOB_NODELIST": "localhost",
                       "SLURM_JOB_ID": "7", "LANG": "C.UTF-8"}
        return dict({"args": ["bash", "job.sh"], "cwd": self.folder(name), "env": environment}, **changes)

    def run_job(self, name="a1"):
        with open(self.folder(name) + "/output.log", "ab") as log:
            return subprocess.run(stdout=log, stderr=log, timeout=60, **self.job(name)).returncode

    def exit_file(self, name="a1"):
        with open(self.folder(name) + "/exit") as file:
            return json.load(file)
