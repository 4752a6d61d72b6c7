# SPDX-License-Identifier: MIT
"""GPU helper and level writer: what they are given, and what the daemon does when they misbehave."""

import os
import subprocess
import tempfile
import unittest

from harness import HELPER, NOBODY, SOFTAPU, WRITER, MachineTest, alive, eventually, nices, read

PYTHON = "#!/usr/bin/python3 -IS\n"


class Helper(MachineTest):
    def with_helper(self, text):
        m = self.machine()
        m.marks = f"{m.dir}/marks"
        os.mkdir(m.marks, 0o777)
        os.chmod(m.marks, 0o777)
        m.helper = m.script("helper", text.replace("MARKS", m.marks).replace("APU", m.apu))
        m.start_daemon()
        work = m.workload()
        m.path = m.register(work.pid)
        return m

    def assert_degraded_but_working(self, m, *words):
        def degraded():
            text = str(m.gpu("Helper"))
            return text if text.startswith("degraded") else None

        text = eventually(degraded, "the degraded state")
        self.assertTrue(any(word in text for word in words), text)
        eventually(lambda: m.outcome(m.path, "performance_level") == "applied", "the level")
        self.assertEqual(m.property("/org/apusched1", "Manager", "State"), "degraded")
        self.assertTrue(str(m.gpu("Helper")).startswith("degraded"), "it stays so")
        # It is started again, and no second one runs beside it.
        eventually(lambda: len(os.listdir(m.marks)) >= 2, "another helper")
        running = [pid for pid in os.listdir(m.marks) if alive(int(pid))]
        self.assertLessEqual(len(running), 1)
        m.call("Unregister", m.path)
        eventually(lambda: m.level() == "auto", "the level restored")

    def test_it_runs_unprivileged_with_nothing_but_its_socket(self):
        m = self.with_helper(
            PYTHON + "import os\n"
            "facts = {'env': dict(os.environ), 'uid': os.getuid(), 'gid': os.getgid(),\n"
            " 'fds': sorted(int(fd) for fd in os.listdir('/proc/self/fd')),\n"
            " 'shm': os.listdir('/dev/shm'), 'status': open('/proc/self/status').read(),\n"
            " 'sid': os.getsid(0) == os.getpid()}\n"
            "open(f'MARKS/{os.getpid()}', 'w').write(repr(facts))\n"
            f"os.execv('{SOFTAPU}', ['softapu-run', '--join', 'APU', '--', '{HELPER}']"
            " + __import__('sys').argv[1:])\n")
        eventually(lambda: m.samples() >= 1, "samples")
        facts = eval(read(f"{m.marks}/{os.listdir(m.marks)[0]}"))  # our own repr
        self.assertEqual(set(facts["env"]) - {"LC_CTYPE"}, {"PATH"})
        self.assertEqual(facts["uid"], NOBODY)
        self.assertEqual(facts["shm"], [])
        self.assertTrue(facts["sid"])
        self.assertIn("NoNewPrivs:\t1", facts["status"])
        self.assertIn("CapEff:\t0000000000000000", facts["status"])
        # 0 to 2, the socket, and the directory that was being listed
        self.assertEqual(facts["fds"][:4], [0, 1, 2, 3])
        self.assertLessEqual(len(facts["fds"]), 5)

    def test_one_that_says_nothing_is_killed_and_started_again(self):
        m = self.with_helper(PYTHON + "import os, time\nopen(f'MARKS/{os.getpid()}', 'w')\n"
                             "time.sleep(600)\n")
        self.assert_degraded_but_working(m, "hello", "answer", "silent")

    def test_one_that_ends_at_once_is_started_again(self):
        m = self.with_helper(PYTHON + "import os\nopen(f'MARKS/{os.getpid()}', 'w')\n"
                             "os._exit(9)\n")
        self.assert_degraded_but_working(m, "9", "ended", "exit")

    def test_one_that_aborts_is_started_again(self):
        m = self.with_helper(PYTHON + "import os\nopen(f'MARKS/{os.getpid()}', 'w')\n"
                             "os.abort()\n")
        self.assert_degraded_but_working(m, "signal", "Aborted", "SIGABRT")

    def test_one_that_sends_garbage_is_killed_and_started_again(self):
        m = self.with_helper(PYTHON + "import os, time\nopen(f'MARKS/{os.getpid()}', 'w')\n"
                             "os.write(3, os.urandom(128))\ntime.sleep(600)\n")
        self.assert_degraded_but_working(m, "record", "garbage")

    def test_one_that_floods_is_killed(self):
        m = self.with_helper(PYTHON + "import os\nopen(f'MARKS/{os.getpid()}', 'w')\n"
                             "while True:\n os.write(3, bytes(64))\n")
        self.assert_degraded_but_working(m, "record", "garbage")


class WriterBehindTheDaemon(MachineTest):
    def failing(self, text):
        m = self.machine()
        m.writer = m.script("writer", text)
        m.config = m.write("apuschedd.yaml", read(m.config).replace(
            "helper_deadline_ms: 2000", "helper_deadline_ms: 2000\n  write_deadline_ms: 500"))
        m.start_daemon()
        work = m.workload()
        path = m.register(work.pid)
        lever = eventually(
            lambda: m.outcome(path, "performance_level") not in ("pending", None)
            and m.lever(path, "performance_level"), "an outcome")
        self.assertEqual(set(nices(work.pid).values()), {-10}, "the other levers work")
        self.assertEqual(m.level(), "auto")
        m.unregister(path)
        return lever

    def test_a_writer_that_hangs_is_given_up(self):
        lever = self.failing("#!/bin/sh\nexec sleep 600\n")
        self.assertEqual(lever[0], "failed")
        self.assertIn("500 ms", lever[3])

    def test_a_writer_that_talks_nonsense_is_a_failure(self):
        self.assertEqual(self.failing("#!/bin/sh\necho level=warp9\n")[0], "failed")
        self.assertEqual(self.failing("#!/bin/sh\nyes\n")[0], "failed")

    def test_a_writer_that_is_missing_is_a_failure(self):
        m = self.machine()
        m.writer = "/nonexistent/writer"
        m.start_daemon()
        path = m.register(m.workload().pid)
        eventually(lambda: m.outcome(path, "performance_level") == "failed", "the failure")


class Writer(unittest.TestCase):
    PCI = "0000:04:00.0"

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        os.chmod(self.dir.name, 0o755)
        device = f"{self.dir.name}/bus/pci/devices/{self.PCI}"
        os.makedirs(device)
        self.file = f"{device}/power_dpm_force_performance_level"
        self.put("auto\n")

    def put(self, text):
        with open(self.file, "w", encoding="latin-1") as file:
            file.write(text)

    def run_writer(self, *arguments, before=()):
        done = subprocess.run(
            [*before, WRITER, "--sysfs-root", self.dir.name, "--gpu", self.PCI, *arguments],
            capture_output=True, text=True, timeout=30, check=False)
        self.assertLessEqual(done.stdout.count("\n"), 1)
        return done.returncode, done.stdout.strip()

    def test_reads(self):
        self.assertEqual(self.run_writer("--read"), (0, "level=auto"))

    def test_writes_and_reads_back(self):
        self.assertEqual(self.run_writer("--level", "high", "--expect", "auto"), (0, "level=high"))
        self.assertEqual(read(self.file), "high")

    def test_leaves_a_level_alone_that_is_not_the_expected_one(self):
        self.put("low\n")
        code, text = self.run_writer("--level", "high", "--expect", "auto")
        self.assertEqual(code, 3)
        self.assertIn("low", text)
        self.assertEqual(read(self.file), "low")

    def test_a_level_that_is_there_already_is_good(self):
        self.put("high\n")
        self.assertEqual(self.run_writer("--level", "high", "--expect", "auto"), (0, "level=high"))

    def test_a_dry_run_writes_nothing(self):
        code, _ = self.run_writer("--level", "high", "--expect", "auto", "--dry-run")
        self.assertEqual(code, 0)
        self.assertEqual(read(self.file), "auto")

    def test_garbage_is_shown_made_harmless_and_cut(self):
        self.put("\x1b[31mwarp\x00" + "x" * 5000)
        code, text = self.run_writer("--level", "high", "--expect", "auto")
        self.assertNotEqual(code, 0)
        self.assertIn("warp", text)
        self.assertNotIn("\x1b", text)
        self.assertLess(len(text), 300)

    def test_a_gpu_that_is_not_there_is_gone(self):
        os.unlink(self.file)
        os.rmdir(os.path.dirname(self.file))
        self.assertEqual(self.run_writer("--read")[0], 6)

    def test_a_gpu_without_the_file_is_there_still(self):
        os.unlink(self.file)
        for arguments in (["--read"], ["--level", "high", "--expect", "auto"]):
            code, text = self.run_writer(*arguments)
            self.assertEqual(code, 7)
            self.assertIn("power_dpm_force_performance_level of this GPU is missing", text)

    def test_a_refused_write_is_denied(self):
        os.chmod(self.file, 0o444)
        nobody = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
        code, text = self.run_writer("--level", "high", "--expect", "auto", before=nobody)
        self.assertEqual(code, 4, text)

    def test_bad_words_and_addresses_are_usage_errors(self):
        self.assertEqual(self.run_writer("--level", "turbo", "--expect", "auto")[0], 2)
        done = subprocess.run([WRITER, "--gpu", "../../etc", "--read"], capture_output=True,
                              timeout=30, check=False)
        self.assertEqual(done.returncode, 2)

    def test_a_file_that_blocks_is_given_up(self):
        os.unlink(self.file)
        os.mkfifo(self.file)
        code, _ = self.run_writer("--read", "--deadline-ms", "300")
        self.assertIn(code, (5, 7, 8))


if __name__ == "__main__":
    unittest.main(verbosity=2)
