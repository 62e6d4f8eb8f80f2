#!/usr/bin/env python3
"""ci/build and ci/env, with stand-ins for Debian's programs, CMake and Ninja: what is asked, installed and said."""
import os
import pty
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Every stand-in notes its arguments; $REFUSED makes apt-get fail, $BROKEN ninja.
NOTE = '#!/bin/sh\necho "$(basename "$0") $*" >>"$NOTES"\n'
STAND_INS = {
    "dpkg-query": '#!/bin/sh\nprintf "here installed\\n"; [ ! -e "$NOTES.got" ] || printf "absent installed\\n"\n',
    "sudo": NOTE + 'while [ "$1" = -n ]; do shift; done\nexec "$@"\n',
    "apt-get": NOTE + '[ -z "$REFUSED" ] || { echo "E: Unable to locate package absent" >&2; exit 100; }\n'
                      '[ "$1" != install ] || : >"$NOTES.got"\n',
    "cmake": NOTE + "mkdir -p build/release/ci && : >build/release/build.ninja\n",
    "ninja": NOTE + '[ -z "$BROKEN" ] || { echo "the compiler says no"; exit 1; }\n'
                    'for n in 1 2 3; do echo "[$n/3] Building CXX object $n"; done\n: >build/release/ci/attest\n',
}


class Build(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        os.makedirs(os.path.join(self.folder, "ci"))
        os.makedirs(os.path.join(self.folder, "bin"))
        for name in ("build", "env"):
            shutil.copy(os.path.join(ROOT, "ci", name), os.path.join(self.folder, "ci"))
        self.write("ci/packages.txt", "# needed\nhere\nabsent\n")
        for name, text in STAND_INS.items():
            self.write(os.path.join("bin", name), text)
            os.chmod(os.path.join(self.folder, "bin", name), 0o755)
        for path, _, _ in os.walk(self.folder):
            os.chmod(path, 0o777)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def build(self, *arguments, typed=None, user=None, **environment):
        """Exit code and what was said; with `typed`, on a terminal."""
        env = {"PATH": os.path.join(self.folder, "bin") + ":/usr/bin:/bin", "HOME": self.folder,
               "NOTES": os.path.join(self.folder, "notes"), **environment}
        command = [os.path.join(self.folder, "ci", "build"), *arguments]
        options = {"env": env, "cwd": self.folder, "user": user}
        if typed is None:
            run = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True, timeout=60, check=False, **options)
            return run.returncode, run.stdout
        ours, theirs = pty.openpty()
        with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, **options) as process:
            os.close(theirs)
            os.write(ours, typed.encode() + b"\x04")  # a question too many reads an end
            said = b""
            while True:
                try:
                    part = os.read(ours, 4096)
                except OSError:  # how a terminal says that nobody writes to it any more
                    break
                if not part:
                    break
                said += part
        os.close(ours)
        return process.returncode, said.decode()

    def notes(self):
        path = os.path.join(self.folder, "notes")
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            return [line.split()[0] for line in file]

    def test_on_a_terminal_it_asks(self):
        code, said = self.build(typed="\n")
        self.assertEqual(code, 0, said)
        self.assertIn("missing Debian packages: absent", said)
        self.assertIn("? [Y/n]", said)
        self.assertIn("apt-get", self.notes())
        self.assertIn("building build/release: 3 of 3", said)
        self.assertIn(". ci/env", said)
        # A second call has nothing to ask, to configure or to say.
        os.remove(os.path.join(self.folder, "notes"))
        self.assertNotIn("absent", self.build(typed="")[1])
        self.assertEqual(self.notes(), ["ninja"])

    def test_a_refusal_installs_nothing(self):
        code, said = self.build(typed="n\n")
        self.assertEqual(code, 2)
        self.assertIn("apt-get install absent", said)
        self.assertEqual(self.notes(), [])

    def test_who_says_yes_is_not_asked(self):
        for arguments, environment in ((["--yes"], {}), ([], {"CI": "true"})):
            with self.subTest(arguments=arguments):
                for left in ("notes", "notes.got", "build/packages.checked"):
                    if os.path.exists(os.path.join(self.folder, left)):
                        os.remove(os.path.join(self.folder, left))
                code, said = self.build(*arguments, typed="", **environment)
                self.assertEqual(code, 0, said)
                self.assertNotIn("[Y/n]", said)
                self.assertIn("apt-get", self.notes())

    @unittest.skipIf(os.geteuid(), "root alone can be somebody else")
    def test_without_a_terminal_root_installs_and_nobody_else(self):
        code, said = self.build(user="nobody")
        self.assertEqual((code, said), (2, "attest: missing Debian packages; run: sudo apt-get install absent "
                                           "(or ci/build --yes)\n"))
        self.assertEqual(self.notes(), [])
        self.assertEqual(self.build("--yes", user="nobody")[0], 0)
        self.assertIn("sudo", self.notes())
        shutil.rmtree(os.path.join(self.folder, "build"))
        for left in ("notes", "notes.got"):
            os.remove(os.path.join(self.folder, left))
        self.assertEqual(self.build()[0], 0)
        self.assertNotIn("sudo", self.notes())

    def test_what_cannot_be_installed_is_one_line(self):
        code, said = self.build("--yes", REFUSED="1")
        self.assertEqual(code, 2)
        self.assertIn("attest: cannot install absent: E: Unable to locate package absent; run: ", said)
        self.assertEqual(len(said.splitlines()), 2, said)  # and that it was tried
        self.assertNotIn("ninja", self.notes())

    def test_what_fails_to_build_is_shown(self):
        code, said = self.build("--yes", BROKEN="1")
        self.assertEqual(code, 4)
        self.assertIn("the compiler says no", said)
        self.assertIn("building failed", said)

    def said_to(self, program):
        """What it was started with."""
        with open(os.path.join(self.folder, "notes"), encoding="utf-8") as file:
            return [line.rstrip("\n") for line in file if line.split()[0] == program]

    def test_targets_are_ninja_s(self):
        self.assertEqual(self.build("--yes", "all", "tests")[0], 0)
        self.assertEqual(self.said_to("ninja"), ["ninja -C build/release all tests"])
        self.assertEqual(self.said_to("cmake"), ["cmake --preset release -D ATTEST_FIRST_BUILD=ON"])
        self.assertEqual(self.build("--quietly")[0], 2)

    def test_a_build_for_gpus_is_for_all_of_them_or_those_asked_for(self):
        def configured(architectures, **environment):
            self.assertEqual(self.build("--yes", "attest_cuda", **environment)[0], 0)
            cache = f"ATTEST_CUDA:BOOL=ON\nCMAKE_CUDA_ARCHITECTURES:STRING={architectures}\n"
            self.write("build/release/CMakeCache.txt", cache)
            return self.said_to("cmake")

        line = "cmake --preset release -D ATTEST_CUDA=ON -D CMAKE_CUDA_ARCHITECTURES={} -D ATTEST_FIRST_BUILD=ON".format
        one, every = line("80"), line("80-real;90a-real")
        self.assertEqual(configured("80", CUDAARCHS="80"), [one])
        self.assertEqual(configured("80", CUDAARCHS="80"), [one])
        self.assertEqual(configured("80-real;90a-real"), [one, every])
        self.assertEqual(configured("80-real;90a-real"), [one, every])
        self.assertEqual(configured("80-real;90a-real", CUDAARCHS="80"), [one, every])

    def test_env_puts_the_command_on_the_path(self):
        os.makedirs(os.path.join(self.folder, "build/release/ci"))
        command = os.path.join(self.folder, "build/release/ci/attest")
        self.write("build/release/ci/attest", "#!/bin/sh\necho attested\n")
        os.chmod(command, 0o755)
        for shell, folder in (("bash", "/"), ("zsh", "/"), ("sh", self.folder)):
            if shutil.which(shell) is None:
                continue
            with self.subTest(shell=shell):
                name = "ci/env" if folder != "/" else os.path.join(self.folder, "ci/env")
                run = subprocess.run([shell, "-c", f". ./{name}; attest" if folder != "/" else f". {name}; attest"],
                                     cwd=folder, capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual((run.stdout, run.stderr), ("attested\n", ""))


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
