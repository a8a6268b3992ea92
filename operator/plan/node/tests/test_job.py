"""Submit, poll, fetch and cancel through the rendered document, against Slurm's commands in small."""
import base64
import gzip
import hashlib
import json
import os
import random
import signal
import subprocess
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from .stage import INSTANCE, Head


class Case(unittest.TestCase):
    def setUp(self):
        self.head = Head()
        self.addCleanup(self.head.close)


class Submit(Case):
    def test_an_attempt_becomes_one_exclusive_job_of_its_user(self):
        answer, = self.head.submit(self.head.attempt())
        self.assertEqual(answer, {"id": "run-1-a1", "state": "Submitted", "jobId": "1", "message": ""})
        job, = self.head.jobs()
        folder = self.head.folder()
        self.assertEqual(job["argv"], [
            "--parsable", "--exclusive", "--requeue", "--job-name=run-1-a1", "--partition=compute", "--nodes=2",
            "--ntasks-per-node=1", "--time=60", "--chdir=" + folder, "--output=%s/output.log" % folder,
            "--open-mode=append", folder + "/job.sh"])
        self.assertEqual((job["uid"], job["cwd"]), (self.head.user.pw_uid, folder))
        self.assertNotEqual(job["uid"], 0)
        self.assertEqual(sorted(set(job["env"]) - {"LC_CTYPE"}), [
            "HOME", "HPCOPS_MPI_ROOT", "LANG", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SHELL", "USER"])
        self.assertEqual(os.stat(folder).st_uid, self.head.user.pw_uid)

    def test_the_same_attempt_twice_is_one_job(self):
        self.head.submit(self.head.attempt())
        answer, = self.head.submit(self.head.attempt())
        self.assertEqual((answer["state"], answer["jobId"]), ("Exists", "1"))
        both = self.head.submit(self.head.attempt("a2"), self.head.attempt("a2"))
        self.assertEqual([one["state"] for one in both], ["Submitted", "Exists"])
        self.assertEqual(len(self.head.jobs()), 2)

    def test_submits_at_the_same_time_are_one_job(self):
        question = {"op": "submit", "attempts": [self.head.attempt()]}
        payload = base64.b64encode(gzip.compress(json.dumps(question).encode())).decode()
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: self.head.ask_raw(payload)[1]["attempts"][0]["state"], range(4)))
        self.assertEqual(sorted(answers), ["Exists", "Exists", "Exists", "Submitted"])
        self.assertEqual(len(self.head.jobs()), 1)

    def test_a_job_whose_id_got_lost_is_found_by_its_name(self):
        self.head.write("slurm/mute", "")
        lost, = self.head.submit(self.head.attempt())
        self.assertEqual((lost["state"], lost["jobId"]), ("Error", ""))
        self.head.remove("slurm/mute")
        found, = self.head.submit(self.head.attempt())
        self.assertEqual((found["state"], found["jobId"]), ("Exists", "1"))
        self.assertEqual(len(self.head.jobs()), 1)

    def test_what_started_or_ended_is_never_submitted_again(self):
        for mark in ("started", "exit"):
            self.head.submit(self.head.attempt(mark))
            self.head.forget_jobs()
            os.unlink(self.head.folder(mark) + "/job")
            os.mkdir(self.head.folder(mark) + "/" + mark)
            answer, = self.head.submit(self.head.attempt(mark))
            self.assertEqual((answer["state"], self.head.jobs()), ("Exists", []), mark)

    def test_nothing_is_submitted_while_the_scheduler_does_not_answer(self):
        self.head.write("slurm/down", "")
        answer, = self.head.submit(self.head.attempt())
        self.assertEqual(answer["state"], "Error")
        self.assertIn("Unable to contact slurm controller", answer["message"])
        self.assertEqual(self.head.jobs(), [])

    def test_one_refused_attempt_does_not_stop_the_others(self):
        refused = [
            (dict(user="root"), "jobs never run as root"),
            (dict(user="nosuchuser"), "the cluster has no user nosuchuser"),
            (dict(user="a;b"), "the user's name is malformed"),
            (dict(queue="x --uid=0"), "the queue's name is malformed"),
            (dict(nodes=0), "nodes must be 1 to 10000"),
            (dict(nodes="2"), "nodes must be 1 to 10000"),
            (dict(mpi="MVAPICH"), "the image has no MPI called MVAPICH"),
            (dict(environment={"A B": "1"}), "the environment is malformed"),
            (dict(environment={"A": 1}), "the environment is malformed"),
            (dict(script=None), "the script is missing"),
            (dict(folder="/etc/run-1/a1"), "an attempt's folder is below <mountPath>/.hpcops/ of a storage"),
            (dict(folder=self.head.storage + "/.hpcops/../../etc"), "an attempt's folder is malformed"),
            (dict(folder=self.head.storage + "/.hpcops/a%j"), "an attempt's folder is malformed"),
            (dict(folder=7), "an attempt's folder is malformed"),
        ]
        attempts = [self.head.attempt("bad%d" % index, **change) for index, (change, _) in enumerate(refused)]
        answers = self.head.submit(*attempts, self.head.attempt())
        self.assertEqual([one["message"] for one in answers[:-1]], [message for _, message in refused])
        self.assertEqual(answers[-1]["state"], "Submitted")
        self.assertEqual(len(self.head.jobs()), 1)

    def test_a_link_in_the_path_is_not_followed(self):
        os.makedirs(self.head.storage + "/.hpcops/run-1")
        elsewhere = self.head.make("elsewhere")
        os.symlink(elsewhere, self.head.folder())
        answer, = self.head.submit(self.head.attempt())
        self.assertEqual((answer["state"], os.listdir(elsewhere)), ("Error", []))

    def test_a_link_in_the_users_folder_is_replaced_not_written_through(self):
        os.makedirs(self.head.folder())
        target = self.head.top + "/target"
        self.head.write("target", "keep")
        os.symlink(target, self.head.folder() + "/run.sh")
        self.assertEqual(self.head.submit(self.head.attempt())[0]["state"], "Submitted")
        self.assertEqual(self.head.read("target"), "keep")

    def test_slurms_refusal_comes_back_in_its_words(self):
        self.head.write("slurm/full", "")
        answer, = self.head.submit(self.head.attempt())
        self.assertEqual(answer["state"], "Error")
        self.assertIn("More processors requested than permitted", answer["message"])


class Poll(Case):
    def test_phases_follow_the_scheduler_and_the_folder(self):
        self.head.submit(self.head.attempt())
        for state, phase in (("PD", "Queued"), ("CF", "Queued"), ("R", "Running"), ("CG", "Running"), ("S", "Running"),
                             ("F", "Lost"), ("TO", "Lost"), ("NF", "Lost"), ("CA", "Lost")):
            self.head.set_job(0, state=state, reason="Because")
            one, = self.head.poll("a1")
            self.assertEqual((one["phase"], one["jobState"], one["exit"]), (phase, state, None), state)

    def test_an_exit_file_ends_it_whatever_the_scheduler_says(self):
        self.head.submit(self.head.attempt())
        self.assertEqual(self.head.run_job(), 0)
        for forget in (False, True):
            if forget:
                self.head.forget_jobs()
            one, = self.head.poll("a1")
            self.assertEqual((one["phase"], one["exit"]["code"], one["outputBytes"]), ("Finished", 0, 6))

    def test_a_job_the_scheduler_forgot_is_lost_once_it_has_started_and_submitted_again_before(self):
        self.head.submit(self.head.attempt())
        self.head.forget_jobs()
        one, = self.head.poll("a1")
        self.assertEqual((one["phase"], one["reason"]), ("Unknown", "NotStarted"))
        answer, = self.head.submit(self.head.attempt())
        self.assertEqual(answer["state"], "Submitted")
        os.mkdir(self.head.folder() + "/started")
        self.head.forget_jobs()
        self.assertEqual(self.head.poll("a1")[0]["phase"], "Lost")
        answer, = self.head.submit(self.head.attempt())
        self.assertEqual(answer["state"], "Exists")

    def test_nothing_is_lost_while_the_scheduler_does_not_answer(self):
        self.head.submit(self.head.attempt())
        self.head.write("slurm/down", "")
        one, = self.head.poll("a1")
        self.assertEqual(one["phase"], "Unknown")
        self.assertTrue(one["reason"].startswith("SchedulerUnavailable: "))

    def test_what_was_never_submitted_is_said_to_be_so(self):
        one, = self.head.poll("a1")
        self.assertEqual((one["phase"], one["reason"]), ("Unknown", "NotSubmitted"))

    def test_a_head_answers_for_itself_only(self):
        code, answer = self.head.ask(op="poll", heads={"i-other": [{"id": "x", "folder": self.head.folder()}]})
        self.assertEqual((code, answer), (0, {"attempts": [], "omitted": 0}))
        self.assertEqual(INSTANCE[:2], "i-")

    def test_an_answer_too_long_says_how_many_it_leaves_out(self):
        names = ["n%d" % index for index in range(400)]
        code, answer = self.head.ask(op="poll", heads={INSTANCE: [
            {"id": "run-1-" + name, "folder": self.head.folder(name)} for name in names]})
        self.assertEqual(code, 0)
        self.assertEqual(len(answer["attempts"]) + answer["omitted"], 400)
        self.assertGreater(len(answer["attempts"]), 100)


class Fetch(Case):
    def finish(self, output):
        self.head.submit(self.head.attempt())
        with open(self.head.folder() + "/output.log", "wb") as file:
            file.write(output)
        with open(self.head.folder() + "/exit", "w") as file:
            file.write('{"code":0}')

    def pages(self):
        data, offset, count = b"", 0, 0
        while offset is not None:
            code, page = self.head.ask(op="fetch", id="run-1-a1", folder=self.head.folder(), offset=offset)
            self.assertEqual((code, page["offset"]), (0, offset))
            data += gzip.decompress(base64.b64decode(page["data"]))
            offset, count = page["next"], count + 1
        self.assertEqual((len(data), hashlib.sha256(data).hexdigest()), (page["bytes"], page["sha256"]))
        return data, count, page["tail"]

    def test_output_comes_back_whole_in_pages(self):
        noise = random.Random(1)
        for output, least in ((b"", 1), (b"# OSU MPI Latency Test\n8 1.75\n", 1), (b"same line\n" * 200000, 2),
                              (bytes(noise.randrange(256) for _ in range(40000)), 3)):
            with self.subTest(len(output)):
                self.setUp()
                self.finish(output)
                data, count, _ = self.pages()
                self.assertEqual(data, output)
                self.assertGreaterEqual(count, least)

    def test_the_tail_is_the_last_lines_in_plain_characters(self):
        self.finish("".join("line %d \u00e9\x1b[1m{{x}}\n" % index for index in range(200)).encode())
        _, _, tail = self.pages()
        lines = tail.splitlines()
        self.assertLessEqual(len(lines), 50)
        self.assertEqual(lines[-1], "line 199 ??[1m{{x}}")

    def test_an_attempt_that_still_runs_has_no_output_to_fetch(self):
        self.head.submit(self.head.attempt())
        code, answer = self.head.ask(op="fetch", id="run-1-a1", folder=self.head.folder(), offset=0)
        self.assertEqual((code, answer["message"]), (1, "the attempt has not finished"))

    def test_a_lost_attempt_gives_what_it_wrote(self):
        self.head.submit(self.head.attempt())
        os.mkdir(self.head.folder() + "/started")
        self.head.forget_jobs()
        self.assertEqual(self.pages(), (b"", 1, ""))


class Cancel(Case):
    def test_live_jobs_are_cancelled_by_name_and_others_left_alone(self):
        self.head.submit(self.head.attempt("a1"), self.head.attempt("a2"), self.head.attempt("a3"))
        self.head.set_job(1, state="CD")
        code, answer = self.head.ask(op="cancel", ids=["run-1-a1", "run-1-a2", "run-1-a9"])
        self.assertEqual((code, answer), (0, {"cancelled": ["run-1-a1"]}))
        self.assertEqual([job["state"] for job in self.head.jobs()], ["CA", "CD", "PD"])


class Refusals(Case):
    def test_a_question_that_is_none_gets_an_error_and_code_1(self):
        def pack(text):
            return base64.b64encode(gzip.compress(text)).decode()

        for payload in ("AAAA", "x", pack(b"{"), pack(b"[]"), pack(b"{}"), pack(b'{"op":"reboot"}'),
                        pack(b'{"op":"submit"}'), pack(b'{"op":"cancel","ids":["a;b"]}'),
                        pack(b'{"op":"submit","attempts":[{"id":"A B"}]}'), pack(b'{"op":"poll","heads":[]}')):
            code, answer = self.head.ask_raw(payload)
            self.assertEqual((code, sorted(answer)), (1, ["error", "message"]), payload)


class Batch(Case):
    """The batch script, run for real."""

    def test_it_leaves_an_exit_file_as_its_last_act(self):
        begin = time.time()
        script = "echo hpcops: mpirun-start epoch-ms=1700000000123; echo hpcops: mpirun-start epoch-ms=1800000000000; exit 3"
        self.head.submit(self.head.attempt(script=script))
        self.assertEqual(self.head.run_job(), 3)
        found = self.head.exit_file()
        self.assertEqual((found["code"], found["hosts"], found["jobId"]), (3, ["localhost"], "7"))
        self.assertEqual(found["mpirunStartedAt"], 1700000000.123)
        self.assertTrue(begin - 1 <= found["startedAt"] <= found["finishedAt"] <= time.time() + 1)

    def test_without_mpirun_its_time_is_null(self):
        self.head.submit(self.head.attempt())
        self.head.run_job()
        self.assertIsNone(self.head.exit_file()["mpirunStartedAt"])

    def test_a_second_copy_leaves_at_once(self):
        self.head.submit(self.head.attempt(script="echo ran >>ran"))
        self.assertEqual((self.head.run_job(), self.head.run_job()), (0, 75))
        with open(self.head.folder() + "/ran") as file:
            self.assertEqual(file.read(), "ran\n")

    def test_no_value_becomes_code(self):
        mark = self.head.slurm + "/was-here"  # a folder that everybody may write to
        hostile = "$(touch %s) `touch %s` \"; touch %s; exit 9 #\n'" % (mark, mark, mark)
        self.head.submit(self.head.attempt(environment={"VALUE": hostile, "PATH_LIKE": "$PATH"},
                                           script='printf "%s|%s" "$VALUE" "$PATH_LIKE" >value\n'))
        self.assertEqual(self.head.run_job(), 0)
        with open(self.head.folder() + "/value") as file:
            self.assertEqual(file.read(), hostile + "|$PATH")
        self.assertFalse(os.path.exists(mark))

    def test_a_terminated_job_says_so(self):
        self.head.submit(self.head.attempt(script="touch running; sleep 30 & wait"))
        job = subprocess.Popen(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, **self.head.job())
        deadline = time.time() + 20
        while not os.path.exists(self.head.folder() + "/running"):
            self.assertLess(time.time(), deadline)
            time.sleep(0.02)
        job.send_signal(signal.SIGTERM)
        self.assertEqual(job.wait(20), 143)
        self.assertEqual(self.head.exit_file()["code"], 143)
        os.killpg(job.pid, signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
