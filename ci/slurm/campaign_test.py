#!/usr/bin/env python3
"""campaign_test.py ATTEST: ci/slurm/campaign, by a stand-in for sbatch that loses a node.

The stand-in runs the tasks of an array one after the other, as sbatch's options say; it kills the first try of one
task in its middle and runs it again, as Slurm does with --requeue. Where Slurm is installed (slurmctld, slurmd), and
root is who runs the tests, a cluster of this one node is started too, which dies while its tasks run, and comes back.
"""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

CAMPAIGN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "campaign")
ATTEST = None
SBATCH = """#!/usr/bin/env python3
import os, re, shutil, subprocess, sys, time
at = next(n for n, w in enumerate(sys.argv) if n and not w.startswith("--"))
flags, command = sys.argv[1:at], sys.argv[at:]
open("sbatch.txt", "a").write(" ".join(flags) + "\\n")
array = next((re.match(r"--array=0-(\\d+)", f) for f in flags if f.startswith("--array")), None)
if array is None:  # the merge, behind all that has been run
    assert "--dependency=afterok:7" in flags, flags
    if os.path.exists("failed"):
        sys.exit(print("8"))
    output = next(f[9:] for f in flags if f.startswith("--output="))
    subprocess.run(command, stdout=open(output, "w"), stderr=subprocess.STDOUT, check=False)
    sys.exit(print("8"))
for task in range(int(array[1]) + 1):
    environment = dict(os.environ, SLURM_ARRAY_TASK_ID=str(task))
    if task == 1 and not os.path.exists("killed"):
        open("killed", "w").close()
        assert "--requeue" in flags
        run = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)
        path = os.path.join(command[2], "shards", "1", "result.jsonl")
        while not os.path.exists(path) or open(path).read().count('"record":"law"') < 3:
            assert run.poll() is None, "it ended before it was killed"
            time.sleep(0.01)
        os.killpg(run.pid, 9)
        run.wait()
        shutil.copy(path, "cut.jsonl")
    if subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False).returncode:
        open("failed", "w").close()
print("7;cluster")
"""


class StandIn(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.cwd = self.folder.name
        with open(os.path.join(self.cwd, "sbatch"), "w", encoding="utf-8") as file:
            file.write(SBATCH)
        os.chmod(file.name, 0o755)

    def tearDown(self):
        self.folder.cleanup()

    def campaign(self, *arguments, code=0):
        environment = dict(os.environ, PATH=self.cwd + os.pathsep + os.environ["PATH"], ATTEST=ATTEST)
        run = subprocess.run([CAMPAIGN, *arguments], cwd=self.cwd, env=environment, capture_output=True, text=True,
                             check=False, timeout=300)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run.stdout + run.stderr

    def records(self, *parts):
        with open(os.path.join(self.cwd, *parts, "result.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def test_a_lost_node_loses_nothing(self):
        words = ["run", "3", "cpu_naive", "--seed", "5", "--profile", "quick", "--cases", "12", "--match",
                 "masking.*"]
        self.assertIn("job 7: 3 parts; job 8 merges them into run/merged", self.campaign(*words))
        with open(os.path.join(self.cwd, "cut.jsonl"), encoding="utf-8") as file:  # its last line may be half a record
            kept = [json.loads(line) for line in file.read().split("\n")[:-1] if '"record":"law"' in line]
        self.assertGreaterEqual(len(kept), 3)
        again = self.records("run", "shards", "1")
        self.assertEqual([law for law in kept if law not in again], [])  # to the seconds that each took
        subprocess.run([ATTEST, "certify", "cpu_naive", *words[3:], "--out", "one"], cwd=self.cwd, check=False,
                       stdout=subprocess.DEVNULL)

        def laws(*parts):
            return sorted((r["law"], r["verdict"], r["cases"], r["discarded"], r["elements"], json.dumps(r.get("worst")))
                          for r in self.records(*parts) if r["record"] == "law")
        self.assertEqual(laws("run", "merged"), laws("one"))
        before = os.stat(os.path.join(self.cwd, "run", "shards", "0", "result.jsonl")).st_mtime_ns
        self.campaign(*words)  # goes on: there is nothing left to do but to merge
        self.assertEqual(os.stat(os.path.join(self.cwd, "run", "shards", "0", "result.jsonl")).st_mtime_ns, before)
        self.assertIn("of another campaign", self.campaign(*words[:4], "6", code=2))

    def test_mistakes_are_told(self):
        self.assertIn("all parts need the same", self.campaign("run", "3", "cpu_naive", code=2))
        self.assertIn("at least 1, not 0", self.campaign("run", "0", "cpu_naive", "--seed", "1", code=2))
        self.assertIn("are needed", self.campaign("run", code=2))


# cred_expire is how long a job that is queued again waits: 120 s otherwise.
CONFIG = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
AuthInfo=cred_expire=5
MpiDefault=none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldPort=26817
SlurmdPort=26818
SlurmdTimeout=10
ReturnToService=2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=1,sched_interval=2,bf_interval=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=2
PartitionName=all Nodes={host} Default=YES State=UP
"""


@unittest.skipUnless(shutil.which("slurmctld") and shutil.which("slurmd") and os.geteuid() == 0,
                     "no Slurm here (slurmctld, slurmd), or not root: apt-get install slurm-wlm")
class OnSlurm(StandIn):
    def setUp(self):
        super().setUp()
        os.remove(os.path.join(self.cwd, "sbatch"))  # the real one
        config = os.path.join(self.cwd, "slurm.conf")
        os.mkdir(os.path.join(self.cwd, "state"))
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(host=socket.gethostname().split(".")[0], folder=self.cwd))
        os.environ["SLURM_CONF"] = config
        self.daemons = [self.daemon("slurmctld"), self.daemon("slurmd")]
        self.wait(lambda: "idle" in self.ask("sinfo", "-h"))

    def daemon(self, name):
        return subprocess.Popen([shutil.which(name), "-D"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def lose_node(self):
        """As when its power is cut: slurmd, the steps and their tasks end at one time, and tell nobody."""
        mine = ("SLURM_CONF=" + os.environ["SLURM_CONF"]).encode()
        lost, keep = [self.daemons[1].pid], (self.daemons[0].pid, os.getpid())
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    lost += [int(pid)] if mine in file.read().split(b"\0") and int(pid) not in keep else []
            except OSError:
                continue  # it has ended
        for what in (signal.SIGSTOP, signal.SIGKILL):
            for pid in lost:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, what)
        self.daemons[1].wait()

    def tearDown(self):
        self.ask("scancel", "--state=PENDING,RUNNING", "--user=root")
        self.wait(lambda: not self.ask("squeue", "-h"))
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(timeout=5)
            except subprocess.TimeoutExpired:  # it still waits for a node that was lost
                daemon.kill()
                daemon.wait()
        super().tearDown()

    def ask(self, *words):
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout

    def wait(self, what, seconds=300):
        until = time.monotonic() + seconds
        while not what():
            self.assertLess(time.monotonic(), until, self.ask("squeue"))
            time.sleep(0.5)

    def test_a_lost_node_loses_nothing(self):
        words = ["3", "cpu_naive", "--seed", "5", "--profile", "quick", "--cases", "60", "--match", "masking.*"]
        run = os.path.join(self.cwd, "run")
        self.campaign(run, *words)
        part = os.path.join(run, "shards", "1", "result.jsonl")
        self.wait(lambda: os.path.exists(part) and os.path.getsize(part) > 20000)
        self.lose_node()
        self.wait(lambda: "down" in self.ask("sinfo", "-h"))
        self.daemons[1] = self.daemon("slurmd")
        self.wait(lambda: not self.ask("squeue", "-h"))
        subprocess.run([ATTEST, "certify", *words[1:], "--out", "one"], cwd=self.cwd, check=False,
                       stdout=subprocess.DEVNULL)
        laws = [sorted((r["law"], r["verdict"], r["cases"], r["elements"]) for r in self.records(folder)
                       if r["record"] == "law") for folder in (os.path.join(run, "merged"), "one")]
        self.assertEqual(*laws)
        with open(os.path.join(run, "log", "1.txt"), encoding="utf-8") as file:
            self.assertIn("part 1 goes on with what it has", file.read())

    test_mistakes_are_told = None  # the same on any machine


if __name__ == "__main__":
    ATTEST = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
