#!/usr/bin/python3
"""Slurm's commands in small, by the name they are called with. What they know is jobs.json beside their folder.

Files beside jobs.json make them misbehave: `down` (no answer), `full` (sbatch refuses), `mute` (sbatch takes the
job and loses its answer), `stubborn` (scontrol refuses)."""
import json
import os
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[0])))
JOBS = os.path.join(TOP, "jobs.json")
NAME, ARGUMENTS = os.path.basename(sys.argv[0]), sys.argv[1:]


def load():
    try:
        with open(JOBS) as file:
            return json.load(file)
    except FileNotFoundError:
        return []


def save(jobs):
    with open(JOBS, "w") as file:
        json.dump(jobs, file)


def is_set(switch):
    return os.path.exists(os.path.join(TOP, switch))


def value(option):
    return next(word.split("=", 1)[1] for word in ARGUMENTS if word.startswith(option + "="))


def sbatch():
    if is_set("full"):
        sys.exit("sbatch: error: Batch job submission failed: More processors requested than permitted")
    jobs = load()
    job = str(len(jobs) + 1)
    save(jobs + [{"id": job, "name": value("--job-name"), "state": "PD", "reason": "Resources", "argv": ARGUMENTS,
                  "uid": os.getuid(), "env": dict(os.environ), "cwd": os.getcwd()}])
    if is_set("mute"):
        sys.exit("sbatch: error: Socket timed out on send/recv operation")
    print(job)


def squeue():
    for job in load():
        print("%(id)s|%(state)s|%(reason)s|%(name)s" % job)


def scancel():
    jobs = load()
    for job in jobs:
        if job["name"] == value("--name"):
            job["state"] = "CA"
    save(jobs)


def scontrol():
    if ARGUMENTS[:2] == ["show", "hostnames"]:
        print(ARGUMENTS[2].replace(",", "\n"))
    elif is_set("stubborn"):
        sys.exit("slurm_reconfigure error: Invalid node name specified")
    else:
        with open(os.path.join(TOP, "scontrol.log"), "a") as file:
            file.write(" ".join(ARGUMENTS) + "\n")


def sinfo():
    with open(os.path.join(TOP, "sinfo.txt")) as file:
        sys.stdout.write(file.read())


if is_set("down"):
    sys.exit("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
{"sbatch": sbatch, "squeue": squeue, "scancel": scancel, "scontrol": scontrol, "sinfo": sinfo}[NAME]()
