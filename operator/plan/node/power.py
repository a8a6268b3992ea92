#!/usr/bin/env python3
"""What jobs want beyond the nodes that always run: slurmctld resumes and suspends nodes through this file, the head's
loop reports what is resumed and powers down what the operator says cannot be had.

usage: power.py resume|suspend NODES   (as slurmctld calls resume.sh and suspend.sh)"""
import contextlib
import datetime
import fcntl
import json
import os
import subprocess
import sys
import time

import node

FOLDER = os.path.join(node.STATE, "demand")
AGAIN = 60  # seconds after which a gang is asked for again when the operator names no time
GONE = ("%", "~")  # ends of the state of a node that is powered down, or about to be
MUSTER = 40  # seconds; slurmctld misses no job in the first 20 of its own life
PATIENCE = 30  # seconds after which a node that should power down is told so once more


def scontrol(*arguments):
    command = [node.config()["image"]["slurmPrefix"] + "/bin/scontrol", *arguments]
    answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    text = answer.stdout.decode(errors="replace")
    if answer.returncode:
        print("%s: %s" % (" ".join(arguments), node.words(text)), flush=True)
    return text if answer.returncode == 0 else None


def queues():
    """The queues with their present numbers: those of the boot until the operator has told others."""
    told = {queue["name"]: queue for queue in node.read_json(os.path.join(node.HERE, "queues.json")).get("queues", [])}
    return [dict(queue, **told.get(queue["name"], {})) for queue in node.config()["queues"]]


def standing():
    """Names of the nodes that always run."""
    return {"%s-%d" % (queue["name"], slot) for queue in queues() for slot in node.slots(queue["standing"])}


def names_of(hostlist):
    return (scontrol("show", "hostnames", hostlist) or "").split() if hostlist else []


@contextlib.contextmanager
def locked():
    """The folder itself is the lock: a file would belong to root or to Slurm's user, and shut out the other."""
    lock = os.open(FOLDER, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def gangs():
    """What is resumed now, oldest first: gang, job, queue and the numbers of its nodes."""
    found = []
    try:
        files = os.listdir(FOLDER)
    except OSError:
        return []
    for name in files:
        entry = node.read_json(os.path.join(FOLDER, name)) if name.endswith(".json") else {}
        if entry.get("gang") and entry.get("queue"):
            found.append(dict(entry, slots=node.slots(str(entry.get("slots", "")))))
    return sorted(found, key=lambda entry: (entry.get("since", 0), entry["gang"]))


def names_in(entry):
    return ["%s-%d" % (entry["queue"], slot) for slot in entry["slots"]]


def keep(entry):
    """Stores a gang, or forgets one that has no node left."""
    path = os.path.join(FOLDER, entry["gang"] + ".json")
    if entry["slots"]:
        node.write(path, json.dumps(dict(entry, slots=node.ranges(entry["slots"]))))
    else:
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)


def resume(hostlist):
    """Each job's nodes are a gang of their own: the operator launches all of them or none."""
    # Nodes that always run are nobody's gang: the operator brings them unasked.
    left = set(names_of(hostlist)) - standing()
    jobs = resumed_jobs()
    wanted = []
    for job in jobs:
        # Slurm before 23.02 names what a job has, later ones what of it is resumed.
        resumed = names_of(job.get("nodes_resume", job.get("nodes")))
        names = [name for name in resumed if name in left]
        left.difference_update(names)
        wanted.append((str(job["job_id"]), names))
    wanted.append(("0", sorted(left)))  # powered up by hand
    now = time.time()
    with locked():
        for job, names in wanted:
            for queue, slots in by_queue(names).items():
                # The time makes a name that no later resumption of the job bears again.
                gang = "%s-%d" % (job, now * 1000)
                keep({"gang": gang, "job": job, "queue": queue, "slots": slots, "since": now})


def resumed_jobs():
    """Which job each node is resumed for, as slurmctld tells it; without it all nodes are one gang."""
    try:
        with open(os.environ.get("SLURM_RESUME_FILE", "")) as file:
            return json.load(file).get("jobs", [])
    except (OSError, ValueError) as error:
        print("no list of jobs: %s" % error, flush=True)
        return []


def by_queue(names):
    queues = {}
    for name in names:
        queue, _, slot = name.rpartition("-")
        queues.setdefault(queue, []).append(int(slot))
    return queues


def suspend(hostlist):
    """Nodes that are idle for long, or given up: the operator ends what stands behind them."""
    gone = {(queue, slot) for queue, slots in by_queue(names_of(hostlist)).items() for slot in slots}
    with locked():
        for entry in gangs():
            slots = [slot for slot in entry["slots"] if (entry["queue"], slot) not in gone]
            if slots != entry["slots"]:
                keep(dict(entry, slots=slots))


def let_stand(said):
    """A node that always runs by now is no gang's any more, unless it came for the gang and is here."""
    stand = standing()
    with locked():
        for entry in gangs():
            held = [slot for name, slot in zip(names_in(entry), entry["slots"])
                    if name not in stand or said.get(name, {}).get("gang") == entry["gang"]]
            if held != entry["slots"]:
                keep(dict(entry, slots=held))


class Keeper:
    """What the head's loop does about power: remembers what it told slurmctld lately."""

    def __init__(self):
        self.told, self.later = {}, {}
        self.due = None  # when the nodes are asked what runs on them

    def muster(self):
        """Lets the nodes say once what runs on them. A scheduler whose machine died has forgotten its last seconds: a job that
        ended in them would hold its nodes until slurmctld asks by itself, which takes a quarter of an hour."""
        now = time.monotonic()
        if self.due is None:
            self.due = now + MUSTER
        elif now >= self.due and scontrol("reconfigure") is not None:
            self.due = float("inf")

    def power_down(self, names, reason, verb="power_down_force"):
        """Force: their jobs are requeued. Asap: the nodes get no new job and go with the end of those they have."""
        now = time.monotonic()
        late = [name for name in names if self.told.get((name, verb), -PATIENCE) + PATIENCE <= now]
        if late:
            scontrol("update", "nodename=" + ",".join(late), "state=" + verb, "reason=hpcops: " + reason)
            self.told.update(dict.fromkeys([(name, verb) for name in late], now))

    def send_away(self, leaving, states):
        """Nodes that have to go by the operator's word; `leaving` is its entries, each with the names that are here."""
        for entry, names in leaving:
            there = [name for name in names if not states.get(name, "~").endswith(GONE)]
            if entry.get("hard"):
                self.power_down(there, words(entry))
            else:
                self.power_down([name for name in there if "!" not in states[name]], words(entry), "power_down_asap")

    def drop_lost(self, states):
        """A node that came for a job and is down does not come back by itself."""
        for entry in gangs():
            self.power_down([name for name in names_in(entry) if states.get(name, "").startswith("down")], "the node was lost")

    def heed(self, answers):
        """Powers down what cannot be had; its job is asked for again when the operator says so."""
        refused = {answer.get("gang"): answer for answer in answers.get("answers", [])}
        for entry in gangs():
            answer = refused.get(entry["gang"])
            if answer is None:
                continue
            self.power_down(names_in(entry), words(answer))
            if entry["job"] != "0":
                self.later[entry["job"]] = next_try(answer.get("nextTry"))

    def put_off(self):
        """Requeued jobs wait until it makes sense to ask again; slurmctld takes the time once it has requeued them."""
        for job, at in list(self.later.items()):
            over = at <= datetime.datetime.now(datetime.timezone.utc)
            start = at.astimezone().strftime("%Y-%m-%dT%H:%M:%S")
            if over or scontrol("update", "jobid=" + job, "starttime=" + start) is not None:
                del self.later[job]


def words(answer):
    """Code and message of what the operator says, as a reason that slurmctld takes."""
    return "%s %s" % (answer.get("code"), node.words(str(answer.get("message")), 1000)[:120])


def next_try(text):
    """The operator's time, or a while from now."""
    now = datetime.datetime.now(datetime.timezone.utc)
    try:
        return datetime.datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return now + datetime.timedelta(seconds=AGAIN)


if __name__ == "__main__":
    {"resume": resume, "suspend": suspend}[sys.argv[1]](sys.argv[2])
