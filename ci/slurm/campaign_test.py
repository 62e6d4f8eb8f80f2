#!/usr/bin/env python3
"""campaign_test.py ATTEST: ci/slurm/campaign, by a stand-in for sbatch that loses a node.

The stand-in runs the tasks of an array one after the other, as sbatch's options say; it kills the first try of one
task in its middle and runs it again, as Slurm does with --requeue. Slurm itself is not started here.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

CAMPAIGN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "campaign")
ATTEST = None
SBATCH = """#!/usr/bin/env python3
import os, re, subprocess, sys, time
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
    if subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False).returncode:
        open("failed", "w").close()
print("7;cluster")
"""


class Campaign(unittest.TestCase):
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
        self.assertTrue(os.path.exists(os.path.join(self.cwd, "killed")))
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


if __name__ == "__main__":
    ATTEST = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
