#!/usr/bin/env python3
"""certificate_behaviour_test.py ATTEST: certificates that are checked.

Whatever byte of a certificate is changed is found; so are a law that is left out, a
margin that is edited and sealed anew, another library, another key. The signature is checked by what Python's
cryptography package offers, from the published formats alone.
"""
import base64
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
except ImportError:
    load_pem_public_key = None

ATTEST = None
PROFILE = {"name": "small", "version": 1, "cases_per_law": 3, "undrawn_pairs_max": 100000, "reach": {},
           "laws": ["reference.output", "masking.causal", "masking.window", "probability.row_sum", "hygiene.determin*", "variance.*"]}
FILES = ["certificate.html", "certificate.intoto.jsonl", "certificate.json", "certificate.md", "result.jsonl"]


def words(text):
    return " ".join(text.split())


class Campaign(unittest.TestCase):
    """A small profile, a key and a certificate in a folder of their own."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.cwd = cls.folder.name
        with open(cls.cwd + "/small.json", "w", encoding="utf-8") as file:
            json.dump(PROFILE, file)
        cls.attest("key", "new", "key", code=0)
        cls.attest("certify", "cpu_naive", "--profile", "small.json", "--seed", "7", "--out", "cert", "--sign", "key", code=0)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def attest(cls, *arguments, code=None):
        environment = dict(os.environ, COLUMNS="80", NO_COLOR="1", LC_ALL="C")
        run = subprocess.run([ATTEST, *arguments], cwd=cls.cwd, env=environment, capture_output=True, text=True, timeout=300)
        if code is not None and run.returncode != code:
            raise AssertionError(f"{arguments} exits {run.returncode}, not {code}:\n{run.stdout}{run.stderr}")
        return run

    def path(self, *parts):
        return os.path.join(self.cwd, *parts)

    def bytes_of(self, *parts):
        with open(self.path(*parts), "rb") as file:
            return file.read()

    def records(self, folder):
        return [json.loads(line) for line in self.bytes_of(folder, "result.jsonl").splitlines()]

    def refused(self, folder, *options):
        run = self.attest("verify", folder, *options, code=1)
        self.assertIn("NOT VALID", run.stdout)
        return words(run.stdout)


class Certificates(Campaign):
    def copy(self, name):
        shutil.rmtree(self.path(name), ignore_errors=True)
        shutil.copytree(self.path("cert"), self.path(name))
        return name

    def reseal(self, folder, records):
        """As a forger would: the records, sealed by a last line that fits them."""
        lines = [json.dumps(r, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
                 for r in records]
        end = dict(records[-1], lines=len(lines), sha256=hashlib.sha256(b"".join(lines[:-1])).hexdigest())
        lines[-1] = json.dumps(end, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
        with open(self.path(folder, "result.jsonl"), "wb") as file:
            file.writelines(lines)

    def test_a_certificate_is_valid(self):
        run = self.attest("verify", "cert", "--public-key", "key.pub", "--rerun", "6", "--seed", "1", code=0)
        said = words(run.stdout)
        for sentence in ("whole, as their last line seals them", "drawn again from the records: identical",
                         "Ed25519, by this key", "6 numbers drawn and judged again",
                         "every bit of each answer too", "VALID holds under a profile of its own"):
            self.assertIn(sentence, said)
        self.assertIn("not checked", words(self.attest("verify", "cert", code=3).stdout))

    def test_a_thousand_changed_bytes_are_all_found(self):
        draw = random.Random(20261120)
        sizes = [len(self.bytes_of("cert", name)) for name in FILES]
        folders = []
        for number in range(1000):
            name = draw.choices(FILES, sizes)[0] if number % 2 else FILES[number // 2 % len(FILES)]
            folder = f"flip-{number}"
            os.mkdir(self.path(folder))
            for other in FILES:
                if other != name:
                    os.link(self.path("cert", other), self.path(folder, other))
            data = bytearray(self.bytes_of("cert", name))
            data[draw.randrange(len(data))] ^= draw.randrange(1, 256)
            with open(self.path(folder, name), "wb") as file:
                file.write(data)
            folders.append(folder)
        said = self.attest("verify", *folders, "--public-key", "key.pub", code=1).stdout
        self.assertEqual(said.count("NOT VALID"), 1000)
        for folder in folders:
            shutil.rmtree(self.path(folder))

    def test_what_is_forged_and_sealed_anew_is_found(self):
        whole = self.records("cert")
        places = {kind: [n for n, r in enumerate(whole) if r["record"] == kind] for kind in ("law", "case", "end")}

        def forge(change):
            folder = self.copy("forged")
            records = json.loads(json.dumps(whole))
            change(records)
            self.reseal(folder, records)
            return self.refused(folder)

        def margin(records):
            law = next(r for r in records if r["record"] == "law" and (r.get("worst") or {}).get("ratio"))
            law["worst"]["ratio"] /= 2
        self.assertIn("but the cases come to", forge(margin))

        def left_out(records):
            law = next(r for r in records if r["record"] == "law" and r["verdict"] == "holds")
            records.remove(law)
            records[:] = [r for r in records if r.get("law") != law["law"]]
        self.assertIn("the law has no record", forge(left_out))

        def not_asked(records):
            law = next(r for r in records if r["record"] == "law" and r["verdict"] == "holds")
            law.update(verdict="not_run", reason="not selected", reason_kind="not_selected")
        self.assertIn("not left out for the reason", forge(not_asked))

        def fewer(records):
            del records[places["case"][0]]
        self.assertRegex(forge(fewer), "is missing|but the cases come to")

        def count(records):
            records[-1]["elements"] += 1
        self.assertIn("but the cases come to", forge(count))

        def other_case(records):
            records[places["case"][0]]["line"] = records[places["case"][1]]["line"]
        self.assertIn("another than its id says", forge(other_case))

        def profile(records):
            records[0]["profile"]["refuse_max"] = 1
        self.assertIn("is not the one of that name", forge(profile))

        # Consistent in itself: only what is signed, or run again, tells.
        def bits(records):
            records[places["case"][0]]["outputs"] = "0" * 15 + "1"
        self.assertIn("certificate.html is not what the records say", forge(bits))
        everything = self.refused("forged", "--public-key", "key.pub")
        self.assertIn("what was signed is another certificate", everything)

        # Of another attest the verdict stays open, and what was signed does not.
        def version(records):
            records[0]["attest"]["version"] = "9.9"
        folder = self.copy("forged")
        records = json.loads(json.dumps(whole))
        version(records)
        self.reseal(folder, records)
        self.assertIn("what was signed is another certificate", self.refused(folder, "--public-key", "key.pub"))

    def test_a_violated_kernel_has_a_valid_certificate_and_no_exit_code_0(self):
        self.attest("certify", "mutant:M001", "--profile", "small.json", "--seed", "7", "--out", "wrong", code=1)
        self.assertIn("VALID violated under a profile of its own", words(self.attest("verify", "wrong", code=1).stdout))

    def test_a_run_that_was_cut_is_certified_after_all(self):
        options = ["--profile", "small.json", "--cases", "400", "--seed", "7", "--jobs", "1", "--out", "cut"]
        run = subprocess.Popen([ATTEST, "certify", "cpu_naive", *options], cwd=self.cwd, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
        while run.poll() is None:  # in the middle of a law
            try:
                if self.bytes_of("cut", "result.jsonl").count(b"\n") > 150:
                    break
            except OSError:
                pass
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)
        out = run.communicate(timeout=120)[0]
        self.assertEqual(run.returncode, 3, out)
        self.assertIn("attest certify --resume cut", out)
        self.assertIn("was begun by attest certify", self.attest("check", "--resume", "cut", code=2).stderr)
        self.attest("certify", "--resume", "cut", code=3)  # by so many cases it is a part
        said = words(self.attest("verify", "cut", code=3).stdout)
        self.assertIn("verdict follows from", said)
        # Another run's page would speak for it.
        self.attest("check", "cpu_naive", "--cases", "1", "--match", "masking.causal", "--out", "cut")
        self.assertEqual([f for f in os.listdir(self.path("cut")) if f.startswith("certificate")], [])

    def test_a_rerun_finds_other_bits(self):
        folder = self.copy("bits")
        records = self.records(folder)
        for record in records:
            if record.get("outputs"):
                record["outputs"] = "0" * 15 + "1"
        self.reseal(folder, records)
        text = json.loads(self.bytes_of(folder, "certificate.json"))
        digest = hashlib.sha256(self.bytes_of(folder, "result.jsonl")).hexdigest()
        for name in FILES[2:4] + FILES[:1]:  # a forger who draws the pages anew, too
            data = self.bytes_of(folder, name).replace(text["result_sha256"].encode(), digest.encode())
            with open(self.path(folder, name), "wb") as file:
                file.write(data)
        os.remove(self.path(folder, "certificate.intoto.jsonl"))
        self.attest("verify", folder, code=0)
        self.assertIn("other bits came out", self.refused(folder, "--rerun", "9"))
        self.assertIn("there is none", self.refused(folder, "--public-key", "key.pub"))

    def test_another_kernel_is_refused(self):
        self.assertIn("not the one that was judged", self.refused("cert", "--kernel", "cpu_flash"))
        self.attest("key", "new", "other", code=0)
        self.assertIn("not signed by this key", self.refused("cert", "--public-key", "other.pub"))

    def test_two_certificates_are_compared(self):
        self.attest("certify", "cpu_flash", "--profile", "small.json", "--seed", "8", "--out", "flash", code=0)
        said = words(self.attest("verify", "flash", "--against", "cert", "--public-key", "key.pub").stdout)
        self.assertIn("there is none", said)
        said = words(self.attest("verify", "flash", "--against", "flash", code=0).stdout)
        self.assertNotIn("->", said)
        self.attest("certify", "cpu_flash", "--profile", "small.json", "--seed", "9", "--out", "nine", code=0)
        said = words(self.attest("verify", "nine", "--against", "flash", code=0).stdout)
        self.assertIn("seed 8 -> 9", said)

    def test_keys(self):
        self.assertEqual(os.stat(self.path("key")).st_mode & 0o777, 0o600)
        before = self.bytes_of("key")
        self.assertIn("it exists", self.attest("key", "new", "key", code=2).stderr)
        self.assertEqual(self.bytes_of("key"), before)
        draw = random.Random(7)
        good = self.bytes_of("key.pub")
        for _ in range(60):
            bad = bytearray(good)
            bad[draw.randrange(len(bad))] ^= 1 << draw.randrange(8)
            with open(self.path("bad.pub"), "wb") as file:
                file.write(bad)
            run = self.attest("verify", "cert", "--public-key", "bad.pub")
            self.assertIn(run.returncode, (1, 2), bytes(bad))

    @unittest.skipIf(load_pem_public_key is None, "python3-cryptography is not installed")
    def test_the_signature_is_one_for_others(self):
        key = load_pem_public_key(self.bytes_of("key.pub"))
        types = []
        for line in self.bytes_of("cert", "certificate.intoto.jsonl").splitlines():
            envelope = json.loads(line)
            payload, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"].encode()
            encoded = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
            signature = base64.b64decode(envelope["signatures"][0]["sig"])
            key.verify(signature, encoded)
            with self.assertRaises(InvalidSignature):
                key.verify(signature, encoded + b" ")
            statement = json.loads(payload)
            types.append(statement["predicateType"])
            self.assertEqual(statement["_type"], "https://in-toto.io/Statement/v1")
            for subject in statement["subject"]:
                self.assertEqual(subject["digest"]["sha256"],
                                 hashlib.sha256(self.bytes_of("cert", subject["name"])).hexdigest())
            if "passedTests" in statement["predicate"]:
                self.assertEqual(statement["predicate"]["result"], "PASSED")
                self.assertIn("masking.causal", statement["predicate"]["passedTests"])
        self.assertEqual(types, ["https://in-toto.io/attestation/test-result/v0.1", "urn:attest:conformance:v1"])


if __name__ == "__main__":
    ATTEST = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
