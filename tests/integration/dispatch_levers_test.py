#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is held for a process while its packets wait too long: idle CPUs and the timers of threads."""

import os
import signal
import struct
import unittest

from agent_harness import AGENT
from gpu_loop_test import DECODE
from harness import eventually, read
from run_test import RunTest

# Half of all waits are longer than their median: a target that is missed with nobody in the way.
PROFILES = """
  decode:
    class: critical
    target_dispatch_percent: 101
"""
SLACK = 1000
LIMIT = 20


def overlay(below, where, path):
    """The tree `below` with a folder of its own at `path`: the software APU's takes no files."""
    os.makedirs(where)
    if os.path.isdir(below):
        for name in os.listdir(below):
            if not path or name != path[0]:
                os.symlink(f"{below}/{name}", f"{where}/{name}")
    if path:
        overlay(f"{below}/{path[0]}", f"{where}/{path[0]}", path[1:])
    return where


class DispatchLevers(RunTest):
    def with_states(self, *daemon_options, deepest="350"):
        m = self.machine()
        m.sysfs = overlay(m.sysfs, f"{m.dir}/sys", ["devices", "system", "cpu", "cpu0"])
        for index, latency in enumerate(("0", "1", deepest)):
            state = f"{m.sysfs}/devices/system/cpu/cpu0/cpuidle/state{index}"
            os.makedirs(state)
            for name, text in (("latency", latency), ("name", f"C{index}"), ("disable", "0")):
                with open(f"{state}/{name}", "w", encoding="ascii") as file:
                    file.write(text + "\n")
        m.write("cpu_dma_latency", "")
        with open(m.config, "a", encoding="utf-8") as config:
            config.write(PROFILES)
        m.start_daemon("--agent-library", AGENT, *daemon_options)
        m.decode, m.path = self.engine(m, "decode", DECODE)
        m.before = self.slacks(m)
        return m

    def slacks(self, m):
        return {tid: int(read(f"/proc/{tid}/timerslack_ns"))
                for tid in os.listdir(f"/proc/{m.decode.pid}/task")}

    def asked(self, m):
        """The limit that the daemon holds, as it keeps the device open."""
        folder = f"/proc/{m.daemon.pid}/fd"
        try:
            names = [os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder)]
        except FileNotFoundError:  # one was closed meanwhile
            return None
        if m.cpu_latency not in names:
            return None
        with open(m.cpu_latency, "rb") as device:
            return struct.unpack("i", device.read(4))[0]

    def is_held(self, m):
        return all(slack == SLACK for slack in self.slacks(m).values())

    def test_both_are_tried_and_given_back_when_the_process_rests(self):
        m = self.with_states()
        eventually(lambda: self.asked(m) == LIMIT, "a limit on idle states")
        eventually(lambda: self.is_held(m), "timers on time")
        m.decode.send_signal(signal.SIGSTOP)
        eventually(lambda: self.asked(m) is None, "no limit")
        eventually(lambda: self.slacks(m) == m.before, "the originals")
        eventually(lambda: m.outcome(m.path, "cpu_latency") == "standby", "told")
        self.assertEqual(m.lever(m.path, "timer_slack")[2], f"{SLACK} ns")
        m.decode.send_signal(signal.SIGCONT)
        self.assertEqual(m.stop_daemon(), 0)

    def test_a_daemon_that_dies_leaves_the_originals_to_restore(self):
        m = self.with_states()
        eventually(lambda: self.is_held(m), "timers on time")
        m.kill_daemon()
        self.assertEqual(m.run_daemon("--restore").returncode, 0)
        self.assertEqual(self.slacks(m), m.before)

    def test_where_no_idle_state_is_deep_the_lever_says_so(self):
        m = self.with_states(deepest="18")
        seen = eventually(
            lambda: m.outcome(m.path, "cpu_latency") == "unsupported" and m.lever(
                m.path, "cpu_latency"), "told")
        self.assertIn("the deepest, C2, takes 18 µs", seen[3])
        eventually(lambda: self.is_held(m), "timers on time all the same")
        self.assertIsNone(self.asked(m))


if __name__ == "__main__":
    unittest.main(verbosity=2)
