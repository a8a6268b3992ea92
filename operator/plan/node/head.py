#!/usr/bin/env python3
"""What only the head does: slurm.conf, the addresses of the nodes, the report to the operator."""
import datetime
import hashlib
import hmac
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request

import node

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
    if not any(queue["nodes"] for queue in settings["queues"]):
        lines.append("NodeName=nobody State=FUTURE")  # slurmctld does not start without any node
    for queue in settings["queues"]:
        names = ",".join(queue["nodes"])
        if names:
            lines.append("NodeName=%s CPUs=%d RealMemory=%d State=UNKNOWN" % (names, queue["cpus"], queue["memoryMiB"]))
        lines.append("PartitionName=%s Nodes=%s MaxTime=INFINITE State=UP" % (queue["name"], names or '""'))
    return text + "\n".join(lines) + "\n"


def registrations():
    """What the nodes of this cluster said of themselves, by name."""
    known = {name for queue in node.config()["queues"] for name in queue["nodes"]}
    folder = os.path.join(node.STATE, "nodes")
    found = {}
    for name in sorted(known):
        said = node.read_json(os.path.join(folder, name + ".json"))
        if re.match(r"[0-9.]{7,15}$", str(said.get("ip"))):
            found[name] = said
    return found


def publish_hosts(said):
    """The names first, Slurm's addresses after: a node that Slurm can use is a node the others can find."""
    known = [(entry["ip"], name) for name, entry in said.items()]
    text = "".join("%s %s\n" % pair for pair in known)
    # slurmctld tries for ten seconds to resolve each name it is given: names not seen yet lead nowhere, at once.
    unseen = [(NOWHERE, name) for queue in node.config()["queues"] for name in queue["nodes"] if name not in said]
    node.set_hosts(text + "".join("%s %s\n" % pair for pair in unseen))
    path = os.path.join(node.STATE, "hosts")
    try:
        with open(path) as file:
            same = file.read() == text
    except OSError:
        same = False
    if not same:
        node.write(path, text)


def set_addresses(said, told):
    """Tells slurmctld each address once; `told` remembers."""
    tool = node.config()["image"]["slurmPrefix"] + "/bin/scontrol"
    for name, entry in said.items():
        if told.get(name) == entry["ip"]:
            continue
        answer = subprocess.run([tool, "update", "nodename=" + name, "nodeaddr=" + entry["ip"]],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30)
        if answer.returncode:
            print(answer.stdout.decode(errors="replace"), flush=True)
            return
        told[name] = entry["ip"]


def health():
    """State of the head's own boot."""
    now = node.read_json(os.path.join(node.HERE, "now.json"))
    if now.get("exit"):
        return "Failed", now["step"], now["message"]
    return ("Ready" if now.get("step") == "ready" else "Booting"), now.get("step", ""), ""


def report(said, states):
    """What the operator wants to know, all but its number."""
    settings = node.config()
    # Both must say so: Slurm's word alone may be about the instance that bore the name before.
    ready = {name for name, entry in said.items() if states.get(name) in node.READY and entry.get("step") == "ready"}
    state, step, message = health()
    worst = [{"name": name, "instanceId": entry.get("instanceId", ""), "step": str(entry.get("step", ""))[:40],
              "exit": entry["exit"], "message": node.words(str(entry.get("message", "")))}
             for name, entry in said.items() if entry.get("exit")]
    return {
        "v": 1, "instanceId": node.identity()["instanceId"], "state": state, "step": step, "message": message,
        "queues": [{"name": queue["name"], "ready": len(ready.intersection(queue["nodes"]))}
                   for queue in settings["queues"]],
        "nodes": [{"name": name, "instanceId": entry.get("instanceId", ""), "ready": name in ready}
                  for name, entry in said.items()][:64],
        "worst": worst[:5],
    }


def text_of(content, seq):
    """The parameter's value: as many nodes as fit, the troubled ones in `worst` in any case."""
    content = dict(content, seq=seq)
    while True:
        text = json.dumps(content, separators=(",", ":"))
        if len(text) <= LIMIT or not (content["nodes"] or content["worst"]):
            return text
        kind = "nodes" if content["nodes"] else "worst"
        content[kind] = content[kind][:-1]


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


def put_parameter(value):
    settings = node.config()
    region = settings["region"]
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    url = os.environ.get("AWS_ENDPOINT_URL") or "https://ssm.%s.%s" % (region, suffix)
    body = {"Name": "/hpcops/%s/demand" % settings["clusterUid"], "Value": value, "Type": "String", "Overwrite": True}
    request = urllib.request.Request(url.rstrip("/") + "/", data=json.dumps(body).encode(), headers={
        "Content-type": "application/x-amz-json-1.1", "X-amz-target": "AmazonSSM.PutParameter"})
    keys = node.credentials()
    if not keys:
        raise OSError("no credentials yet")
    sign(request, keys, region, datetime.datetime.now(datetime.timezone.utc))
    with urllib.request.urlopen(request, timeout=20) as answer:
        answer.read()


def look(told):
    """One round; returns what is to be reported."""
    said, states = {}, {}
    if node.state_is_mounted():
        said = registrations()
        publish_hosts(said)
        states = node.sinfo(node.config())
        if states:
            set_addresses(said, told)
    return report(said, states)


def is_calm(content):
    return content["state"] == "Ready" and all(entry["ready"] for entry in content["nodes"])


def loop(sleep=time.sleep):
    told, sent, seq, wait = {}, None, 0, BUSY
    while True:
        try:
            content = look(told)
            if content != sent:
                seq = max(seq + 1, int(time.time()))  # grows across restarts and replaced heads
                put_parameter(text_of(content, seq))
                sent = content
            wait = CALM if is_calm(content) else BUSY
        except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
            detail = error.read().decode(errors="replace") if hasattr(error, "read") else ""
            print("%s %s" % (error, node.words(detail)), flush=True)
            wait = min(2 * wait, 60)
        sleep(wait)


if __name__ == "__main__":
    if sys.argv[1] == "slurm-conf":
        sys.stdout.write(slurm_conf(sys.argv[2]))
    else:
        loop()
