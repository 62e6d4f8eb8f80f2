#!/usr/bin/env python3
"""actions_test.py BUILD: the GitHub action and the GitLab template, each line of shell in them run as the runners do.

A clean checkout of attest (its build folder is BUILD, so that nothing is compiled twice), a stranger's project with one
kernel, a stand-in for apt-get that unpacks the package beside it, and of the runner what the two files ask of it:
expressions, conditions, caches, artifacts.
"""
import http.server
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = None
HOST = "/host/of/the/container"  # as the expressions say it, wherever the step runs
CASES = "--match masking.* --cases 8 --seed 5 --jobs 1 --timeout 60s"
APT_GET = """#!/bin/bash
set -e
[[ $1 != install ]] || for word in "$@"; do [[ $word != *.deb ]] || dpkg-deb -x "$word" "$INSTALLED"; done
"""


class Expression(dict):
    """What stands between ${{ and }}: names with dots, strings, ==, !=, &&, ||, format(), always()."""

    def __call__(self, text):
        def value(match):
            return match[0] if match[0][0] == "'" or match[0] in ("format", "always") else repr(self.get(match[0], ""))
        words = re.sub(r"'[^']*'|[A-Za-z_][\w.-]*", value, text).replace("&&", " and ").replace("||", " or ")
        return eval(words, {"format": lambda form, *with_these: form.format(*with_these), "always": lambda: True})

    def fill(self, text):
        return re.sub(r"\$\{\{(.*?)\}\}", lambda match: str(self(match[1].strip())), text)


class Runner(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.holder.cleanup)
        cls.folder = cls.holder.name
        cls.checkout = os.path.join(cls.folder, "attest")
        subprocess.run(["git", "clone", "-q", "--depth", "1", "file://" + ROOT, cls.checkout], check=True)
        # What is being edited is tested, not what was committed.
        shutil.copytree(os.path.join(ROOT, "ci"), os.path.join(cls.checkout, "ci"), dirs_exist_ok=True)
        os.symlink(os.path.dirname(BUILD), os.path.join(cls.checkout, "build"))
        cls.cache, cls.bin = (os.path.join(cls.folder, name) for name in ("cache", "bin"))
        os.makedirs(cls.cache)
        os.makedirs(cls.bin)
        with open(os.path.join(cls.bin, "apt-get"), "w", encoding="utf-8") as file:
            file.write(APT_GET)
        os.chmod(file.name, 0o755)
        cls.write("bin/sudo", '#!/bin/sh\nexec "$@"\n')
        os.chmod(os.path.join(cls.bin, "sudo"), 0o755)
        cls.projects = {name: cls.project(name, edit) for name, edit in
                        (("right", lambda text: text), ("wrong", lambda text: text.replace("i + 1", "i + (i > 2)")))}

    @classmethod
    def write(cls, name, text):
        with open(os.path.join(cls.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    @classmethod
    def project(cls, name, edit):
        """A stranger's checkout with mine.so, built from the example whose text was edited."""
        path = os.path.join(cls.folder, name)
        examples = os.path.join(ROOT, "kernels", "examples")
        os.makedirs(path)
        with open(os.path.join(examples, "attention.c"), encoding="utf-8") as file:
            cls.write(name + "/attention.c", edit(file.read()))
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-I", os.path.join(ROOT, "kernels", "interface"), "-o", "mine.so",
                        "attention.c", os.path.join(examples, "attention_glue.c"), "-lm"], cwd=path, check=True)
        return path

    def shell(self, text, cwd, options, **variables):
        """bash as the runner starts it: exit code and what was said."""
        installed = os.path.join(self.folder, "installed")
        environment = {"PATH": ":".join((self.bin, installed + "/usr/bin", os.environ["PATH"])), "INSTALLED": installed,
                       "HOME": self.folder, "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "CI": "true", **variables}
        run = subprocess.run(["bash", "--noprofile", "--norc", *options, "-c", text], cwd=cwd, capture_output=True, text=True,
                             timeout=900, check=False, env=environment)
        return run.returncode, run.stdout + run.stderr


class GitHub(Runner):
    def workflow(self, project, event, **inputs):
        """The composite action in a job of a workflow: whether it failed, all that was said, the summary, the artifact."""
        with open(os.path.join(HERE, "attest", "action.yml"), encoding="utf-8") as file:
            action = yaml.safe_load(file)
        self.assertLessEqual({n for n, i in action["inputs"].items() if i.get("required")}, set(inputs))
        self.assertLessEqual(set(inputs), set(action["inputs"]))
        known = Expression({"inputs." + n: i.get("default", "") for n, i in action["inputs"].items()})
        known.update({"inputs." + n: v for n, v in inputs.items()})
        known.update({"github.action_path": HOST + "/attest/ci/actions/attest", "github.event_name": event,
                      "github.base_ref": "main", "github.ref_name": "main", "github.sha": "0" * 40,
                      "runner.temp": HOST + "/temp", "runner.arch": "X64"})
        shutil.rmtree(os.path.join(self.folder, "temp"), ignore_errors=True)  # each job has another machine
        failed, said, artifact = False, "", None
        for step in action["runs"]["steps"]:
            if not (known(step["if"]) if "if" in step else True) or failed and "always()" not in step.get("if", ""):
                continue
            given = {name: self.in_container(known.fill(str(text))) for name, text in step.get("with", {}).items()}
            if "run" in step:
                code, text, outputs = self.run_line(step, known, project)
                failed, said = failed or code != 0, said + text
            elif step["uses"].startswith("actions/cache/"):
                outputs = self.cached(step["uses"], given, project)
            else:
                self.assertTrue(step["uses"].startswith("actions/upload-artifact@"), step["uses"])
                artifact, outputs = os.path.join(project, given["path"]), {}
            known.update({f"steps.{step['id']}.outputs.{n}": v for n, v in outputs.items()} if "id" in step else {})
        return failed, said, artifact

    def in_container(self, text):
        """A job in a container: what begins with a folder of the host is named as it is mounted, and nothing else is."""
        return self.folder + text.removeprefix(HOST) if text.startswith(HOST) else text

    def run_line(self, step, known, project):
        self.assertEqual(step["shell"], "bash")  # without it a step of a composite action is refused
        self.assertNotIn("${{", step["run"])  # an input is a variable, never a piece of the script
        self.write("outputs", "")
        variables = {n: self.in_container(known.fill(str(v))) for n, v in step.get("env", {}).items()}
        code, text = self.shell(step["run"], project, ("-e", "-o", "pipefail"), GITHUB_ACTIONS="true",
                                GITHUB_OUTPUT=os.path.join(self.folder, "outputs"),
                                GITHUB_STEP_SUMMARY=os.path.join(self.folder, "summary"), **variables)
        with open(os.path.join(self.folder, "outputs"), encoding="utf-8") as file:
            return code, text, dict(line.rstrip("\n").split("=", 1) for line in file)

    def cached(self, action, given, project):
        """actions/cache/restore and .../save, and what they put out. (actions/cache itself keeps nothing of a job that failed.)"""
        path, slot = os.path.join(project, given["path"]), os.path.join(self.cache, given["key"])
        self.assertNotRegex(given["key"], "[,/ ]")
        if action.startswith("actions/cache/save@"):
            if not os.path.exists(slot):
                shutil.copytree(path, slot)
            return {}
        self.assertTrue(action.startswith("actions/cache/restore@"), action)
        starts = (given["key"], *given.get("restore-keys", "").split())
        found = [n for start in starts for n in sorted(os.listdir(self.cache)) if n.startswith(start)]
        if found:
            shutil.copytree(os.path.join(self.cache, found[0]), path, dirs_exist_ok=True)
        return {"cache-hit": str(found[0] == given["key"]).lower()} if found else {}

    def test_a_push_a_green_and_a_red_pull_request(self):
        words = {"kernel": "./mine.so", "arguments": CASES + " --unconfined"}
        failed, said, artifact = self.workflow(self.projects["wrong"], "push", **words)
        self.assertTrue(failed and "VIOLATED" in said, said)
        packages = [name for name in os.listdir(self.cache) if name.startswith("attest-package")]
        self.assertEqual(os.listdir(self.cache), packages)  # a kernel that is wrong is no baseline, and attest was built
        failed, said, artifact = self.workflow(self.projects["right"], "pull_request", **words)
        self.assertFalse(failed, said)
        self.assertIn("attest check", said)  # no baseline yet
        failed, said, artifact = self.workflow(self.projects["right"], "push", **words)
        self.assertFalse(failed, said)
        self.assertIn("HOLDS", said)
        failed, said, artifact = self.workflow(self.projects["right"], "pull_request", **words)
        self.assertFalse(failed, said)
        self.assertIn("NOTHING WORSE", said)
        with open(os.path.join(artifact, "candidate", "result.jsonl"), encoding="utf-8") as file:  # how it is run holds for the gate too
            self.assertIn("--unconfined", json.loads(file.readline())["argv"])
        self.write("summary", "")
        failed, said, artifact = self.workflow(self.projects["wrong"], "pull_request", source="attention.c:16", **words)
        self.assertTrue(failed, said)
        self.assertIn("holds → violated", said)
        self.assertIn("::error file=attention.c,line=16,", said)
        with open(os.path.join(self.folder, "summary"), encoding="utf-8") as file:
            self.assertIn("| worse |", file.read())
        self.assertTrue(os.path.exists(os.path.join(artifact, "candidate", "report.html")))
        # A package of one's own is installed instead.
        shutil.rmtree(os.path.join(self.folder, "installed"))
        package = os.path.join(self.cache, packages[0], "attest.deb")
        failed, said, artifact = self.workflow(self.projects["right"], "pull_request", name="other", deb=package, **words)
        self.assertFalse(failed, said)
        self.assertIn("HOLDS", said)


class GitLab(Runner):
    def is_in_pipeline(self, job, variables):
        """Its rules, one of which must be met; a job without any is in pipelines of branches and tags alone."""
        def met(rule):
            sides = [re.sub(r"\$(\w+)", lambda m: variables.get(m[1], ""), side).strip(' "') for side in rule["if"].split("==")]
            return sides[0] == sides[1]
        return any(map(met, job["rules"])) if "rules" in job else variables["CI_PIPELINE_SOURCE"] != "merge_request_event"

    def job(self, project, **variables):
        """The job as GitLab runs it: before_script and script in one shell that ends at the first line that fails."""
        with open(os.path.join(HERE, "gitlab.yml"), encoding="utf-8") as file:
            job = yaml.safe_load(file)[".attest"]
        self.assertTrue(self.is_in_pipeline(job, variables), "the job is in no such pipeline")
        lines = "\n".join(job["before_script"] + job["script"])
        kept = os.path.join(self.cache, job["cache"]["key"])
        for path in job["cache"]["paths"] if os.path.exists(kept) else []:
            shutil.copytree(os.path.join(kept, path), os.path.join(project, path), dirs_exist_ok=True)
        code, said = self.shell(lines, project, ("-e", "-o", "pipefail"), **{**job["variables"], **variables})
        if code == 0 or job["cache"].get("when") == "always":
            for path in job["cache"]["paths"]:
                shutil.copytree(os.path.join(project, path), os.path.join(kept, path), dirs_exist_ok=True)
        for path in job["artifacts"]["paths"] + list(job["artifacts"]["reports"].values()):
            self.assertTrue(os.path.exists(os.path.join(project, path)), f"{path}\n{said}")
        return code, said

    def branch(self, project):
        """GitLab's own server, as far as a job asks it: the artifacts of the default branch's last run."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for name in ("result.jsonl", "judged.by"):
                archive.write(os.path.join(project, "attest-out", name), "attest-out/" + name)
        asked, forbidden = [], []

        class Artifacts(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append((urllib.parse.unquote_plus(self.path), self.headers["JOB-TOKEN"], self.headers["PRIVATE-TOKEN"]))
                self.send_response(404 if forbidden else 200)
                self.end_headers()
                self.wfile.write(packed.getvalue())

            def log_message(self, *_):
                pass
        server = http.server.HTTPServer(("127.0.0.1", 0), Artifacts)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return asked, forbidden, {"CI_API_V4_URL": f"http://127.0.0.1:{server.server_port}/api/v4", "CI_PROJECT_ID": "7",
                                  "CI_JOB_TOKEN": "secret", "CI_JOB_NAME": "kernel: [f16, f32]", "CI_DEFAULT_BRANCH": "main",
                                  "CI_MERGE_REQUEST_IID": "3", "CI_PIPELINE_SOURCE": "merge_request_event"}

    def test_a_branch_a_green_and_a_red_merge_request(self):
        words = {"ATTEST_SOURCE": self.checkout, "ATTEST_KERNEL": "./mine.so", "ATTEST_ARGUMENTS": CASES}
        push = {**words, "CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main"}
        right, wrong = self.projects["right"], self.projects["wrong"]
        code, said = self.job(wrong, **push)
        self.assertTrue(code == 1 and "VIOLATED" in said, said)
        kept = os.path.join(self.cache, "attest-package", "attest-package")
        package = os.path.join(kept, *os.listdir(kept))  # attest was built, whatever came of the kernel
        code, said = self.job(right, **push)
        self.assertEqual(code, 0, said)
        self.assertIn("attest check", said)
        asked, forbidden, merge = self.branch(right)
        code, said = self.job(right, **words, **merge)
        self.assertEqual(code, 0, said)
        self.assertIn("NOTHING WORSE", said)
        place = "/api/v4/projects/7/jobs/artifacts/main/download?job=kernel: [f16, f32]"
        self.assertEqual(asked, [(place, "secret", None)])
        code, said = self.job(wrong, **words, **merge, ATTEST_TOKEN="mine")
        self.assertEqual(code, 1, said)
        self.assertIn("holds → violated", said)
        self.assertEqual(asked[1:], [(place, None, "mine")])
        # Without a run of the branch by this same attest and these words there is nothing to hold it against.
        for other in ({"ATTEST_DEB": package}, {"ATTEST_ARGUMENTS": CASES.replace("8", "7")}):
            code, said = self.job(wrong, **{**words, **merge, **other})
            self.assertEqual(code, 1, said)
            self.assertIn("VIOLATED", said)
        shutil.rmtree(os.path.join(right, "attest-baseline"))
        forbidden.append(True)
        code, said = self.job(right, **words, **merge)
        self.assertEqual(code, 0, said)
        self.assertIn("no run of main to hold this one against", said)
        self.assertIn("HOLDS", said)


class Readme(unittest.TestCase):
    def test_its_examples_are_yaml_and_say_what_is_there(self):
        class Loader(yaml.SafeLoader):
            pass
        Loader.add_constructor("!reference", lambda loader, node: loader.construct_sequence(node))
        with open(os.path.join(HERE, "README.md"), encoding="utf-8") as file:
            github, gitlab = (yaml.load(text, Loader) for text in re.findall("```yaml\n(.*?)```", file.read(), re.S))
        with open(os.path.join(HERE, "attest", "action.yml"), encoding="utf-8") as file:
            inputs = yaml.safe_load(file)["inputs"]
        use = github["jobs"]["kernel"]["steps"][-1]
        self.assertEqual(use["uses"], "./attest/ci/actions/attest")
        self.assertLessEqual(set(use["with"]), set(inputs))
        self.assertEqual(gitlab["include"]["local"], "ci/attest.yml")  # a copy of the file read here
        with open(os.path.join(HERE, "gitlab.yml"), encoding="utf-8") as file:
            job = yaml.safe_load(file)[".attest"]
        self.assertEqual(gitlab["kernel"]["before_script"][-1], [".attest", "before_script"])
        self.assertIn("before_script", job)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    try:
        import yaml
    except ImportError:
        print("python3-yaml is missing: nothing here can be read")
        sys.exit(77)
    if os.path.realpath(BUILD) != os.path.realpath(os.path.join(ROOT, "build", "release")) or not shutil.which("dpkg-shlibdeps"):
        print("not run: BUILD is not build/release of this checkout, or dpkg-dev is missing")
        sys.exit(77)
    unittest.main()
