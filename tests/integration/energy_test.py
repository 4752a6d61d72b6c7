#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CPUs with background work only save energy while a process misses its dispatch target; as files of
cpufreq here are plain ones, what that does to power is for a real machine to say."""

import os
import subprocess
import unittest

from agent_harness import AGENT
from gpu_loop_test import DECODE, HOG
from harness import PYTHON, SOFTAPU, eventually, read
from run_test import RunTest

# No lever before this one: who is in the way on the GPU is not registered.
SETTINGS = """
  decode:
    class: critical
    target_dispatch_percent: 101
  indexer:
    class: background
control:
  retry_after_ms: 1000
  cpu_latency_us: null
  timer_slack_ns: null
  background_energy_preference: power
"""
BEFORE = "balance_performance"
CHOICES = "default performance balance_performance balance_power power "


class Energy(RunTest):
    def setUp(self):
        self.own, self.theirs = sorted(os.sched_getaffinity(0))[:2]

    def with_policies(self):
        m = self.machine()
        m.folder = f"{m.sysfs}/devices/system/cpu/cpufreq"
        # What the software APU has there is the machine's own folder.
        real = os.path.realpath(f"{m.sysfs}/devices/system/cpu")
        os.unlink(f"{m.sysfs}/devices/system/cpu")
        os.mkdir(f"{m.sysfs}/devices/system/cpu")
        for name in set(os.listdir(real)) - {"cpufreq"}:
            os.symlink(f"{real}/{name}", f"{m.sysfs}/devices/system/cpu/{name}")
        for cpu in (self.own, self.theirs):
            os.makedirs(f"{m.folder}/policy{cpu}")
            for name, text in (("affected_cpus", str(cpu)),
                               ("scaling_driver", "amd-pstate-epp"),
                               ("energy_performance_available_preferences", CHOICES),
                               ("energy_performance_preference", BEFORE)):
                with open(f"{m.folder}/policy{cpu}/{name}", "w", encoding="utf-8") as file:
                    file.write(text + "\n")
        with open(m.config, "a", encoding="utf-8") as config:
            config.write(SETTINGS)
        m.start_daemon("--agent-library", AGENT)
        m.decode, m.path = self.engine(m, "decode", DECODE)
        m.worker = m.spawn(["taskset", "-c", str(self.theirs), PYTHON, "-c", "while True: pass"])
        m.register(m.worker.pid, "indexer")
        return m

    def preference(self, m, cpu):
        # A plain file keeps the rest of what was longer.
        return read(f"{m.folder}/policy{cpu}/energy_performance_preference").splitlines()[0]

    def keep_on(self, m, *cpus):
        """All of its threads: ROCr gives those that it starts every CPU, whatever they inherit. Where
        a cpuset keeps the process there (AllowedCPUs=) it cannot."""
        subprocess.run(["taskset", "-a", "-c", "-p", ",".join(map(str, cpus)), str(m.decode.pid)],
                       check=False, capture_output=True)

    def saves(self, m):
        eventually(lambda: m.property(m.path, "Process", "GpuControl").get("target_us"), "a yardstick")
        m.spawn([SOFTAPU, "--join", m.apu, "--", *HOG], stdout=subprocess.DEVNULL)

        def seen():
            self.keep_on(m, self.own)
            return self.preference(m, self.theirs) == "power"
        return eventually(seen, "it to save")

    def test_the_cpu_of_the_background_saves_and_has_its_own_back_in_the_end(self):
        m = self.with_policies()
        self.saves(m)
        self.assertEqual(self.preference(m, self.own), BEFORE)
        self.assertEqual(m.lever(m.path, "energy_preference")[2], "power")
        self.assertEqual(m.stop_daemon(), 0)
        self.assertEqual(self.preference(m, self.theirs), BEFORE)

    def test_a_daemon_that_dies_leaves_the_original_to_restore(self):
        m = self.with_policies()
        self.saves(m)
        m.kill_daemon()
        self.assertEqual(m.run_daemon("--restore").returncode, 0)
        self.assertEqual(self.preference(m, self.theirs), BEFORE)

    def test_a_process_that_comes_to_the_cpu_ends_it_and_that_is_said(self):
        m = self.with_policies()
        self.saves(m)
        self.keep_on(m, self.own, self.theirs)
        seen = self.lever_is(m, m.path, "energy_preference", "unsupported")
        self.assertIn("AllowedCPUs=", seen[3])
        self.assertEqual(self.preference(m, self.theirs), BEFORE)

    def test_without_the_files_it_says_what_the_machine_lacks(self):
        m = self.machine()
        with open(m.config, "a", encoding="utf-8") as config:
            config.write(SETTINGS)
        m.start_daemon("--agent-library", AGENT)
        _, m.path = self.engine(m, "decode", DECODE)
        seen = self.lever_is(m, m.path, "energy_preference", "unsupported")
        self.assertIn("amd_pstate=active", seen[3])


if __name__ == "__main__":
    unittest.main(verbosity=2)
