"""PID 1 of a body: starts the agent, runs the user data as cloud-init would, and reaps."""
import gzip
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, "/usr/lib/awssim")
from host import ask

IMDS = "http://169.254.169.254/latest/"
LOG = "/var/log/cloud-init-output.log"
PER_BOOT = "/var/lib/cloud/scripts/per-boot"
USER_DATA = "/var/lib/cloud/instance/scripts/part-001"


def user_data():
    request = urllib.request.Request(IMDS + "api/token", method="PUT", headers={"X-aws-ec2-metadata-token-ttl-seconds": "60"})
    token = urllib.request.urlopen(request, timeout=10).read().decode()
    request = urllib.request.Request(IMDS + "user-data", headers={"X-aws-ec2-metadata-token": token})
    try:
        data = urllib.request.urlopen(request, timeout=10).read()
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return b""
        raise
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def run(path, log):
    code = subprocess.call([path], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")
    print("%s ended with %d" % (path, code), flush=True)


def cloud_init():
    with open(LOG, "ab") as log:
        for name in sorted(os.listdir(PER_BOOT)):
            run(os.path.join(PER_BOOT, name), log)
        data = user_data()
        if not data.startswith(b"#!"):
            print("user data is no script: %r" % data[:20], flush=True)
            return
        with open(USER_DATA, "wb") as file:
            file.write(data)
        os.chmod(USER_DATA, 0o700)
        run(USER_DATA, log)


def main():
    ask(ask="init")  # from here on the simulator runs commands
    # Workers are processes of their own, so that PID 1 can reap whatever comes without taking a worker's child.
    for work in (["systemctl", "start", "sshd", "amazon-ssm-agent"], [sys.executable, __file__, "cloud-init"]):
        subprocess.Popen(work, stdin=subprocess.DEVNULL)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(0.2)


if __name__ == "__main__":
    cloud_init() if sys.argv[1] == "cloud-init" else main()
