"""The head's loop: slurm.conf, names and addresses, the report to the operator."""
import base64
import contextlib
import datetime
import gzip
import hashlib
import http.server
import importlib
import io
import json
import os
import sys
import threading
import unittest
import unittest.mock
import urllib.request

from . import render
from .stage import INSTANCE, Head

sys.path.insert(0, render.NODE)


class Service(http.server.BaseHTTPRequestHandler):
    """Metadata service and SSM in one: remembers what was put."""
    puts, headers_seen, fails, answers = [], [], 0, None

    def answer(self, text, code=200):
        self.send_response(code)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_PUT(self):
        self.answer("token")

    def do_GET(self):
        known = {"iam/security-credentials/": "role", "instance-id": "i-9", "local-ipv4": "10.0.0.12", "ami-launch-index": "1",
                 "iam/security-credentials/role": json.dumps({"AccessKeyId": "ASIA1", "SecretAccessKey": "top-secret", "Token": "t"})}
        found = known.get(self.path.replace("/latest/meta-data/", "")) if self.headers["X-aws-ec2-metadata-token"] else None
        self.answer(found or "", 200 if found else 404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        if self.headers["x-amz-target"].endswith("GetParameter"):
            if Service.answers is None:
                return self.answer('{"__type":"ParameterNotFound"}', 400)
            return self.answer(json.dumps({"Parameter": {"Value": json.dumps(Service.answers)}}))
        if Service.fails:
            Service.fails -= 1
            return self.answer('{"__type":"ThrottlingException"}', 400)
        Service.puts.append(json.loads(body))
        Service.headers_seen.append(dict(self.headers))
        return self.answer('{"Version":1}')

    def log_message(self, *_):
        pass


class Case(unittest.TestCase):
    def setUp(self):
        self.stage = Head()
        self.addCleanup(self.stage.close)
        os.environ.update({key: value for key, value in self.stage.environment().items() if key.startswith("HPCOPS_")})
        self.node = importlib.reload(importlib.import_module("node"))
        self.power = importlib.reload(importlib.import_module("power"))
        self.head = importlib.reload(importlib.import_module("head"))
        self.keeper = self.power.Keeper()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        Service.puts, Service.headers_seen, Service.fails, Service.answers = [], [], 0, None
        url = "http://127.0.0.1:%d/" % server.server_address[1]
        self.node.IMDS = url + "latest/"
        os.environ["AWS_ENDPOINT_URL"] = url
        self.states()

    def states(self, **states):
        self.stage.write("slurm/sinfo.txt", "".join("%s %s\n" % (name.replace("_", "-"), state) for name, state in states.items()))

    def says(self, name, ip, step="ready", code=0, message="", gang="", attempt=1):
        self.stage.write("state/nodes/%s.json" % name, json.dumps({
            "name": name, "ip": ip, "instanceId": "i-" + name, "step": step, "exit": code, "message": message,
            "queue": name.rpartition("-")[0], "gang": gang, "attempt": attempt}))

    def look(self, told=None, leaving=()):
        return self.head.look({} if told is None else told, self.keeper, leaving)

    def calls(self):
        try:
            return self.stage.read("slurm/scontrol.log").splitlines()
        except FileNotFoundError:
            return []

    def updates(self):
        return [line for line in self.calls() if line != "reconfigure"]


class Configuration(Case):
    def test_every_node_is_declared_with_its_cores(self):
        text = self.head.slurm_conf("slurm")
        self.assertIn("NodeName=compute-[1-2] CPUs=36 RealMemory=180000 Weight=1 State=CLOUD\n", text)
        self.assertIn("NodeName=compute-[3-1000] CPUs=36 RealMemory=180000 Weight=9 State=CLOUD\n", text)
        self.assertIn("PartitionName=compute Nodes=compute-[1-4] Default=YES MaxTime=INFINITE State=UP SuspendTime=300\n", text)
        self.assertIn("SuspendExcNodes=compute-[1-2]\n", text)
        self.assertIn("(10.0.0.10)\n", text)
        self.assertIn("SlurmUser=slurm\n", text)
        self.assertNotIn("@", text)

    def test_a_queue_without_nodes_is_an_empty_partition(self):
        self.stage.config["queues"] = [{"name": "empty", "standing": "", "most": 0, "idleSeconds": 1, "cpus": 1, "memoryMiB": 1}]
        self.stage.write("config.json", json.dumps(self.stage.config))
        text = self.head.slurm_conf("root")
        self.assertIn('PartitionName=empty Nodes="" ', text)

    def test_names_not_seen_yet_resolve_to_nowhere_on_the_head_only(self):
        self.says("compute-1", "10.0.0.11")
        known = self.head.wanted()
        self.head.publish_hosts(self.head.registrations(known), known)
        self.assertIn("10.0.0.11 compute-1\n127.0.0.2 compute-2\n", self.stage.read("hosts"))
        self.assertEqual(self.stage.read("state/hosts"), "10.0.0.11 compute-1\n")


class Numbers(Case):
    """What the operator says of the queues while they run."""

    def tell(self, standing, most, idle=300):
        self.head.heed({"queues": [{"name": "compute", "standing": standing, "most": most, "idleSeconds": idle}]}, self.keeper)

    def conf(self):
        return self.stage.read("slurm/etc/slurm.conf")

    def test_changed_numbers_are_taken_over_without_a_node_being_added_or_taken(self):
        self.look()
        self.tell("1-3", 6, 20)
        report = self.look()
        self.assertEqual(report["queues"], [{"name": "compute", "standing": "1-3", "most": 6, "idleSeconds": 20}])
        for line in ("NodeName=compute-[1-3] ", "NodeName=compute-[4-1000] ", "Nodes=compute-[1-6] ", "SuspendTime=20\n",
                     "SuspendExcNodes=compute-[1-3]\n", "SlurmUser=slurm\n"):
            self.assertIn(line, self.conf())
        self.look()
        self.assertEqual(self.calls(), ["reconfigure"] * 2, "once for each change")

    def test_a_scheduler_that_does_not_take_them_is_told_again(self):
        self.tell("", 1)
        self.stage.write("slurm/stubborn", "")
        self.look()
        self.stage.remove("slurm/stubborn")
        self.look()
        self.assertIn("Nodes=compute-[1] ", self.conf())
        self.assertEqual(self.calls(), ["reconfigure"])

    def test_a_node_beyond_the_numbers_gets_no_new_job_and_stays_in_sight_until_it_has_left(self):
        self.says("compute-2", "10.0.0.12")
        self.tell("1", 1)
        entry = {"queue": "compute", "gang": "", "attempt": 1, "slots": "2", "hard": False, "code": "QueueShrinks", "message": "x"}
        for state, left in (("mix", []), ("drng!", []), ("idle%", ["2"])):
            self.states(compute_2=state)
            report = self.look(leaving=[entry])
            self.assertEqual([found["ready"] for found in report["left"]], left, state)
            self.assertIn("Nodes=compute-[1-2] ", self.conf())
        self.assertIn("update nodename=compute-2 state=power_down_asap reason=hpcops: QueueShrinks x", self.updates())
        self.assertEqual(len([line for line in self.updates() if "power_down" in line]), 1)
        self.look()
        self.assertIn("Nodes=compute-[1] ", self.conf())
        self.assertEqual(self.stage.read("state/hosts"), "")

    def test_a_broken_node_is_powered_down_with_its_job_and_another_launch_is_left_alone(self):
        self.states(compute_1="alloc", compute_2="idle")
        self.says("compute-1", "10.0.0.11", attempt=2)
        entry = {"queue": "compute", "gang": "", "slots": "1", "hard": True, "code": "Impaired", "message": "x"}
        for attempt in (1, 2):
            self.look(leaving=[dict(entry, attempt=attempt)])
            downs = [line for line in self.updates() if "power_down_force" in line]
            self.assertEqual(len(downs), attempt - 1)

    def test_a_node_of_a_gang_that_is_to_stand_by_now_is_still_the_gangs(self):
        for gang, slots in (("7-1", [3]), ("8-1", [4])):
            self.power.keep({"gang": gang, "job": "7", "queue": "compute", "slots": slots})
        self.says("compute-3", "10.0.0.13", gang="7-1")
        self.states(compute_3="alloc")
        self.tell("1-4", 4)
        report = self.look()
        self.assertEqual([entry["gang"] for entry in report["demand"]], ["7-1"], "the other one never came")
        self.assertEqual([entry["gang"] for entry in report["fleets"]], ["7-1"])


class Addresses(Case):
    def test_slurm_is_told_each_address_once_after_the_names(self):
        told = {}
        self.states(compute_1="idle", compute_2="unk")
        self.says("compute-1", "10.0.0.11")
        for _ in range(3):
            self.look(told)
        self.assertEqual(self.updates(), ["update nodename=compute-1 nodeaddr=10.0.0.11"])
        self.says("compute-1", "10.0.0.99")
        self.look(told)
        self.assertEqual(self.updates()[1:], ["update nodename=compute-1 nodeaddr=10.0.0.99"])
        self.assertEqual(self.stage.read("state/hosts"), "10.0.0.99 compute-1\n")

    def test_a_scheduler_that_does_not_answer_is_told_later(self):
        told = {}
        self.stage.write("slurm/down", "")
        self.says("compute-1", "10.0.0.11")
        self.look(told)
        self.assertEqual(told, {})

    def test_strangers_and_torn_files_are_not_believed(self):
        self.says("intruder", "10.0.0.66")
        self.says("compute-1", "10.0.0.11; rm -rf /")
        self.stage.write("state/nodes/compute-2.json", '{"ip": "10.0')
        self.assertEqual(self.head.registrations(self.head.wanted()), {})

    def test_the_rest_of_etc_hosts_stays(self):
        self.stage.write("hosts", "127.0.0.1 localhost\n10.9.9.9 licence")
        for text in ("10.0.0.11 a\n", "10.0.0.12 b\n"):
            self.node.set_hosts(text)
        self.assertEqual(self.stage.read("hosts"),
                         "127.0.0.1 localhost\n10.9.9.9 licence\n# hpcops begin\n10.0.0.12 b\n# hpcops end\n")


class Report(Case):
    def test_a_node_is_ready_when_it_and_slurm_say_so(self):
        for state, step, code, ready in (
                ("idle", "ready", 0, 1), ("mix", "ready", 0, 1), ("alloc", "ready", 0, 1), ("comp", "ready", 0, 1),
                ("idle", "slurmd", 0, 0), ("idle*", "ready", 0, 0), ("down", "ready", 0, 0), ("drain", "ready", 0, 0),
                ("unk", "ready", 0, 0), ("idle~", "ready", 0, 0)):
            self.states(compute_1=state, compute_2="down")
            self.says("compute-1", "10.0.0.11", step, code)
            report = self.look()
            fleets = [{"queue": "compute", "gang": "", "attempt": 1, "ready": "1"}] if ready else []
            self.assertEqual(report["fleets"], fleets, (state, step))

    def test_the_heads_own_boot_is_its_state(self):
        for now, expected in (
                ({}, ("Booting", "", "")),
                ({"step": "slurm", "exit": 0, "message": ""}, ("Booting", "slurm", "")),
                ({"step": "ready", "exit": 0, "message": ""}, ("Ready", "ready", "")),
                ({"step": "storage", "exit": 32, "message": "gave up"}, ("Failed", "storage", "gave up"))):
            self.stage.write("now.json", json.dumps(now))
            report = self.look()
            self.assertEqual((report["state"], report["step"], report["message"]), expected)
            self.assertEqual(report["instanceId"], INSTANCE)

    def test_a_failed_node_is_named_with_its_last_words(self):
        self.says("compute-2", "10.0.0.12", "storage", 32, "mount.lustre: \u00e9 {{x}} " + "y" * 300)
        worst, = self.look()["worst"]
        self.assertEqual((worst["name"], worst["step"], worst["exit"], len(worst["message"])), ("compute-2", "storage", 32, 200))
        self.assertTrue(all(" " <= letter <= "~" for letter in worst["message"]))

    def test_the_value_fits_a_standard_parameter_whatever_the_size(self):
        queue = {"name": "q" * 30, "standing": "1-128", "most": 1000, "idleSeconds": 1, "cpus": 1, "memoryMiB": 1}
        self.stage.config["queues"] = [queue]
        self.stage.write("config.json", json.dumps(self.stage.config))
        for index in range(1, 129):
            self.says("%s-%d" % (queue["name"], index), "10.0.0.1", "storage", 1, '"\\' * 100)
        for job in range(400):
            digest = hashlib.sha256(b"%d" % job).hexdigest()  # names that do not compress
            self.power.keep({"gang": "%s-1" % digest, "job": str(job), "queue": queue["name"], "slots": [200 + 2 * job]})
        text = self.head.text_of(self.look(), 7)
        self.assertLessEqual(len(text), 4096)
        found = self.unpacked(text)
        self.assertEqual((found["seq"], found["cut"], len(found["worst"])), (7, True, 1))
        self.assertGreater(len(found["demand"]), 30)

    def test_a_long_report_is_compressed_and_nothing_is_left_out(self):
        now = 1796000000000
        for job in range(200):
            self.power.keep({"gang": "%d-%d" % (4711 + job, now + 37 * job), "job": str(job), "queue": "compute", "slots": [3 + job]})
        text = self.head.text_of(self.look(), 7)
        self.assertLessEqual(len(text), 4096)
        found = self.unpacked(text)
        self.assertEqual((len(found["demand"]), found.get("cut")), (200, None))

    def unpacked(self, text):
        return json.loads(gzip.decompress(base64.b64decode(text)))


class Demand(Case):
    def resume(self, nodes, *jobs):
        self.stage.write("resume.json", json.dumps({"jobs": [
            {"job_id": job, "nodes_alloc": alloc, "nodes_resume": names} for job, alloc, names in jobs]}))
        os.environ["SLURM_RESUME_FILE"] = os.path.join(self.stage.top, "resume.json")
        self.power.resume(nodes)

    def demand(self):
        return [(entry["gang"].split("-")[0], entry["queue"], entry["slots"]) for entry in self.look()["demand"]]

    def test_each_job_is_a_gang_of_the_nodes_it_lacks(self):
        self.resume("compute-3,compute-4,large-1", (7, "compute-1,compute-3", "compute-3"), (8, "compute-4", "compute-4"))
        self.assertEqual(sorted(self.demand()), [("0", "large", "1"), ("7", "compute", "3"), ("8", "compute", "4")])

    def test_the_words_of_an_older_slurm_are_understood(self):
        self.stage.write("resume.json", json.dumps({"jobs": [{"job_id": 7, "nodes": "compute-3,compute-4"}], "all_nodes": ""}))
        os.environ["SLURM_RESUME_FILE"] = os.path.join(self.stage.top, "resume.json")
        self.power.resume("compute-3,compute-4")
        self.assertEqual(self.demand(), [("7", "compute", "3-4")])

    def test_a_gang_shrinks_with_its_idle_nodes_and_goes_with_the_last(self):
        self.resume("compute-3,compute-4", (7, "compute-3,compute-4", "compute-3,compute-4"))
        self.power.suspend("compute-3")
        self.assertEqual(self.demand(), [("7", "compute", "4")])
        self.power.suspend("compute-4")
        self.assertEqual(self.demand(), [])

    def test_what_a_former_gang_said_under_a_name_does_not_count(self):
        self.resume("compute-3", (7, "compute-3", "compute-3"))
        gang = self.look()["demand"][0]["gang"]
        self.states(compute_3="idle")
        for said, ready in (("6-1", []), (gang, ["3"])):
            self.says("compute-3", "10.0.0.13", gang=said)
            self.assertEqual([entry["ready"] for entry in self.look()["fleets"]], ready)

    def test_what_cannot_be_had_is_powered_down_and_its_job_put_off(self):
        self.resume("compute-3,compute-4", (7, "compute-3,compute-4", "compute-3,compute-4"))
        gang = self.look()["demand"][0]["gang"]
        answer = {"gang": gang, "code": "InsufficientCapacity", "message": "none left", "nextTry": "2999-01-01T00:00:00Z"}
        for _ in range(3):
            self.keeper.heed({"answers": [answer, {"gang": "unknown-1"}]})
            self.keeper.put_off()
        down, later = self.updates()[:2]
        self.assertEqual(down, "update nodename=compute-3,compute-4 state=power_down_force "
                               "reason=hpcops: InsufficientCapacity none left")
        self.assertIn("update jobid=7 starttime=2999-01-01T", later)
        self.assertEqual(len([line for line in self.updates() if "power_down" in line]), 1)

    def test_a_node_that_came_for_a_job_and_is_lost_is_powered_down(self):
        self.resume("compute-3", (7, "compute-3", "compute-3"))
        for state, downs in (("alloc", 0), ("idle#", 0), ("down*", 1)):
            self.states(compute_3=state, compute_1="down*")
            self.look()
            self.assertEqual(len([line for line in self.updates() if "power_down" in line]), downs, state)

    def test_the_nodes_of_a_new_scheduler_are_asked_once_what_runs_on_them(self):
        self.states(compute_1="alloc")
        for second, asked in ((0, 0), (39, 0), (41, 1), (99, 1)):
            with unittest.mock.patch.object(self.power.time, "monotonic", return_value=1000 + second):
                self.keeper.muster()
            self.assertEqual(self.calls().count("reconfigure"), asked, second)

    def test_ranges_are_written_and_read(self):
        for text in ("", "1", "1-3", "1-3,7,9-10"):
            self.assertEqual(self.node.ranges(self.node.slots(text)), text)


class Parameter(Case):
    def run_loop(self, rounds):
        """The loop, with a clock that ends it."""
        waits = []

        def sleep(seconds):
            waits.append(seconds)
            rounds[len(waits) - 1]()
            if len(waits) == len(rounds):
                raise KeyboardInterrupt

        self.said = io.StringIO()
        with contextlib.redirect_stdout(self.said), contextlib.suppress(KeyboardInterrupt):
            self.head.loop(sleep)
        return waits

    def test_only_a_change_is_put_and_its_number_grows(self):
        self.states(compute_1="idle")
        nothing = lambda: None
        self.run_loop([nothing, lambda: self.says("compute-1", "10.0.0.11"), nothing, nothing])
        self.assertEqual([put["Name"] for put in Service.puts], ["/hpcops/uid-1/demand"] * 2)
        self.assertTrue(all(put["Type"] == "String" and put["Overwrite"] for put in Service.puts))
        first, second = (json.loads(put["Value"]) for put in Service.puts)
        self.assertGreater(second["seq"], first["seq"])
        self.assertEqual([len(first["fleets"]), len(second["fleets"])], [0, 1])

    def test_a_throttled_put_backs_off_and_is_said_again(self):
        Service.fails = 3
        nothing = lambda: None
        waits = self.run_loop([nothing] * 5)
        self.assertEqual(waits, [2, 4, 8, 1, 1])
        self.assertEqual(len(Service.puts), 1)
        self.assertIn("ThrottlingException", self.said.getvalue())

    def test_the_secret_is_in_no_header_and_no_log(self):
        self.run_loop([lambda: None])
        headers = Service.headers_seen[0]
        self.assertNotIn("top-secret", json.dumps(headers) + self.said.getvalue())
        self.assertIn("Credential=ASIA1/", headers["Authorization"])
        self.assertEqual(headers["X-Amz-Security-Token"], "t")

    def test_the_signature_is_the_one_aws_expects(self):
        # Computed once with botocore for the same request, keys and time.
        request = urllib.request.Request("https://ssm.us-east-1.amazonaws.com/", data=b'{"Name":"/x"}', headers={
            "Content-type": "application/x-amz-json-1.1", "X-amz-target": "AmazonSSM.PutParameter"})
        keys = {"AccessKeyId": "AKIDEXAMPLE", "SecretAccessKey": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "Token": "tok"}
        self.head.sign(request, keys, "us-east-1", datetime.datetime(2024, 1, 2, 3, 4, 5))
        self.assertEqual(request.get_header("Authorization"), SIGNATURE)


SIGNATURE = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20240102/us-east-1/ssm/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target, Signature=a901c061e35174113d7e1422b2f1cb0676375d34f21d10807d06adaf8fb3254c"


class Node(Case):
    def be_compute(self):
        self.stage.config.update(role="compute", queue="compute", gang="7-1", attempt=3, slots="1-2")
        self.stage.write("config.json", json.dumps(self.stage.config))
        self.node.identify()

    def test_a_compute_node_takes_its_name_by_launch_index(self):
        self.be_compute()
        self.assertEqual(self.node.identity(), {"instanceId": "i-9", "ip": "10.0.0.12", "name": "compute-2"})

    def test_records_made_before_the_state_came_are_copied_to_it(self):
        self.be_compute()
        self.stage.write("log", "".join("line %d\n" % index for index in range(100)))
        log = os.path.join(self.stage.top, "log")
        os.rename(self.stage.state, self.stage.state + ".away")
        self.node.record("doctor", "1700000000.5", "0", log)
        os.rename(self.stage.state + ".away", self.stage.state)
        self.node.record("storage", "1700000001.5", "32", log)
        kept = {name: json.loads(self.stage.read("state/boot/compute-2/" + name)) for name in ("doctor.json", "storage.json")}
        self.assertEqual((kept["doctor.json"]["exit"], kept["storage.json"]["exit"]), (0, 32))
        self.assertEqual((len(kept["storage.json"]["lines"]), kept["storage.json"]["lines"][-1]), (20, "line 99"))
        said = json.loads(self.stage.read("state/nodes/compute-2.json"))
        self.assertEqual(said, {"name": "compute-2", "ip": "10.0.0.12", "instanceId": "i-9", "step": "storage", "exit": 32,
                                "message": "line 95; line 96; line 97; line 98; line 99",
                                "queue": "compute", "gang": "7-1", "attempt": 3})

    def test_hosts_are_taken_when_they_name_this_node_as_it_is_now(self):
        self.be_compute()
        for text, taken in (("", False), ("10.0.0.7 compute-2\n", False), ("10.0.0.11 compute-1\n10.0.0.12 compute-2\n", True)):
            self.stage.write("state/hosts", text)
            self.assertEqual(self.node.take_hosts(), taken)
        self.assertIn("10.0.0.11 compute-1\n10.0.0.12 compute-2\n", self.stage.read("hosts"))


if __name__ == "__main__":
    unittest.main()
