#!/usr/bin/env python3
"""What only the head does: slurm.conf, the addresses of the nodes, the report to the operator."""
import base64
import datetime
import gzip
import hashlib
import hmac
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import node
import power
import users

SLOW = 30  # seconds between two looks at what changes seldom
BUSY, CALM = 1, 2  # seconds between two looks, while something becomes ready and after
LIMIT = 4096  # bytes of a standard parameter
NOWHERE = "127.0.0.2"  # nothing listens there


def slurm_conf(owner):
    publish_hosts(registrations())
    settings = node.config()
    with open(os.path.join(node.HERE, "slurm.conf")) as file:
        text = file.read()
    host = "%s(%s)" % (socket.gethostname().split(".")[0], settings["headIp"])
    for key, value in (("HOST", host), ("OWNER", owner), ("STATE", node.STATE)):
        text = text.replace("@%s@" % key, value)
    lines = []
    if not any(queue["most"] for queue in settings["queues"]):
        lines.append("NodeName=nobody State=FUTURE")  # slurmctld does not start without any node
    for queue in settings["queues"]:
        lines.extend(of_queue(queue, queue is settings["queues"][0]))
    stay = ["%s-[%s]" % (queue["name"], queue["standing"]) for queue in settings["queues"] if queue["standing"]]
    if stay:
        lines.append("SuspendExcNodes=" + ",".join(stay))
    return text + "\n".join(lines) + "\n"


def of_queue(queue, is_first):
    """Jobs that name no partition go to the first. Nodes that always run are taken first; the others are clouds until a job wants them."""
    standing = node.slots(queue["standing"])
    clouds = [slot for slot in range(1, queue["most"] + 1) if slot not in standing]
    size = "CPUs=%d RealMemory=%d" % (queue["cpus"], queue["memoryMiB"])
    if standing:
        names = "%s-[%s]" % (queue["name"], queue["standing"])
        yield "NodeName=%s %s Weight=1 State=UNKNOWN" % (names, size)
    if clouds:
        yield "NodeName=%s-[%s] %s Weight=9 State=CLOUD" % (queue["name"], node.ranges(clouds), size)
    names = "%s-[1-%d]" % (queue["name"], queue["most"]) if queue["most"] else '""'
    yield "PartitionName=%s Nodes=%s Default=%s MaxTime=INFINITE State=UP SuspendTime=%d" % (
        queue["name"], names, "YES" if is_first else "NO", queue["idleSeconds"])


def wanted():
    """The nodes that should be there, by name: the gang each is for."""
    found = {}
    for queue in node.config()["queues"]:
        found.update(("%s-%d" % (queue["name"], slot), "") for slot in node.slots(queue["standing"]))
    for entry in power.gangs():
        found.update(dict.fromkeys(power.names_in(entry), entry["gang"]))
    return found


def registrations():
    """What the nodes of this cluster said of themselves, by name; of a former launch nothing counts."""
    folder = os.path.join(node.STATE, "nodes")
    found = {}
    for name, gang in sorted(wanted().items()):
        said = node.read_json(os.path.join(folder, name + ".json"))
        if re.match(r"[0-9.]{7,15}$", str(said.get("ip"))) and said.get("gang") == gang:
            found[name] = said
    return found


def publish_hosts(said):
    """The names first, Slurm's addresses after: a node that Slurm can use is a node the others can find."""
    known = [(entry["ip"], name) for name, entry in said.items()]
    text = "".join("%s %s\n" % pair for pair in known)
    # slurmctld tries for ten seconds to resolve each name it is given: names not seen yet lead nowhere, at once.
    unseen = [(NOWHERE, name) for name in sorted(wanted()) if name not in said]
    node.set_hosts(text + "".join("%s %s\n" % pair for pair in unseen))
    path = os.path.join(node.STATE, "hosts")
    try:
        with open(path) as file:
            same = file.read() == text
    except OSError:
        same = False
    if not same:
        node.write(path, text)


def set_addresses(said, launches):
    """Tells slurmctld the address of each launch once; `launches` remembers. It forgets them when it powers nodes down."""
    for name, entry in said.items():
        launch = (entry["ip"], entry.get("gang"), entry.get("attempt"))
        if launches.get(name) == launch:
            continue
        if power.scontrol("update", "nodename=" + name, "nodeaddr=" + entry["ip"]) is None:
            return
        launches[name] = launch


def health():
    """State of the head's own boot."""
    now = node.read_json(os.path.join(node.HERE, "now.json"))
    if now.get("exit"):
        return "Failed", now["step"], now["message"]
    return ("Ready" if now.get("step") == "ready" else "Booting"), now.get("step", ""), ""


def report(said, states):
    """What the operator wants to know, all but its number."""
    # Both must say so: Slurm's word alone may be about the instance that bore the name before.
    ready = {}
    for name, entry in said.items():
        if states.get(name) in node.READY and entry.get("step") == "ready":
            launch = (entry["queue"], entry.get("gang", ""), entry.get("attempt", 0))
            ready.setdefault(launch, []).append(int(name.rpartition("-")[2]))
    state, step, message = health()
    worst = [{"name": name, "instanceId": entry.get("instanceId", ""), "step": str(entry.get("step", ""))[:40],
              "exit": entry["exit"], "message": node.words(str(entry.get("message", "")))}
             for name, entry in said.items() if entry.get("exit")]
    return {
        "v": 1, "instanceId": node.identity()["instanceId"], "state": state, "step": step, "message": message,
        "demand": [{"gang": entry["gang"], "queue": entry["queue"], "slots": node.ranges(entry["slots"])}
                   for entry in power.gangs()],
        "fleets": [{"queue": queue, "gang": gang, "attempt": attempt, "ready": node.ranges(slots)}
                   for (queue, gang, attempt), slots in sorted(ready.items())],
        "worst": worst[:5],
    }


def text_of(content, seq):
    """The parameter's value. A long one is compressed; one that is still too long is shortened, which `cut` tells: of what
    a cut demand does not name nobody may conclude that no job wants it."""
    content = dict(content, seq=seq)
    while True:
        text = json.dumps(content, separators=(",", ":"))
        if len(text) > LIMIT:
            text = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
        kind = next((kind for kind in ("worst", "demand", "fleets") if len(content[kind]) > 1), None)
        if len(text) <= LIMIT or kind is None:
            return text
        content[kind] = content[kind][:-max(1, len(content[kind]) // 20)]
        content["cut"] = True


def sign(request, keys, region, now):
    """Signature version 4 of a POST to SSM; the secret stays in this process."""
    day, stamp = now.strftime("%Y%m%d"), now.strftime("%Y%m%dT%H%M%SZ")
    headers = {"content-type": request.get_header("Content-type"), "host": request.host, "x-amz-date": stamp,
               "x-amz-security-token": keys["Token"], "x-amz-target": request.get_header("X-amz-target")}
    names = ";".join(sorted(headers))
    canonical = "\n".join(["POST", "/", ""] + ["%s:%s" % (key, headers[key]) for key in sorted(headers)]
                          + ["", names, hashlib.sha256(request.data).hexdigest()])
    scope = "%s/%s/ssm/aws4_request" % (day, region)
    secret = ("AWS4" + keys["SecretAccessKey"]).encode()
    for part in scope.split("/"):
        secret = hmac.new(secret, part.encode(), "sha256").digest()
    words = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    request.add_header("X-Amz-Date", stamp)
    request.add_header("X-Amz-Security-Token", keys["Token"])
    request.add_header("Authorization", "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s" % (
        keys["AccessKeyId"], scope, names, hmac.new(secret, words.encode(), "sha256").hexdigest()))


def parameter(action, name, **more):
    """One call of the parameter store about a parameter of this cluster; its answer."""
    settings = node.config()
    region = settings["region"]
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    url = os.environ.get("AWS_ENDPOINT_URL") or "https://ssm.%s.%s" % (region, suffix)
    body = dict(more, Name="/hpcops/%s/%s" % (settings["clusterUid"], name))
    request = urllib.request.Request(url.rstrip("/") + "/", data=json.dumps(body).encode(), headers={
        "Content-type": "application/x-amz-json-1.1", "X-amz-target": "AmazonSSM." + action})
    keys = node.credentials()
    if not keys:
        raise OSError("no credentials yet")
    sign(request, keys, region, datetime.datetime.now(datetime.timezone.utc))
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def told(name):
    """What the operator said under a name; nothing while it has said nothing."""
    try:
        return unpacked(parameter("GetParameter", name)["Parameter"]["Value"])
    except urllib.error.HTTPError as error:
        if b"ParameterNotFound" in error.read():
            return {}
        raise


def unpacked(text):
    return json.loads(text if text.startswith("{") else gzip.decompress(base64.b64decode(text)))


def take_users():
    """Takes over the operator's list of users; true when there is one."""
    found = told("users").get("users")
    if found and users.keep(found):
        users.settle(True)
    return bool(found)


def look(launches, keeper):
    """One round; returns what is to be reported."""
    said, states = {}, {}
    if node.state_is_mounted():
        said = registrations()
        publish_hosts(said)
        states = node.sinfo(node.config())
        if states:
            set_addresses(said, launches)
            keeper.drop_lost(states)
            keeper.put_off()
    return report(said, states)


def unmet(content):
    """Whether a job waits for nodes."""
    ready = {(entry["queue"], entry["gang"]): set(node.slots(entry["ready"])) for entry in content["fleets"]}
    return any(not set(node.slots(entry["slots"])) <= ready.get((entry["queue"], entry["gang"]), set())
               for entry in content["demand"])


def is_calm(content):
    standing = sum(len(node.slots(queue["standing"])) for queue in node.config()["queues"])
    ready = sum(len(node.slots(entry["ready"])) for entry in content["fleets"] if not entry["gang"])
    return content["state"] == "Ready" and ready == standing and not unmet(content)


def loop(sleep=time.sleep):
    launches, sent, seq, wait, keeper, seldom = {}, None, 0, BUSY, power.Keeper(), 0
    while True:
        try:
            content = look(launches, keeper)
            if content != sent:
                seq = max(seq + 1, int(time.time()))  # grows across restarts and replaced heads
                parameter("PutParameter", "demand", Value=text_of(content, seq), Type="String", Overwrite=True)
                sent = content
            if unmet(content):
                keeper.heed(told("answers"))
            if content["state"] == "Ready" and seldom < time.monotonic():
                seldom = time.monotonic() + SLOW
                take_users()
            wait = CALM if is_calm(content) else BUSY
        except (OSError, ValueError, KeyError, subprocess.SubprocessError, users.Trouble) as error:
            detail = error.read().decode(errors="replace") if hasattr(error, "read") else ""
            print("%s %s" % (error, node.words(detail)), flush=True)
            wait = min(2 * wait, 60)
        sleep(wait)


if __name__ == "__main__":
    if sys.argv[1] == "slurm-conf":
        sys.stdout.write(slurm_conf(sys.argv[2]))
    elif sys.argv[1] == "take-users":
        sys.exit(0 if take_users() else "the operator has not said who the users are")
    else:
        loop()
