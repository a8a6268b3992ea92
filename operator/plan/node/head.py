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
HEED = 10  # seconds after which a calm head asks what the operator has to say
MOST = 1000  # nodes of a queue; all are declared, so that a queue changes without a node being added or taken
LIMIT = 4096  # bytes of a standard parameter
NOWHERE = "127.0.0.2"  # nothing listens there


def slurm_conf(owner, leaving=()):
    settings, queues = node.config(), power.queues()
    with open(os.path.join(node.HERE, "slurm.conf")) as file:
        text = file.read()
    host = "%s(%s)" % (socket.gethostname().split(".")[0], settings["headIp"])
    for key, value in (("HOST", host), ("OWNER", owner), ("STATE", node.STATE)):
        text = text.replace("@%s@" % key, value)
    lines = [line for queue in queues for line in of_queue(queue, queue is queues[0], leaving)]
    stay = ["%s-[%s]" % (queue["name"], queue["standing"]) for queue in queues if queue["standing"]]
    if stay:
        lines.append("SuspendExcNodes=" + ",".join(stay))
    return text + "\n".join(lines) + "\n"


def of_queue(queue, is_first, leaving):
    """Jobs that name no partition go to the first. Nodes that always run are taken first. Every node is a cloud, powered down
    until it registers; one that has to leave stays in the partition, where it is seen, until it has left."""
    name, stand = queue["name"], node.slots(queue["standing"])
    size = "CPUs=%d RealMemory=%d" % (queue["cpus"], queue["memoryMiB"])
    for weight, slots in ((1, stand), (9, [slot for slot in range(1, MOST + 1) if slot not in stand])):
        if slots:
            yield "NodeName=%s-[%s] %s Weight=%d State=CLOUD" % (name, node.ranges(slots), size, weight)
    slots = set(range(1, queue["most"] + 1)).union(
        *(entry["slots"] for entry in power.gangs() if entry["queue"] == name),
        *(node.slots(str(entry.get("slots"))) for entry in leaving if entry.get("queue") == name))
    yield "PartitionName=%s Nodes=%s Default=%s MaxTime=INFINITE State=UP SuspendTime=%d" % (
        name, "%s-[%s]" % (name, node.ranges(slots)) if slots else '""', "YES" if is_first else "NO", queue["idleSeconds"])


def configure(leaving):
    """Keeps slurm.conf as the present numbers say; slurmctld takes it without touching a job."""
    path = os.path.join(node.config()["image"]["slurmPrefix"], "etc", "slurm.conf")
    with open(path) as file:
        old = file.read()
    new = slurm_conf(re.search("^SlurmUser=(.*)", old, re.M).group(1), leaving)
    if new != old:
        node.write(path, new)
        if power.scontrol("reconfigure") is None:
            node.write(path, old)  # it is told again at the next look


def wanted(leaving=()):
    """The nodes that may be here, by name: the gangs each may have come for."""
    found = {name: {""} for name in power.standing()}
    for entry in leaving:
        for name in power.names_in(dict(entry, slots=node.slots(entry["slots"]))):
            found.setdefault(name, set()).add(entry["gang"])
    for entry in power.gangs():
        for name in power.names_in(entry):
            found.setdefault(name, set()).add(entry["gang"])
    return found


def registrations(names):
    """What the nodes of this cluster said of themselves, by name; of a former launch nothing counts."""
    folder = os.path.join(node.STATE, "nodes")
    found = {}
    for name, gangs in sorted(names.items()):
        said = node.read_json(os.path.join(folder, name + ".json"))
        if re.match(r"[0-9.]{7,15}$", str(said.get("ip"))) and said.get("gang") in gangs:
            found[name] = said
    return found


def publish_hosts(said, names):
    """The names first, Slurm's addresses after: a node that Slurm can use is a node the others can find."""
    known = [(entry["ip"], name) for name, entry in said.items()]
    text = "".join("%s %s\n" % pair for pair in known)
    # slurmctld tries for ten seconds to resolve each name it is given: names not seen yet lead nowhere, at once.
    unseen = [(NOWHERE, name) for name in sorted(names) if name not in said]
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


def by_launch(said, holds):
    """The nodes of each launch for which `holds`, as queue, gang, attempt and numbers."""
    found = {}
    for name, entry in said.items():
        if holds(name, entry):
            launch = (entry["queue"], entry.get("gang", ""), entry.get("attempt", 0))
            found.setdefault(launch, []).append(int(name.rpartition("-")[2]))
    return [{"queue": queue, "gang": gang, "attempt": attempt, "ready": node.ranges(slots)}
            for (queue, gang, attempt), slots in sorted(found.items())]


def report(said, states):
    """What the operator wants to know, all but its number."""
    state, step, message = health()
    worst = [{"name": name, "instanceId": entry.get("instanceId", ""), "step": str(entry.get("step", ""))[:40],
              "exit": entry["exit"], "message": node.words(str(entry.get("message", "")))}
             for name, entry in said.items() if entry.get("exit")]
    return {
        "v": 1, "instanceId": node.identity()["instanceId"], "state": state, "step": step, "message": message,
        "demand": [{"gang": entry["gang"], "queue": entry["queue"], "slots": node.ranges(entry["slots"])}
                   for entry in power.gangs()],
        # Both must say so: Slurm's word alone may be about the instance that bore the name before.
        "fleets": by_launch(said, lambda name, entry: (states or {}).get(name) in node.READY and entry.get("step") == "ready"),
        # What was in use and is powered down now: nobody needs the instance any more.
        "left": by_launch(said, lambda name, entry: states is not None and entry.get("step") == "ready"
                          and not entry.get("gang") and states.get(name, "~").endswith(power.GONE)),
        "queues": [{key: queue[key] for key in ("name", "standing", "most", "idleSeconds")} for queue in power.queues()],
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
        kind = next((kind for kind in ("worst", "demand", "fleets", "left") if len(content[kind]) > 1), None)
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


def told(name, before):
    """What the operator has to say under a name; what it said before, while that cannot be read."""
    try:
        return unpacked(parameter("GetParameter", name)["Parameter"]["Value"])
    except urllib.error.HTTPError as error:
        detail = error.read().decode(errors="replace")
        if "ParameterNotFound" in detail:
            return {}
        print("%s: %s %s" % (name, error, node.words(detail)), flush=True)
        return before


def unpacked(text):
    return json.loads(text if text.startswith("{") else gzip.decompress(base64.b64decode(text)))


def take_users():
    """Takes over the operator's list of users; true when there is one."""
    found = told("users", {}).get("users")
    if found and users.keep(found):
        users.settle(True)
    return bool(found)


def heed(said, keeper):
    """Takes over the numbers of the queues; what else is said is for the looks that follow."""
    numbers = [{key: queue[key] for key in ("name", "standing", "most", "idleSeconds")} for queue in said.get("queues", [])]
    path = os.path.join(node.HERE, "queues.json")
    if numbers and numbers != node.read_json(path).get("queues"):
        node.write(path, json.dumps({"queues": numbers}))
    keeper.heed(said)


def look(launches, keeper, leaving=()):
    """One round; returns what is to be reported."""
    said, states = {}, None
    if node.state_is_mounted():
        names = wanted(leaving)
        said = registrations(names)
        publish_hosts(said, names)
        states = node.sinfo(node.config())
        if states is not None:
            set_addresses(said, launches)
            power.let_stand(said)
            configure(leaving)
            keeper.muster()
            keeper.drop_lost(states)
            keeper.send_away([(entry, here(entry, said)) for entry in leaving], states)
            keeper.put_off()
    return report(said, states)


def here(entry, said):
    """Names of the nodes an entry of the operator means: those of the very launch."""
    launch = (entry["gang"], entry["attempt"])
    names = power.names_in(dict(entry, slots=node.slots(entry["slots"])))
    return [name for name in names if name in said and (said[name].get("gang"), said[name].get("attempt")) == launch]


def unmet(content):
    """Whether a job waits for nodes."""
    ready = {(entry["queue"], entry["gang"]): set(node.slots(entry["ready"])) for entry in content["fleets"]}
    return any(not set(node.slots(entry["slots"])) <= ready.get((entry["queue"], entry["gang"]), set())
               for entry in content["demand"])


def is_calm(content):
    ready = sum(len(node.slots(entry["ready"])) for entry in content["fleets"])
    return content["state"] == "Ready" and ready >= len(power.standing()) and not unmet(content)


def loop(sleep=time.sleep, clock=time.monotonic):
    launches, sent, seq, wait, keeper = {}, None, 0, BUSY, power.Keeper()
    heard, due, seldom = {}, 0, 0
    while True:
        try:
            if clock() >= due:
                heard, due = told("answers", heard), clock() + HEED
                heed(heard, keeper)
            content = look(launches, keeper, heard.get("leave", []))
            if content != sent:
                seq = max(seq + 1, int(time.time()))  # grows across restarts and replaced heads
                parameter("PutParameter", "demand", Value=text_of(content, seq), Type="String", Overwrite=True)
                sent = content
            if unmet(content):
                due = 0
            if content["state"] == "Ready" and clock() >= seldom:
                seldom = clock() + SLOW
                take_users()
            wait = CALM if is_calm(content) else BUSY
        except (OSError, ValueError, KeyError, subprocess.SubprocessError, users.Trouble) as error:
            detail = error.read().decode(errors="replace") if hasattr(error, "read") else ""
            print("%s %s" % (error, node.words(detail)), flush=True)
            wait = min(2 * wait, 60)
        sleep(wait)


if __name__ == "__main__":
    if sys.argv[1] == "slurm-conf":
        known = wanted()
        publish_hosts(registrations(known), known)
        sys.stdout.write(slurm_conf(sys.argv[2]))
    elif sys.argv[1] == "take-users":
        sys.exit(0 if take_users() else "the operator has not said who the users are")
    else:
        loop()
