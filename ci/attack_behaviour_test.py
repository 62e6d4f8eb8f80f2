#!/usr/bin/env python3
"""attack_behaviour_test.py ATTEST EXAMPLES: attacks and misbehaviours, each one verdict, correctly named, and the run goes on.

A row is a kernel of EXAMPLES, the exit code, and what is said of it. Whatever a kernel does, its run ends with a record
of its own that says the same, all that was to be judged is in it, and no process is left. Beside it, what needs more than
a row: a terminal, a machine without namespaces.
"""
import ctypes
import fcntl
import json
import os
import pty
import select
import subprocess
import sys
import tempfile
import termios
import unittest

ATTEST = EXAMPLES = None
CLOSED = "closed the descriptors of its process that the judge speaks through"
SPOKE = ("spoke in its worker's name, or wrote over its stack: an answer came that "
         "nobody had asked for")
KILLED = "was killed by SIGKILL, which attest did not send"
# Of an answer that comes, or goes on, beside the work: what lies there at that moment is chance, and wrong.
LOOKED_AT = "VIOLATED  reference.output"

# What the example kernels answer is zeros: one that survives is wrong, and told so.
ROWS = f"""
hostile one_tebibyte | asked for a workspace of 1 TiB: 4 GiB are allowed
hostile four_exbibytes | asked for a workspace of 4 EiB: 4 GiB are allowed
hostile all_there_is | asked for a workspace of 16 EiB: 4 GiB are allowed
hostile shrink_memory | outside its bound
hostile grow_memory | outside its bound
hostile reserve_addresses | outside its bound
hostile kill_itself | {KILLED}
hostile hang_in_supports | did not return within
hostile exit_with_7 | problem         the kernel ended its process: exit(7)
hostile die_of_term | died of SIGTERM
endings close_all | {CLOSED}
endings close_the_memory | {CLOSED}
endings lead_the_memory_elsewhere | {CLOSED}
endings hang_up | {CLOSED}
endings hear_nobody | {CLOSED}
endings speak_to_nobody | {CLOSED}
endings wait_for_nothing | outside its bound
endings write_past_the_text | wrote past the end of its text: 4095 bytes are given
endings turn_the_direction | returned with the direction flag set
endings lose_registers | came back without the registers that a function keeps for its caller
endings leave_the_thread | called pthread_exit() or was cancelled
endings speak_of_a_thread | ended its process: exit(3); it had printed: FATAL
endings throw_in_a_thread | called abort(), at libendings.so
endings fail_an_assertion | Assertion `c == nullptr && "the tile fits"' failed.
endings exit_with_a_reason | ended its process: exit(3); it had printed: CUDA error: no kernel image
endings jump_to_nothing | jumped to address 0x0, where no code is
endings read_in_a_template | read from address 0x10, which is in no tensor
endings print_escapes | outside its bound
endings print_much | outside its bound
endings go_round | did not return
endings wait_for_ever | did not return
escapes signal_the_host | observed        0   expected
escapes trace_the_host | observed        0   expected
escapes read_the_host | observed        0   expected
escapes limit_the_host | observed        0   expected
escapes open_a_socket | observed        0   expected
escapes gain_rights | observed        0   expected
escapes change_the_system | observed        0   expected
escapes see_the_environment | observed        0   expected
escapes know_the_judge | observed        0   expected
escapes leave_children_in_sessions_of_their_own | observed        0   expected
escapes handle_faults | put a handler of its own in the judge's place for SIGSEGV or SIGBUS
escapes signal_everybody | observed        0   expected
escapes stop | did not return
escapes set_an_alarm | died of SIGALRM
escapes become_another_program | ended its process: exit(0)
escapes take_back_limits | observed        0   expected
escapes seal_the_memory | observed        0   expected
misbehaving read_past_k | read 64 bytes past the end of k
misbehaving write_past_o | wrote just past the end of o
misbehaving read_before_q | outside its bound
misbehaving write_before_lse | wrote 8 bytes before lse
misbehaving write_input | wrote 4 bytes past the end of v
misbehaving write_past_workspace | wrote just past the end of the workspace
misbehaving follow_wild_pointer | wrote to address 0x8, which is in no tensor
misbehaving call_exit | ended its process: exit(0)
misbehaving call_abort | called abort()
misbehaving leave_a_child_and_exit | ended its process: exit(7)
misbehaving overflow_stack | ran out of stack
misbehaving divide_by_zero | died of SIGFPE
misbehaving return_error | the tile does not fit: 96 KiB of shared memory are needed
misbehaving leave_output_unwritten | was never written
misbehaving read_workspace | its workspace held before the call
misbehaving throw_runtime_error | let an exception cross the border
misbehaving throw_bad_alloc | ran out of memory: an allocation failed
misbehaving crash_in_supports | wrote to address 0x8, which is in no tensor inside supports()
forgeries forge_answers | {SPOKE}
forgeries forge_an_end | outside its bound
forgeries speak_nonsense | observed        0   expected
forgeries forge_a_fault | {CLOSED}
forgeries forge_a_fault_and_exit | ended its process: exit(3)
forgeries forge_a_load_error | observed        0   expected
forgeries forge_a_refusal | {SPOKE}
forgeries forge_one_refusal | it refused a call that its manifest and supports() take
forgeries forge_one_answer | {LOOKED_AT}
forgeries forge_an_empty_answer | {SPOKE}
forgeries forge_barriers | observed        0   expected
forgeries forge_by_other_descriptors | observed        0   expected
forgeries hang_up_and_go_on | {CLOSED}
forgeries lead_the_socket_elsewhere | {CLOSED}
hoards leave_things_behind | observed        0   expected
schemes handle_faults_and_give_back | put a handler of its own in the judge's place for SIGSEGV or SIGBUS
schemes set_an_alarm_for_later | outside its bound
schemes unmap_its_output | outside its bound
schemes unmap_its_stack | had unmapped or protected the stack it runs on
schemes protect_its_stack | had unmapped or protected the stack it runs on
schemes shorten_its_stack | ran out of stack
schemes change_an_input_it_may_not | changed its input k at byte
schemes change_an_input_by_a_file | outside its bound
schemes write_after_it_returned | {LOOKED_AT}
schemes change_its_circumstances | observed        0   expected
schemes take_the_stack_of_signals_away | wrote to address 0x8, which is in no tensor
schemes block_all_signals_and_crash | died of SIGSEGV
schemes abort_at_its_end | called abort()
schemes be_traced | observed        0   expected
schemes return_twice | outside its bound
schemes leave_many_children | observed        0   expected
schemes end_by_a_childs_hand | died of SIGTERM
schemes exit_in_a_thread | ended its process: exit(4)
schemes abort_in_a_thread | called abort()
schemes wait_for_input | observed        0   expected
"""


def kernels_of(stem):
    """The kernels of a library, by name."""
    kernels = {}
    for number in range(1000):
        kernel = f"{EXAMPLES}/lib{stem}.so#{number}"
        run = subprocess.run([ATTEST, "describe", kernel], capture_output=True, text=True, check=False)
        if run.returncode == 0:
            kernels[f"{stem} {json.loads(run.stdout)['name']}"] = kernel
        elif "create" not in run.stderr:  # one cannot be loaded
            return kernels
    return kernels


def orphans():
    """What ended up with this process, which takes in whatever loses its parent."""
    found = []
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        for child in file.read().split():
            try:
                found.append(open(f"/proc/{child}/cmdline", encoding="utf-8").read() or child)
            except OSError:
                pass
    return found


class Attacks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        set_child_subreaper = 36
        ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)
        cls.kernels = {}
        for stem in ("hostile", "endings", "escapes", "misbehaving", "forgeries", "hoards", "schemes"):
            cls.kernels.update(kernels_of(stem))

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cwd = folder.name
        self.environment = dict(os.environ, COLUMNS="400", NO_COLOR="1", LC_ALL="C", HOSTILE_TOKEN="secret",
                                HOSTILE_HOST=str(os.getpid()), HOSTILE_FILE=os.path.join(self.cwd, "file"))

    def check(self, kernel, out):
        return [ATTEST, "check", self.kernels[kernel], "--seed", "7", "--cases", "2", "--jobs", "1", "--timeout", "1s",
                "--env", "HOSTILE_HOST", "--env", "HOSTILE_FILE", "--match", "reference.output", "--out", out]

    def end(self, out):
        with open(os.path.join(self.cwd, out, "result.jsonl"), encoding="utf-8") as file:
            return json.loads(file.read().splitlines()[-1])

    def test_each_is_one_verdict_and_the_run_goes_on(self):
        rows = [line.split(" | ") for line in ROWS.strip().splitlines()]
        self.assertGreaterEqual(len(rows), 60)
        for kernel, says in rows:
            with self.subTest(kernel):
                out = kernel.replace(" ", ".")
                run = subprocess.run(self.check(kernel, out), cwd=self.cwd, capture_output=True, text=True, timeout=200,
                                     env=self.environment, check=False)
                self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
                self.assertIn(says, run.stdout)
                self.assertIn("VIOLATED   1 of 1 law, 1 cause", run.stdout.splitlines()[-1])
                end = self.end(out)
                self.assertEqual((end["record"], end["exit"]), ("end", 1))
                self.assertEqual(orphans(), [])

    def test_a_terminal_is_not_its_to_write_on(self):
        for options, reached in ([], False), (["--unconfined"], True):
            outside, inside = pty.openpty()
            environment = dict(self.environment, HOSTILE_FILE=os.ttyname(inside))

            def own_terminal(descriptor=inside):
                os.setsid()
                fcntl.ioctl(descriptor, termios.TIOCSCTTY, 0)
            run = subprocess.run([*self.check("escapes write_on_the_terminal", f"out-{reached}"), *options], cwd=self.cwd,
                                 stdin=inside, capture_output=True, text=True, timeout=200, env=environment,
                                 preexec_fn=own_terminal, check=False)
            self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
            self.assertEqual("observed        0   expected" not in run.stdout, reached, run.stdout)
            self.assertEqual(bool(select.select([outside], [], [], 0)[0]), reached)
            os.close(inside)
            os.close(outside)

    def test_without_namespaces_the_host_is_out_of_reach_too(self):
        # A name space in which there are no more, and nobody has rights.
        bare = ["unshare", "-rm", "sh", "-c", "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv "
                '--bounding-set -all --inh-caps -all --no-new-privs "$@"', "sh"]
        if subprocess.run([*bare, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("this machine makes none")
        for kernel in ("signal_the_host", "trace_the_host", "limit_the_host", "open_a_socket", "gain_rights"):
            with self.subTest(kernel):
                run = subprocess.run([*bare, *self.check("escapes " + kernel, kernel)], cwd=self.cwd, capture_output=True,
                                     text=True, timeout=200, env=self.environment, check=False)
                self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
                self.assertIn("not held in by processes", run.stdout)
                self.assertIn("observed        0   expected", run.stdout)


if __name__ == "__main__":
    EXAMPLES = os.path.abspath(sys.argv.pop())
    ATTEST = os.path.abspath(sys.argv.pop())
    unittest.main(verbosity=1)
