"""How a stand-in asks the simulator: one line of JSON each way, on a socket only root can reach."""
import json
import socket

SOCKET = "/run/awssim/host.sock"


def ask(**question):
    """The simulator's answer, or its refusal in words."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(SOCKET)
        line.sendall(json.dumps(question).encode() + b"\n")
        answer = json.loads(line.makefile().readline())
    if "refused" in answer:
        raise SystemExit(answer["refused"])
    return answer["granted"]
