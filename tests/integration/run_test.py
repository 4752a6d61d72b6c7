#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""apuschedctl run, and what the daemon does through the agent in a program that it knows nothing of."""

import json
import os
import signal
import subprocess
import unittest

from agent_harness import AGENT, STAT
from harness import CTL, DECODE, SOFTAPU, MachineTest, eventually, nices

NORMAL = 0  # hsaKmt's number for the priority of a queue that nobody has set

PROFILES = """
  server:
    class: critical
    queue_priority: high
    cu_weight: 200
    cu_exclusive: true
  bulk:
    class: background
    queue_priority: low
    cu_weight: 100
    nice: 10
  strict:
    class: batch
    serial: true
    queue_limit: 1
    memory_limit_mib: 64
"""


class RunTest(MachineTest):
    def with_agents(self, *daemon_options, profiles=PROFILES):
        m = self.machine()
        with open(m.config, "a", encoding="utf-8") as config:
            config.write(profiles)
        m.start_daemon("--agent-library", AGENT, *daemon_options)
        return m

    def run_program(self, m, profile, *command, options=(), **popen):
        """Started by apuschedctl, which becomes the program: their PID is one."""
        return m.spawn(
            [SOFTAPU, "--join", m.apu, "--", CTL, f"--bus={m.address}", "run", "--profile", profile,
             *options, "--", *command],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **popen)

    def engine(self, m, profile, program=(DECODE, "--rate", "50"), **options):
        process = self.run_program(m, profile, *program, **options)
        self.addCleanup(process.stderr.close)
        line = process.stdout.readline()
        self.assertTrue(line, process.stderr.read() if not line else "")
        ready = json.loads(line)
        self.assertEqual((ready["event"], ready["pid"]), ("ready", process.pid))
        path = eventually(lambda: self.path_of(m, process.pid), "its registration")
        return process, path

    def path_of(self, m, pid):
        for path, properties in m.call("ListProcesses").items():
            if properties["Pid"] == pid:
                return str(path)
        return None

    def queue(self, m, pid):
        out = subprocess.run([STAT, m.apu], capture_output=True, text=True, check=True).stdout
        queues = [q for q in json.loads(out)["queues"] if q["pid"] == pid]
        # The runtime's own come first.
        return max(queues, key=lambda q: q["id"])

    def enabled(self, m, pid):
        """CUs that the device lets the program's queue use."""
        return bin(int(self.queue(m, pid)["mask"], 16)).count("1")

    def lever_is(self, m, path, kind, outcome):
        return eventually(lambda: m.outcome(path, kind) == outcome and m.lever(path, kind),
                          f"{kind} {outcome}")

    def finished(self, process, signal_number=None):
        if signal_number:
            process.send_signal(signal_number)
        out, errors = process.communicate(timeout=60)
        return process.returncode, out, errors


class Agents(RunTest):
    def test_a_program_run_with_a_profile_is_registered_and_has_an_agent(self):
        m = self.with_agents()
        process, path = self.engine(m, "server")
        eventually(lambda: m.property(path, "Process", "AgentAttached"), "the agent")
        self.lever_is(m, path, "queue_priority", "applied")
        eventually(lambda: self.queue(m, process.pid)["priority"] > NORMAL, "priority on the device")
        eventually(lambda: m.property(path, "Process", "Agent")["submitted"] > 0, "dispatches")
        # Alone it has every CU.
        self.assertIn("12 of 12 CUs", self.lever_is(m, path, "cu_mask", "applied")[2])
        status = m.ctl("status").stdout
        self.assertIn("agent:", status)
        self.finished(process, signal.SIGTERM)
        eventually(lambda: not m.processes(), "its end")

    def test_two_programs_divide_the_cus_while_they_dispatch_and_get_them_back(self):
        m = self.with_agents()
        server, server_path = self.engine(m, "server")
        bulk, bulk_path = self.engine(m, "bulk")
        for path in (server_path, bulk_path):
            eventually(lambda p=path: m.property(p, "Process", "Agent").get("cu_masks"), "a mask")
        eventually(lambda: self.enabled(m, server.pid) == 8, "two thirds")
        eventually(lambda: self.enabled(m, bulk.pid) == 4, "one third")
        text = m.ctl("explain", str(server.pid)).stdout
        self.assertIn("8 of 12 CUs", text)
        m.unregister(bulk_path)
        eventually(lambda: self.enabled(m, server.pid) == 12, "all of it again")
        eventually(lambda: self.enabled(m, bulk.pid) == 12, "released")
        self.assertIsNone(bulk.poll(), "it goes on")

    def test_settings_of_queue_creation_are_there_before_the_first_queue(self):
        m = self.with_agents()
        process, path = self.engine(m, "strict")
        self.lever_is(m, path, "serial", "applied")
        self.lever_is(m, path, "queue_limit", "applied")
        self.lever_is(m, path, "memory_limit", "applied")
        self.finished(process, signal.SIGTERM)

    def test_a_registered_program_without_agent_is_told_how_to_get_one(self):
        m = self.with_agents()
        work = m.workload()
        path = m.register(work.pid, "server")
        lever = self.lever_is(m, path, "cu_mask", "unsupported")
        self.assertIn("apuschedctl run", lever[3])
        self.assertIn("apuschedctl run", m.ctl("explain", str(work.pid)).stdout)

    def test_a_program_that_skips_the_agent_is_told_why_that_may_be(self):
        m = self.with_agents()
        process, path = self.engine(m, "server", options=("--no-agent",))
        process.kill()
        clean = self.run_program(m, "server", "/usr/bin/env", "-u", "HSA_TOOLS_LIB", DECODE,
                                 "--rate", "50")
        self.addCleanup(clean.stderr.close)
        json.loads(clean.stdout.readline())
        path = eventually(lambda: self.path_of(m, clean.pid), "its registration")
        eventually(lambda: "HSA_TOOLS_DISABLE_REGISTER" in m.lever(path, "queue_priority")[3],
                   "the remedy")

    def test_a_daemon_that_is_killed_takes_its_settings_along_and_the_agent_finds_the_next(self):
        m = self.with_agents()
        server, _ = self.engine(m, "server")
        self.engine(m, "bulk")
        eventually(lambda: self.enabled(m, server.pid) == 8, "two thirds")
        m.kill_daemon()
        eventually(lambda: self.enabled(m, server.pid) == 12, "released by the agent itself")
        m.start_daemon("--agent-library", AGENT)
        path = m.register(server.pid, "server")
        eventually(lambda: m.property(path, "Process", "AgentAttached"), "the agent again")

    def test_a_dry_run_leaves_the_queues_alone(self):
        m = self.with_agents("--dry-run")
        process, path = self.engine(m, "server")
        self.lever_is(m, path, "queue_priority", "dry_run")
        self.assertEqual(self.queue(m, process.pid)["priority"], NORMAL)


class Running(RunTest):
    def test_the_exit_code_is_the_programs(self):
        m = self.with_agents()
        for code in (0, 7):
            process = self.run_program(m, "server", "/bin/sh", "-c", f"exit {code}")
            self.assertEqual(self.finished(process)[0], code)

    def test_a_signal_ends_the_program_and_is_seen_as_such(self):
        m = self.with_agents()
        process = self.run_program(m, "server", "/bin/sh", "-c", "echo up; exec sleep 600")
        self.assertEqual(process.stdout.readline(), "up\n")
        self.assertEqual(self.finished(process, signal.SIGINT)[0], -signal.SIGINT)

    def test_its_children_are_covered(self):
        m = self.with_agents()
        process = self.run_program(m, "bulk", "/bin/sh", "-c", "sleep 600 & echo $!; wait")
        child = int(process.stdout.readline())
        eventually(lambda: set(nices(child).values()) == {10}, "the child's nice")
        os.kill(child, signal.SIGKILL)
        self.finished(process)

    def test_a_program_that_is_not_there_is_127_and_one_that_cannot_run_is_126(self):
        m = self.with_agents()
        code, _, errors = self.finished(self.run_program(m, "server", "/nonexistent/engine"))
        self.assertEqual(code, 127)
        self.assertIn("/nonexistent/engine", errors)
        self.assertEqual(self.finished(self.run_program(m, "server", "/etc"))[0], 126)
        eventually(lambda: not m.processes(), "no registration stays")

    def test_a_profile_that_is_not_there_starts_nothing(self):
        m = self.with_agents()
        code, out, errors = self.finished(self.run_program(m, "fast", "/bin/echo", "started"))
        self.assertEqual(code, 1)
        self.assertNotIn("started", out)
        self.assertIn("server", errors)

    def test_without_daemon_it_starts_only_where_that_will_do(self):
        m = self.machine(with_gpu=False)
        command = [CTL, f"--bus={m.address}", "run"]
        refused = subprocess.run([*command, "--", "/bin/echo", "started"], capture_output=True,
                                 text=True, check=False, timeout=60)
        self.assertEqual((refused.returncode, refused.stdout), (3, ""))
        started = subprocess.run([*command, "--best-effort", "--", "/bin/echo", "started"],
                                 capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual((started.returncode, started.stdout), (0, "started\n"))
        self.assertIn("apuschedd", started.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
