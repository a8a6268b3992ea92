"""Answers one question of the operator about attempts: submit, poll, fetch or cancel. Runs as root on the head.

The attempt's folder on shared storage is the truth: `job` holds the scheduler's id, `started` is the job's
first act, `exit` its last. The scheduler's job name is the attempt's id, so an id that got lost is found again.
"""
import base64
import fcntl
import gzip
import hashlib
import json
import os
import pwd
import re
import subprocess
import sys

HERE = os.environ.get("HPCOPS_HERE", "/opt/hpcops")
ANSWER_LIMIT = 23000  # bytes; Run Command keeps 24,000 characters
CHUNK_LIMIT = 1 << 20  # bytes of output tried in one page
DATA_LIMIT = 19000  # characters of base64 in one page
TAIL_LIMIT = 1500  # bytes
LIVE = ("PD", "R", "CF", "CG", "S", "ST", "SI", "SO", "RD", "RF", "RH", "RQ", "SE", "RS", "RV")
ID = re.compile(r"[a-z0-9-]{1,60}\Z")
USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}\Z")
QUEUE = re.compile(r"[a-z0-9-]{1,40}\Z")
PART = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}\Z")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")


class Refused(Exception):
    """The question cannot be answered; the text says why."""


class NoScheduler(Exception):
    """Slurm did not answer: nothing is known, least of all that a job is lost."""


def need(claim, text):
    if not claim:
        raise Refused(text)


def need_id(attempt):
    need(isinstance(attempt, dict) and ID.match(str(attempt.get("id"))), "an attempt's id is malformed")


def number(attempt, key, most):
    value = attempt.get(key)
    need(type(value) is int and 1 <= value <= most, "%s must be 1 to %d" % (key, most))
    return value


def load(path):
    with open(path) as file:
        return json.load(file)


def words(text, limit=200):
    plain = re.sub(r"[^ -~]", "?", " ".join(text.split()))
    return plain if len(plain) <= limit else plain[:limit - 3] + "..."


class Slurm:
    """The scheduler's commands; the queue is read once per question."""

    def __init__(self, settings):
        self.image = settings["image"]
        self.known = None

    def run(self, name, *arguments, **options):
        command = [os.path.join(self.image["slurmPrefix"], "bin", name)] + list(arguments)
        try:
            return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  timeout=30, **options)
        except (OSError, subprocess.SubprocessError) as error:
            raise NoScheduler(words(str(error)))

    def jobs(self):
        """Every job Slurm still knows: name -> (id, state, reason), a live one before an ended one."""
        if self.known is None:
            answer = self.run("squeue", "-h", "-t", "all", "-o", "%i|%t|%r|%j")
            if answer.returncode:
                raise NoScheduler(words(answer.stderr.decode(errors="replace")))
            self.known = {}
            for line in answer.stdout.decode(errors="replace").splitlines():
                job, state, reason, name = (line.split("|", 3) + ["", "", ""])[:4]
                if name not in self.known or state in LIVE:
                    self.known[name] = (job, state, reason)
        return self.known

    def environment(self, user, implementation):
        """What a job sees: nothing of root's or of the agent's environment."""
        roots = self.image["mpi"]
        need(implementation in roots, "the image has no MPI called %s" % words(str(implementation), 40))
        root = roots[implementation]
        path = [root + "/bin", self.image["slurmPrefix"] + "/bin", "/usr/local/bin", "/usr/bin", "/bin"]
        return {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name, "SHELL": "/bin/bash",
                "LANG": "C.UTF-8", "PATH": ":".join(path), "LD_LIBRARY_PATH": "%s/lib64:%s/lib" % (root, root),
                "HPCOPS_MPI_ROOT": root}


def split_folder(settings, folder):
    """The root-owned `.hpcops` of a storage and the parts below it."""
    need(isinstance(folder, str), "an attempt's folder is malformed")
    for item in settings["storage"]:
        base = item["mountPath"].rstrip("/") + "/.hpcops"
        if folder.startswith(base + "/"):
            parts = folder[len(base) + 1:].split("/")
            need(all(PART.match(part) for part in parts), "an attempt's folder is malformed")
            return base, parts
    raise Refused("an attempt's folder is below <mountPath>/.hpcops/ of a storage")


def open_folder(base, parts, user=None):
    """Opens the folder step by step and follows no link; with a user, makes what is missing.

    Everything above the last part is root's, so no user can put another folder in its place."""
    at = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    for index, part in enumerate(parts):
        need(os.fstat(at).st_uid == os.geteuid(), "the folder above an attempt belongs to another user")
        if user:
            try:
                os.mkdir(part, 0o755, dir_fd=at)
            except FileExistsError:
                pass
        below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
        os.close(at)
        at = below
    if user:
        os.fchown(at, user.pw_uid, user.pw_gid)
    return at


def has(folder, name):
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def opener(folder):
    return lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o644, dir_fd=folder)


def put(folder, name, text):
    """Writes a file of root's into the user's folder, whatever the user has put there."""
    new = ".%s.%d" % (name, os.getpid())
    with open(new, "x", opener=opener(folder)) as file:
        file.write(text)
    os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)


def exit_file(folder):
    """What the job left as its last act, None before that."""
    try:
        with open("exit", errors="replace", opener=opener(folder)) as file:
            found = json.loads(file.read(16384))
    except FileNotFoundError:
        return None
    except ValueError:
        return {"code": -1}
    return found if isinstance(found, dict) else {"code": -1}


def known_id(folder):
    try:
        with open("job", opener=opener(folder)) as file:
            return file.read(40).strip()
    except FileNotFoundError:
        return ""


def as_user(user):
    """In the child: becomes the user, for good."""
    def act():
        if os.geteuid() == 0:
            os.initgroups(user.pw_name, user.pw_gid)
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
        os.umask(0o022)
    return act


def account(attempt):
    name = str(attempt.get("user"))
    need(USER.match(name), "the user's name is malformed")
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise Refused("the cluster has no user %s" % name)
    need(user.pw_uid != 0, "jobs never run as root")
    return user


def variables(attempt):
    found = attempt.get("environment") or {}
    need(isinstance(found, dict) and all(
        VARIABLE.match(key) and isinstance(value, str) and "\0" not in value for key, value in found.items()),
        "the environment is malformed")
    return found


def submit_one(settings, slurm, attempt):
    user, extra = account(attempt), variables(attempt)
    need(QUEUE.match(str(attempt.get("queue"))), "the queue's name is malformed")
    need(isinstance(attempt.get("script"), str), "the script is missing")
    options = ["--nodes=%d" % number(attempt, "nodes", 10000),
               "--ntasks-per-node=%d" % number(attempt, "ranksPerNode", 1024),
               "--time=%d" % number(attempt, "timeLimitMinutes", 525600)]
    environment = slurm.environment(user, attempt.get("mpi", "OpenMPI"))
    folder = open_folder(*split_folder(settings, attempt.get("folder")), user=user)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        if has(folder, "started") or has(folder, "exit"):
            return "Exists", known_id(folder)
        # A job's number proves nothing: a scheduler whose machine died forgets what it was given in the last seconds.
        slurm.known = None  # read inside the lock
        if attempt["id"] in slurm.jobs():
            job = slurm.jobs()[attempt["id"]][0]
            put(folder, "job", job + "\n")
            return "Exists", job
        put(folder, "environment.json", json.dumps(extra))
        put(folder, "run.sh", attempt["script"])
        put(folder, "job.sh", os.environ["HPCOPS_BATCH"] + "\n")
        where = attempt["folder"]
        answer = slurm.run(
            "sbatch", "--parsable", "--exclusive", "--requeue", "--job-name=" + attempt["id"],
            "--partition=" + attempt["queue"], *options, "--chdir=" + where, "--output=%s/output.log" % where,
            "--open-mode=append", where + "/job.sh", cwd=where, env=environment, preexec_fn=as_user(user))
        if answer.returncode:
            raise Refused(words(answer.stderr.decode(errors="replace")))
        job = answer.stdout.decode().strip().split(";")[0]
        put(folder, "job", job + "\n")
        return "Submitted", job
    finally:
        os.close(folder)


def submit(settings, slurm, question):
    answers = []
    for attempt in question["attempts"]:
        need_id(attempt)
        answer = {"id": attempt["id"], "state": "Error", "jobId": "", "message": ""}
        try:
            answer["state"], answer["jobId"] = submit_one(settings, slurm, attempt)
        except (Refused, NoScheduler, OSError) as error:
            answer["message"] = words(str(error))
        answers.append(answer)
    return {"attempts": answers}


def phase_of(slurm, attempt, folder):
    """Phase, scheduler's state and reason; the caller looks at the exit file afterwards, never before."""
    try:
        job = slurm.jobs().get(attempt["id"])
    except NoScheduler as error:
        return "Unknown", "", "SchedulerUnavailable: %s" % error
    if job and job[1] in LIVE:
        return ("Queued" if job[1] in ("PD", "CF") else "Running"), job[1], job[2]
    if job:
        return "Lost", job[1], job[2]
    if folder is not None and has(folder, "started"):
        return "Lost", "", "the scheduler no longer knows the job"
    # Given to a scheduler that died before it had written it down, and never started: to be given again.
    return "Unknown", "", "NotStarted" if folder is not None and known_id(folder) else "NotSubmitted"


def open_existing(settings, attempt):
    need_id(attempt)
    try:
        return open_folder(*split_folder(settings, attempt.get("folder")))
    except OSError:
        return None


def output_bytes(folder):
    try:
        return os.stat("output.log", dir_fd=folder, follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0


def look(settings, slurm, attempt):
    """One attempt as it stands now."""
    folder = open_existing(settings, attempt)
    try:
        phase, state, reason = phase_of(slurm, attempt, folder)
        left = exit_file(folder) if folder is not None else None
        if left is not None:
            phase, reason = "Finished", ""
        return {"id": attempt["id"], "phase": phase, "jobState": state, "reason": words(reason), "exit": left,
                "outputBytes": output_bytes(folder) if folder is not None else 0}
    finally:
        if folder is not None:
            os.close(folder)


def poll(settings, slurm, question):
    me = load(os.path.join(HERE, "instance.json"))["instanceId"]
    answers, size, omitted = [], 0, 0
    for attempt in question["heads"].get(me, []):
        answer = look(settings, slurm, attempt)
        size += len(json.dumps(answer)) + 2
        if size > ANSWER_LIMIT - 200:
            omitted += 1
        else:
            answers.append(answer)
    return {"attempts": answers, "omitted": omitted}


def page(data):
    """As much of the data as fits in one answer: (bytes taken, base64 of their gzip)."""
    size = min(len(data), CHUNK_LIMIT)
    while True:
        text = base64.b64encode(gzip.compress(data[:size])).decode()
        if len(text) <= DATA_LIMIT:
            return size, text
        size = min(size - 1, max(int(size * 0.95 * DATA_LIMIT / len(text)), DATA_LIMIT // 2))


def tail_of(data):
    lines = data[-TAIL_LIMIT:].decode(errors="replace").splitlines()[-50:]
    text = "\n".join(re.sub(r"[^ -~\t]", "?", line) for line in lines)
    return text


def fetch(settings, slurm, question):
    need_id(question)
    offset = question.get("offset", 0)
    need(type(offset) is int and offset >= 0, "offset must not be negative")
    need(look(settings, slurm, question)["phase"] in ("Finished", "Lost"), "the attempt has not finished")
    folder = open_existing(settings, question)
    need(folder is not None, "the attempt has no folder")
    try:
        with open("output.log", "rb", opener=opener(folder)) as file:
            data = file.read()
    except FileNotFoundError:
        data = b""
    finally:
        os.close(folder)
    taken, text = page(data[offset:])
    done = offset + taken >= len(data)
    return {"id": question["id"], "bytes": len(data), "offset": offset, "next": None if done else offset + taken,
            "sha256": hashlib.sha256(data).hexdigest(), "data": text, "tail": tail_of(data)}


def cancel(settings, slurm, question):
    ids = question["ids"]
    need(isinstance(ids, list) and all(ID.match(str(one)) for one in ids), "an attempt's id is malformed")
    live = [one for one in ids if slurm.jobs().get(one, ("", ""))[1] in LIVE]
    for one in live:
        answer = slurm.run("scancel", "--name=" + one)
        need(answer.returncode == 0, words(answer.stderr.decode(errors="replace")))
    return {"cancelled": live}


OPERATIONS = {"submit": submit, "poll": poll, "fetch": fetch, "cancel": cancel}


def answer_to(payload):
    question = json.loads(gzip.decompress(base64.b64decode(payload, validate=True)).decode())
    need(question.get("op") in OPERATIONS, "the operation is unknown")
    settings = load(os.path.join(HERE, "config.json"))
    return OPERATIONS[question["op"]](settings, Slurm(settings), question)


def main():
    try:
        answer, code = answer_to(os.environ["HPCOPS_PAYLOAD"]), 0
    except (Refused, NoScheduler, OSError, ValueError, KeyError, TypeError, AttributeError, EOFError) as error:
        answer, code = {"error": type(error).__name__, "message": words(str(error))}, 1
    print(json.dumps(answer, separators=(",", ":")))
    return code


if __name__ == "__main__":
    sys.exit(main())
