#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is held for a process while its packets wait too long: idle CPUs and the timers of threads.

How long packets wait is what tests/doubles/agent_program.cpp reports: no figure of this machine, and
nothing that happens on it, decides what the daemon does."""

import json
import os
import subprocess
import threading
import unittest

from harness import PLAIN, MachineTest, eventually, read

PROGRAM = os.path.join(PLAIN, "tests", "integration", "agent_program")
LIMIT_US, SLACK_NS = 20, 1000
# What packets wait, in µs, while nothing, the first, the second, or both are held. The target is 150 %
# of what they wait undisturbed.
UNDISTURBED = "100 100 100 100"
EACH_HELPS = "4000 2000 2000 100"
TIMERS_HELP = "4000 4000 100 100"
NOTHING_HELPS = "4000 4000 4000 4000"
# What acts without rivals is let go after 30 s, to see whether it is needed (core/control.hpp).
CHECK_S = 90

CONFIG = """
limits: {scan_interval_ms: 50}
probe: {enabled: false}
control: {tick_ms: 20}
profiles:
  engine: {class: critical, target_dispatch_percent: 150}
"""
GPU_ID = "36834"
NODE = """cpu_cores_count 0
simd_count 24
simd_per_cu 2
gfx_target_version 100305
location_id 1024
domain 0
num_cp_queues 8
"""


class Engine:
    """The program, and everything that it has seen of the levers."""

    def __init__(self, machine):
        self.process = machine.spawn(
            [PROGRAM, f"{machine.dir}/run/agent.sock", machine.cpu_latency],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.seen = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        eventually(lambda: self.seen, "the agent's connection")
        self.own_slacks = self.seen[0]["slacks"]

    def _read(self):
        for line in self.process.stdout:
            self.seen.append(json.loads(line))

    def packets_wait(self, waits):
        self.process.stdin.write(waits + "\n")
        self.process.stdin.flush()

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.reader.join()

    def last(self):
        return self.seen[-1]

    def slacks(self):
        """Now, whatever the program does."""
        folder = f"/proc/{self.pid}/task"
        return {tid: int(read(f"/proc/{tid}/timerslack_ns")) for tid in os.listdir(folder)}


class DispatchLevers(MachineTest):
    def with_engine(self, deepest="350"):
        """One that meets its target with nothing held."""
        m = self.machine(with_gpu=False, with_systemd=False)
        m.write("apuschedd.yaml", CONFIG)
        m.write("cpu_dma_latency", "")
        self.make_sysfs(m, deepest)
        m.start_daemon()
        m.engine = Engine(m)
        self.addCleanup(m.engine.end)
        queue = f"class/kfd/kfd/proc/{m.engine.pid}/queues/0"
        self.sysfs(m, f"{queue}/type", "0")
        self.sysfs(m, f"{queue}/gpuid", GPU_ID)
        m.path = m.register(m.engine.pid, "engine")
        m.engine.packets_wait(UNDISTURBED)
        self.comes_to(m, "meeting")
        self.assertEqual(len(set(m.engine.own_slacks.values())), 3, "each thread has its own")
        self.assertEqual(m.engine.seen, [{"limit": None, "slacks": m.engine.own_slacks}])
        return m

    def make_sysfs(self, m, deepest):
        node = "class/kfd/kfd/topology/nodes/1"
        self.sysfs(m, f"{node}/properties", NODE)
        self.sysfs(m, f"{node}/gpu_id", GPU_ID)
        for index, latency in enumerate(("0", "1", deepest)):
            state = f"devices/system/cpu/cpu0/cpuidle/state{index}"
            for name, text in (("latency", latency), ("name", f"C{index}"), ("disable", "0")):
                self.sysfs(m, f"{state}/{name}", text + "\n")

    @staticmethod
    def sysfs(m, name, text):
        path = os.path.join(m.sysfs, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)

    def comes_to(self, m, state):
        eventually(lambda: m.property(m.path, "Process", "GpuControl").get("state") == state, state)

    def both_held(self, m):
        m.engine.packets_wait(EACH_HELPS)
        held = {"limit": LIMIT_US, "slacks": dict.fromkeys(m.engine.own_slacks, SLACK_NS)}
        eventually(lambda: m.engine.last() == held, "both levers in force")

    def nothing_held(self, m, **options):
        free = {"limit": None, "slacks": m.engine.own_slacks}
        eventually(lambda: m.engine.last() == free, "both levers let go", **options)

    def told(self, m, what, lever):
        lines = json.loads(m.ctl("history", "--json").stdout)["lines"]
        return [line for line in lines if (line["what"], line["lever"]) == (what, lever)]

    def test_both_are_held_while_they_help_and_let_go_when_the_target_is_met_without(self):
        m = self.with_engine()
        self.both_held(m)
        for lever in ("cpu_latency", "timer_slack"):
            eventually(lambda kind=lever: self.told(m, "kept", kind), f"{lever} is kept")
            eventually(lambda kind=lever: m.outcome(m.path, kind) == "applied", f"{lever} applied")
        self.comes_to(m, "meeting")
        m.engine.packets_wait(UNDISTURBED)
        self.nothing_held(m, deadline=CHECK_S)
        for lever in ("cpu_latency", "timer_slack"):
            eventually(lambda kind=lever: m.outcome(m.path, kind) == "standby", f"{lever} standby")
        self.comes_to(m, "meeting")
        self.assertFalse(self.told(m, "undone", "cpu_latency") + self.told(m, "undone", "timer_slack"))

    def test_what_does_not_help_is_let_go_again(self):
        m = self.with_engine()
        m.engine.packets_wait(NOTHING_HELPS)
        for lever in ("cpu_latency", "timer_slack"):
            eventually(lambda kind=lever: self.told(m, "undone", kind), f"{lever} is undone")
        self.nothing_held(m)
        self.assertIn(LIMIT_US, [seen["limit"] for seen in m.engine.seen])
        self.assertIn({SLACK_NS}, [set(seen["slacks"].values()) for seen in m.engine.seen])
        # one at a time: the first was let go before the second was tried
        self.assertFalse([seen for seen in m.engine.seen
                          if seen["limit"] and SLACK_NS in seen["slacks"].values()])

    def test_both_are_let_go_when_the_process_rests(self):
        m = self.with_engine()
        self.both_held(m)
        m.engine.packets_wait("")
        self.nothing_held(m)
        self.comes_to(m, "idle")

    def test_both_are_let_go_with_the_registration(self):
        m = self.with_engine()
        self.both_held(m)
        m.unregister(m.path)
        self.nothing_held(m)

    def test_both_are_let_go_when_the_daemon_stops(self):
        m = self.with_engine()
        self.both_held(m)
        self.assertEqual(m.stop_daemon(), 0)
        self.assertEqual(m.engine.slacks(), m.engine.own_slacks)

    def test_the_next_start_restores_what_a_daemon_that_was_killed_left(self):
        m = self.with_engine()
        self.both_held(m)
        m.kill_daemon()
        self.assertEqual(set(m.engine.slacks().values()), {SLACK_NS}, "nobody was there to restore")
        m.start_daemon()
        self.assertEqual(m.engine.slacks(), m.engine.own_slacks)
        self.nothing_held(m)

    def test_where_no_idle_state_is_deep_that_is_said_and_timers_fire_on_time_all_the_same(self):
        m = self.with_engine(deepest="18")
        m.engine.packets_wait(TIMERS_HELP)
        slack = dict.fromkeys(m.engine.own_slacks, SLACK_NS)
        eventually(lambda: m.engine.last() == {"limit": None, "slacks": slack}, "slack held")
        lever = eventually(lambda: m.lever(m.path, "cpu_latency"), "its status")
        self.assertEqual(lever[0], "unsupported")
        self.assertIn("the deepest, C2, takes 18 µs", lever[3])
        self.assertNotIn(LIMIT_US, [seen["limit"] for seen in m.engine.seen])


if __name__ == "__main__":
    unittest.main(verbosity=2)
