#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The control loop on the real scheduler: work beside it takes the CPU, and ends again."""

import json
import os
import signal
import subprocess
import unittest

from harness import DAEMON, MachineTest, eventually

# Two threads that hand each other work, as an engine's do: each wakes the other for each token.
ENGINE = """
import threading, time
go, done = threading.Semaphore(0), threading.Semaphore(0)
def submit():
    while True:
        go.acquire(); sum(range(2000)); done.release()
threading.Thread(target=submit, daemon=True).start()
print('ready', flush=True)
while True:
    go.release(); done.acquire(); time.sleep(0.005)
"""
HOG = ["/bin/sh", "-c", "while :; do :; done"]
# A target that nothing meets beside other work: whether the lever helps is for benchmarks to say.
PROFILE = """
  engine:
    class: critical
    autogroup_nice: 0
    target_wait_us: 10
"""


class Loop(MachineTest):
    def with_engine(self):
        m = self.machine(with_gpu=False)
        with open(m.config, "a", encoding="utf-8") as config:
            config.write(PROFILE)
        m.start_daemon("--record", f"{m.dir}/record")
        m.engine = m.spawn(["/usr/bin/python3", "-c", ENGINE], stdout=subprocess.PIPE, text=True)
        self.assertEqual(m.engine.stdout.readline(), "ready\n")
        m.path = m.register(m.engine.pid, "engine")
        return m

    def hogs(self, m):
        return [m.spawn(HOG) for _ in range(2 * os.cpu_count())]

    def told(self, m, what):
        return [line for line in json.loads(m.ctl("history", "-n", "512", "--json").stdout)["lines"]
                if line["what"] == what and line["lever"] == "autogroup"]

    def value(self, m):
        return m.lever(m.path, "autogroup")[2]

    def test_the_lever_is_held_strongly_while_the_target_is_missed_and_not_when_idle(self):
        m = self.with_engine()
        self.hogs(m)
        eventually(lambda: self.value(m) == "-20", "held strongly")
        self.assertGreater(self.told(m, "tried")[0]["before_us"], 10)
        # Whether other work of this machine has ended is not for a test to know; this is.
        m.engine.send_signal(signal.SIGSTOP)
        eventually(lambda: self.value(m) == "0", "as the profile has it")
        self.assertEqual(m.stop_daemon(), 0)
        replayed = subprocess.run([DAEMON, "--replay", f"{m.dir}/record"], capture_output=True,
                                  text=True, check=False, timeout=60)
        self.assertEqual(replayed.returncode, 0, replayed.stderr)
        self.assertIn(" 0 different", replayed.stdout)

    def test_a_daemon_that_dies_in_the_middle_leaves_the_original_to_restore(self):
        m = self.with_engine()
        self.hogs(m)
        eventually(lambda: self.value(m) == "-20", "held strongly")
        m.kill_daemon()
        self.assertEqual(m.run_daemon("--restore").returncode, 0)
        with open(f"/proc/{m.engine.pid}/autogroup", encoding="ascii") as file:
            self.assertIn("nice 0", file.read())

    def test_signals_tell_of_the_target(self):
        m = self.with_engine()
        listener = m.spawn(
            ["dbus-monitor", "--address", m.address,
             "type='signal',interface='org.apusched1.Process'"],
            stdout=subprocess.PIPE, text=True)
        listener.stdout.readline()  # its own NameAcquired: it listens
        self.hogs(m)
        self.expect_line(listener, "LatencyViolated")
        m.engine.send_signal(signal.SIGSTOP)
        self.expect_line(listener, "LatencyRecovered")

    def expect_line(self, process, word):
        for line in process.stdout:
            if word in line:
                return
        self.fail(f"{word} never came")


if __name__ == "__main__":
    unittest.main(verbosity=2)
