#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The loop over the GPU, with the real runtime and agents: others on it give way, and get it back."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness import DAEMON, PLAIN, eventually
from run_test import RunTest

WORKLOADS = os.path.join(PLAIN, "tests", "softapu", "workloads")
DECODE = (os.path.join(WORKLOADS, "decode"), "--rate", "0", "--workgroups", "2")
HOG = (os.path.join(WORKLOADS, "hog"),)
# A target that is missed beside other work: what helps how much is for benchmarks to say.
PROFILES = """
  decode:
    class: critical
    target_dispatch_percent: 101
  hog:
    class: background
  held:
    class: interactive
    performance_level: high
"""


class GpuLoop(RunTest):
    def with_loop(self):
        record = os.path.join(tempfile.mkdtemp(prefix="apusched-record-"), "record")
        self.addCleanup(shutil.rmtree, os.path.dirname(record))
        m = self.with_agents("--record", record, profiles=PROFILES)
        m.record = record
        m.hog, _ = self.engine(m, "hog", HOG)
        m.decode, m.path = self.engine(m, "decode", DECODE)
        return m

    def tried(self, m):
        return [line["lever"] for line in self.lines(m)
                if line["what"] == "tried" and line["of"] == "dispatch"]

    def lines(self, m):
        return json.loads(m.ctl("history", "-n", "512", "--json").stdout)["lines"]

    def has_given_way(self, m):
        return self.enabled(m, m.hog.pid) < 12

    def test_others_give_way_and_get_everything_back_when_it_is_idle(self):
        m = self.with_loop()
        eventually(lambda: self.has_given_way(m), "CUs of its own for the one with a target")
        self.assertIn("cu_share_25", self.tried(m))
        control = m.property(m.path, "Process", "GpuControl")
        self.assertIn(control["state"], ("violating", "saturated", "meeting", "observing"))
        self.assertIn("GPU target:", m.ctl("status").stdout)
        m.decode.send_signal(signal.SIGSTOP)
        eventually(lambda: m.property(m.path, "Process", "GpuControl")["state"] == "idle", "idle")
        eventually(lambda: not self.has_given_way(m), "all of it again")
        m.decode.send_signal(signal.SIGCONT)
        self.assertEqual(m.stop_daemon(), 0)
        replayed = subprocess.run([DAEMON, "--replay", m.record], capture_output=True,
                                  text=True, check=False, timeout=60)
        self.assertEqual(replayed.returncode, 0, replayed.stderr)
        self.assertIn(" 0 different", replayed.stdout)

    def test_a_daemon_that_dies_in_the_middle_leaves_nobody_held_back(self):
        m = self.with_loop()
        eventually(lambda: self.has_given_way(m), "CUs of its own for the one with a target")
        m.kill_daemon()
        eventually(lambda: not self.has_given_way(m), "all of it again")

    def test_the_end_of_the_one_with_a_target_frees_the_others(self):
        m = self.with_loop()
        eventually(lambda: self.has_given_way(m), "CUs of its own for the one with a target")
        m.decode.kill()
        eventually(lambda: not self.has_given_way(m), "all of it again")

    def test_a_high_level_is_held_only_while_its_process_works(self):
        m = self.with_loop()
        m.decode.kill()
        m.hog.kill()
        process, path = self.engine(m, "held")
        self.lever_is(m, path, "performance_level", "applied")
        process.send_signal(signal.SIGSTOP)
        seen = self.lever_is(m, path, "performance_level", "standby")
        self.assertIn("nothing works on the GPU", seen[3])
        process.send_signal(signal.SIGCONT)
        self.lever_is(m, path, "performance_level", "applied")


if __name__ == "__main__":
    unittest.main(verbosity=2)
