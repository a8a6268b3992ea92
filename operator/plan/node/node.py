#!/usr/bin/env python3
"""What both roles need: the configuration, the metadata service, boot records, names of the nodes.

A boot starts this file some twenty times: the slow modules are imported where they are used."""
import json
import os
import re
import sys
import time

HERE = os.environ.get("HPCOPS_HERE", "/opt/hpcops")
STATE = os.environ.get("HPCOPS_STATE", "/hpcops/state")
ETC_HOSTS = os.environ.get("HPCOPS_ETC_HOSTS", "/etc/hosts")
IMDS = "http://169.254.169.254/latest/"
READY = ("idle", "alloc", "mix", "comp")


def config():
    with open(os.path.join(HERE, "config.json")) as file:
        return json.load(file)


def identity():
    """instanceId, ip and name of this node, as `identify` found them."""
    with open(os.path.join(HERE, "instance.json")) as file:
        return json.load(file)


def imds(path):
    """One item of the instance metadata (IMDSv2), None where it answers 404."""
    import urllib.request
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def call(where, method, headers):
        request = urllib.request.Request(IMDS + where, method=method, headers=headers)
        with opener.open(request, timeout=5) as answer:
            return answer.read().decode()

    token = call("api/token", "PUT", {"X-aws-ec2-metadata-token-ttl-seconds": "300"})
    try:
        return call("meta-data/" + path, "GET", {"X-aws-ec2-metadata-token": token})
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise


def credentials():
    """The role's credentials, None while the instance has none."""
    role = imds("iam/security-credentials/")
    found = role and imds("iam/security-credentials/" + role.split()[0])
    found = json.loads(found) if found else {}
    return found if found.get("AccessKeyId") else None


def write(path, text, mode=0o644):
    """Replaces a file in one act: a reader sees the old text or the new."""
    new = "%s.%d" % (path, os.getpid())
    with open(new, "w") as file:
        file.write(text)
    os.chmod(new, mode)
    os.rename(new, path)


def read_json(path):
    """The object in a file, {} when there is none (yet) or it is torn."""
    try:
        with open(path) as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def words(text, limit=200):
    """The end of a text as printable ASCII that no parameter store takes for a reference."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    plain = re.sub(r"[^ -~]", "?", "; ".join(lines[-5:])).replace("{{", "{ {")
    return plain if len(plain) <= limit else "..." + plain[3 - limit:]


def state_is_mounted():
    return os.path.isdir(os.path.join(STATE, "nodes"))


def record(step, begin, code, log):
    """Keeps how a step went; what was kept before the state volume came is copied there."""
    me = identity()
    with open(log, errors="replace") as file:
        tail = file.read()[-4096:]
    entry = {"step": step, "start": round(float(begin), 3), "seconds": round(time.time() - float(begin), 3),
             "exit": int(code), "lines": tail.splitlines()[-20:]}
    local = os.path.join(HERE, "boot")
    os.makedirs(local, exist_ok=True)
    write(os.path.join(local, step + ".json"), json.dumps(entry))
    now = {"name": me["name"], "ip": me["ip"], "instanceId": me["instanceId"], "step": step,
           "exit": int(code), "message": words(tail) if int(code) else ""}
    write(os.path.join(HERE, "now.json"), json.dumps(now))
    if not state_is_mounted():
        return
    kept = os.path.join(STATE, "boot", me["name"])
    os.makedirs(kept, exist_ok=True)
    for name in os.listdir(local):
        with open(os.path.join(local, name)) as file:
            write(os.path.join(kept, name), file.read())
    settings = config()
    if settings["role"] == "compute":
        # Which launch it is of: another one may have borne the name before.
        now.update(queue=settings["queue"], gang=settings["gang"], attempt=settings["attempt"])
        write(os.path.join(STATE, "nodes", me["name"] + ".json"), json.dumps(now))


def slots(text):
    """The numbers that `1-3,7` names."""
    found = []
    for word in text.split(","):
        first, _, last = word.partition("-")
        if first:
            found.extend(range(int(first), int(last or first) + 1))
    return found


def ranges(numbers):
    """Numbers as `1-3,7`."""
    runs = []
    for number in sorted(numbers):
        if runs and runs[-1][1] + 1 == number:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else "%d-%d" % (first, last) for first, last in runs)


def identify():
    settings = config()
    if settings["role"] == "head":
        name = "head"
    else:
        name = "%s-%d" % (settings["queue"], slots(settings["slots"])[int(imds("ami-launch-index"))])
    me = {"instanceId": imds("instance-id"), "ip": imds("local-ipv4"), "name": name}
    write(os.path.join(HERE, "instance.json"), json.dumps(me))


def set_hosts(text):
    """Puts the names of the nodes into /etc/hosts, between marks, and leaves the rest alone."""
    with open(ETC_HOSTS) as file:
        old = file.read()
    rest = re.sub(r"# hpcops begin\n.*?# hpcops end\n", "", old, flags=re.S)
    new = "%s%s# hpcops begin\n%s# hpcops end\n" % (rest, "" if rest.endswith("\n") or not rest else "\n", text)
    if new != old:
        write(ETC_HOSTS, new)


def take_hosts():
    """Takes over the head's list; true once it names this node with its present address."""
    me = identity()
    try:
        with open(os.path.join(STATE, "hosts")) as file:
            text = file.read()
    except OSError:
        return False
    set_hosts(text)
    return "%s %s" % (me["ip"], me["name"]) in text.splitlines()


def watch():
    """Keeps /etc/hosts and the accounts equal to the head's lists."""
    import users
    known = None
    while True:
        try:
            take_hosts()
            if known != users.listed():
                known = users.listed()
                users.settle(False)
        except (OSError, users.Trouble) as error:
            print(error, flush=True)
        time.sleep(2)


def sinfo(settings):
    """Compact state of each node that is not powered down, None when the scheduler does not answer."""
    import subprocess
    command = [settings["image"]["slurmPrefix"] + "/bin/sinfo", "-h", "-N", "-o", "%N %t"]
    try:
        answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return dict(line.split() for line in answer.stdout.decode().splitlines() if len(line.split()) == 2)


def trouble(settings):
    """Why jobs cannot run here yet, None when they can: slurmd has to answer and slurmctld to know it."""
    import subprocess
    tool = settings["image"]["slurmPrefix"] + "/bin/scontrol"
    name = identity()["name"]
    answer = subprocess.run([tool, "show", "slurmd", name], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=20)
    if answer.returncode:
        return words(answer.stderr.decode(errors="replace")) or "slurmd does not answer"
    state = (sinfo(settings) or {}).get(name)
    return None if state in READY else "slurm says %s" % state


def disks():
    """Disks that are the instance's own, by what their hardware says of itself."""
    found = []
    tree = os.path.join(os.environ.get("HPCOPS_SYS", "/sys"), "block")
    for name in sorted(os.listdir(tree)):
        try:
            with open(os.path.join(tree, name, "device", "model")) as file:
                is_own = file.read().strip() == "Amazon EC2 NVMe Instance Storage"
        except OSError:
            continue
        if is_own:
            found.append("/dev/" + name)
    return found


def hosts_pattern(settings):
    """Names of the cluster's nodes for ssh: `?` is one sign, so that longer names outside do not match."""
    return " ".join("%s-%s" % (name, "?" * digits) for name in settings["queueNames"] for digits in range(1, 5))


def get(settings, path):
    for key in path.split("."):
        settings = settings.get(key, "")
    return settings


def main(arguments):
    verb, rest = arguments[0], arguments[1:]
    settings = config()
    if verb == "get":
        print("\n".join(str(get(settings, path)) for path in rest))
    elif verb == "mpi":
        print("\n".join(settings["image"]["mpi"].values()))
    elif verb == "storage":
        for item in settings.get("storage", []):
            print("%s\t%s@tcp:/%s" % (item["mountPath"], item["dnsName"], item["mountName"]))
    elif verb == "disks":
        for disk in disks():
            print(disk)
    elif verb == "hosts-pattern":
        print(hosts_pattern(settings))
    elif verb == "identify":
        identify()
    elif verb == "credentials":
        return 0 if credentials() else "no credentials in the metadata service: has the instance a profile?"
    elif verb == "name":
        print(identity()["name"])
    elif verb == "record":
        record(*rest)
    elif verb == "hosts":
        return 0 if take_hosts() else "the head has not published this node"
    elif verb == "watch":
        watch()
    elif verb == "ready":
        return trouble(settings) or 0
    else:
        return "unknown verb " + verb
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
