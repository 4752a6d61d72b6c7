# SPDX-License-Identifier: MIT
"""The main job: a real HSA program gets its settings, the probe samples, release restores."""

import json
import os
import signal
import unittest

import dbus

from harness import MachineTest, alive, eventually, nices, read


class MainJob(MachineTest):
    def test_a_registered_process_gets_its_settings_and_release_restores_them(self):
        m = self.machine().start_daemon()
        work = m.workload()
        before = nices(work.pid)
        self.assertEqual(set(before.values()), {0})

        path = m.register(work.pid)
        self.assertEqual(set(nices(work.pid).values()), {-10}, "nice is in force at the reply")

        # Threads born later inherit the boost and are covered too.
        work.send_signal(signal.SIGUSR1)
        later = eventually(lambda: set(nices(work.pid)) - set(before), "a thread born later")
        eventually(lambda: set(nices(work.pid).values()) == {-10}, "its nice")

        eventually(lambda: m.outcome(path, "cpu_weight") == "applied", "the CPU weight")
        eventually(lambda: m.outcome(path, "io_weight") == "applied", "the IO weight")
        self.assertEqual(m.weights(), (1000, 500))
        eventually(lambda: m.outcome(path, "performance_level") == "applied", "the level")
        self.assertEqual(m.level(), "high")
        self.assertEqual(m.property(path, "Process", "Unit"), "llama.service")

        m.unregister(path)
        self.assertEqual(m.processes(), [])
        after = nices(work.pid)
        self.assertTrue(later <= set(after))
        self.assertEqual(set(after.values()), {0})
        eventually(lambda: m.level() == "auto", "the level restored")
        eventually(lambda: m.weights() == (None, None), "the weights restored")
        eventually(lambda: not os.listdir(m.control_dir), "the drop-ins gone")
        eventually(lambda: len(read(f"{m.dir}/run/ledger").splitlines()) == 1, "an empty ledger")

    def test_the_probe_samples_while_the_process_works_and_leaves_no_queue_behind(self):
        m = self.machine().start_daemon()
        work = m.workload()
        path = m.register(work.pid)
        eventually(lambda: m.samples("queue") >= 5, "barrier round trips")
        eventually(lambda: m.samples("kernel") >= 5, "no-op kernel dispatches")
        count = m.samples("queue")
        eventually(lambda: m.samples("queue") > count, "the count growing")
        for source in ("queue", "kernel"):
            self.assertGreater(int(m.gpu("DispatchLatency")[source][5]), 0, "p99")
        helper = m.helper_pid()
        self.assertTrue(m.queues(helper))

        m.unregister(path)
        eventually(lambda: not m.queues(helper), "the probe's queue closed")
        eventually(lambda: not alive(helper), "the idle helper gone")
        eventually(lambda: m.gpu("Helper") == "absent", "the daemon noticing it")

    def test_status_as_json_holds_the_same_values(self):
        m = self.machine().start_daemon()
        work = m.workload()
        path = m.register(work.pid)
        for kind in ("cpu_weight", "performance_level"):
            eventually(lambda k=kind: m.outcome(path, k) == "applied", kind)
        eventually(lambda: m.samples() >= 3, "samples")
        result = m.ctl("status", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        status = json.loads(result.stdout)
        process = status["processes"][0]
        self.assertEqual(process["pid"], work.pid)
        self.assertEqual(process["profile"], "llm-interactive")
        self.assertEqual(process["levers"]["nice"]["value"], "-10")
        self.assertEqual(process["levers"]["cpu_weight"]["value"], "1000")
        gpu = status["gpus"][0]
        self.assertEqual(gpu["performance_level"], "high")
        self.assertEqual(gpu["compute_units"], 12)
        self.assertEqual(gpu["isa"], "gfx1035")
        self.assertGreater(gpu["dispatch_latency"]["queue"]["p99_ns"], 0)

    def test_ctl_registers_and_unregisters_by_pid(self):
        m = self.machine().start_daemon()
        work = m.workload()
        done = m.ctl("register", str(work.pid), "--profile", "llm-interactive")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(set(nices(work.pid).values()), {-10})
        done = m.ctl("unregister", str(work.pid))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(set(nices(work.pid).values()), {0})

    def test_rocm_smi_and_sysfs_agree_on_the_level(self):
        m = self.machine().start_daemon()
        work = m.workload()
        path = m.register(work.pid)
        eventually(lambda: m.outcome(path, "performance_level") == "applied", "the level")

        def both():
            m.call("Refresh", path="/org/apusched1/gpu/0", interface="org.apusched1.Gpu")
            telemetry = m.gpu("Telemetry")
            return (telemetry.get("level"), telemetry.get("level_rocm_smi")) == ("high", "high")

        eventually(both, "both readings")

    def test_the_last_of_two_holders_puts_the_level_back(self):
        m = self.machine().start_daemon()
        first, second = m.workload(), m.workload()
        paths = [m.register(work.pid) for work in (first, second)]
        for path in paths:
            for lever in ("performance_level", "cpu_weight", "io_weight"):
                eventually(lambda p=path, n=lever: m.outcome(p, n) == "applied", lever)
        m.unregister(paths[0])
        eventually(lambda: m.gpu("PerformanceLevelOwner") == "apusched", "still held")
        self.assertEqual(m.level(), "high")
        self.assertEqual(m.weights(), (1000, 500))
        m.unregister(paths[1])
        eventually(lambda: m.level() == "auto", "the level back")
        eventually(lambda: m.weights() == (None, None), "the weights back")

    def test_the_same_process_cannot_be_registered_twice(self):
        m = self.machine().start_daemon()
        work = m.workload()
        m.register(work.pid)
        self.assert_bus_error("AlreadyRegistered", ["registered already"], m.register, work.pid)

    def test_registering_by_pidfd_works_like_by_pid(self):
        m = self.machine().start_daemon()
        work = m.workload()
        fd = os.pidfd_open(work.pid)
        self.addCleanup(os.close, fd)
        path = m.call("Register", dbus.types.UnixFd(fd), "background",
                      dbus.Dictionary({}, signature="sv"))
        self.assertEqual(m.property(path, "Process", "Pid"), work.pid)
        self.assertEqual(set(nices(work.pid).values()), {10})

    def test_a_dry_run_changes_nothing_and_says_what_it_would_do(self):
        m = self.machine().start_daemon("--dry-run")
        work = m.workload()
        path = m.register(work.pid)
        for kind in ("nice", "cpu_weight", "performance_level"):
            eventually(lambda k=kind: m.outcome(path, k) == "dry_run", kind)
        self.assertEqual(set(nices(work.pid).values()), {0})
        self.assertEqual(m.level(), "auto")
        self.assertEqual(m.weights(), (None, None))
        self.assertTrue(m.property("/org/apusched1", "Manager", "DryRun"))

    def test_the_bus_objects_describe_themselves(self):
        m = self.machine().start_daemon()
        work = m.workload()
        path = m.register(work.pid)
        for where, words in ((path, ["Applied", "a{s(ssss)}", "Release"]),
                             ("/org/apusched1/gpu/0", ["DispatchLatency", "Refresh"]),
                             ("/org/apusched1", ["RegisterPid", "GetManagedObjects"])):
            text = m.call("Introspect", path=where,
                          interface="org.freedesktop.DBus.Introspectable")
            for word in words:
                self.assertIn(word, text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
