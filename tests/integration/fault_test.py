# SPDX-License-Identifier: MIT
"""Faults of the GPU and of its files: the daemon survives each, answers, says what is wrong,
restores what it changed, and uses the GPU again when the fault is over."""

import os
import subprocess
import unittest

from harness import SOFTAPU_CTL, MachineTest, eventually, nices, read, rocr_major

LEVEL = "power_dpm_force_performance_level"
GPU = "0000:04:00.0"
# ROCr 6 ends each program that has a queue, the helper too; before, they wait for ever.
RESET_ENDS_PROGRAMS = rocr_major() >= 6


class FaultTest(MachineTest):
    def prepared(self):
        """A daemon whose level writer sees faults, and a workload that is not registered."""
        m = self.machine()
        m.let_the_writer_see_faults()
        m.start_daemon()
        return m, m.workload()

    def boosted(self):
        m, work = self.prepared()
        path = m.register(work.pid)
        self.assert_in_use(m, path)
        return m, work, path

    def assert_in_use(self, m, path, state="active", working=True):
        if working:
            eventually(lambda: m.outcome(path, "performance_level") == "applied", "the level")
            eventually(lambda: m.level() == "high", "the level in force")
        count = m.samples()
        eventually(lambda: m.samples() > count, "samples")
        eventually(lambda: m.property("/org/apusched1", "Manager", "State") == state,
                   "health")
        self.assert_answers(m)

    def assert_answers(self, m):
        """Everything that a client may ask is answered; the limit is only against hanging."""
        bus = m.object()
        for method in ("ListProcesses", "ListGpus", "GetEffectiveConfig"):
            bus.get_dbus_method(method, "org.apusched1.Manager")(timeout=3)
        bus.get_dbus_method("GetAll", "org.freedesktop.DBus.Properties")(
            "org.apusched1.Manager", timeout=3)
        self.assertIsNone(m.daemon.poll(), "the daemon lives")

    def level_in_ledger(self, m):
        """The last word of the file about it."""
        lines = [line for line in read(f"{m.dir}/run/ledger").splitlines()
                 if '"performance_level"' in line]
        return bool(lines) and '"erase"' not in lines[-1]

    def status(self, m):
        done = m.ctl("status")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def eventually_says(self, m, *words):
        eventually(lambda: all(word in self.status(m) for word in words), f"status with {words}")

    def eventually_logged(self, m, *words):
        eventually(lambda: any(all(word in line for word in words)
                               for line in m.log_text().splitlines()), f"a log line with {words}")

    def used_again(self, m, path, working=True):
        """The same registration after the fault; one that still waits for lost work is idle."""
        self.assert_in_use(m, path, working=working)
        eventually(lambda: "degraded" not in self.status(m), "nothing is degraded")

    def released(self, m, work, path):
        m.unregister(path)
        eventually(lambda: m.level() == "auto", "the level restored")
        eventually(lambda: set(nices(work.pid).values()) == {0}, "the nice values restored")
        eventually(lambda: not self.level_in_ledger(m), "the ledger")


class Reset(FaultTest):
    def assert_survives_or_is_released(self, m, work, path):
        if RESET_ENDS_PROGRAMS:
            work.wait(timeout=30)
            eventually(lambda: path not in m.processes(), "the registration gone")
        return not RESET_ENDS_PROGRAMS

    @unittest.skipIf(RESET_ENDS_PROGRAMS, "no program is left to probe for")
    def test_a_reset_costs_the_helper_its_queue_and_no_more(self):
        m, _, path = self.boosted()
        old = m.helper_pid()
        m.fault("reset")
        self.eventually_logged(m, "degraded", GPU, "queue hangs")
        self.assert_answers(m)
        eventually(lambda: (m.helper_pid() or old) != old, "another helper")
        self.used_again(m, path, working=False)
        self.eventually_logged(m, GPU, "works again")

    def test_the_program_that_lost_its_work_is_released_when_it_ends(self):
        m, work, path = self.boosted()
        m.fault("reset")
        if not RESET_ENDS_PROGRAMS:
            work.kill()
        work.wait()
        eventually(lambda: path not in m.processes(), "the registration gone")
        eventually(lambda: m.level() == "auto", "the level restored")
        self.assert_in_use(m, m.register(m.workload().pid))

    def test_a_reset_that_lasts_refuses_the_level_until_it_is_over(self):
        m, work, path = self.boosted()
        m.fault("reset", "hold")
        lives = self.assert_survives_or_is_released(m, work, path)
        if lives:
            m.unregister(path)
        self.eventually_logged(m, "performance level", "reset or is suspended", "try again")
        self.assertEqual(m.level(), "high")
        self.assert_answers(m)
        m.fault("clear")
        eventually(lambda: m.level() == "auto", "the level restored")
        self.eventually_logged(m, "restored to auto")
        if lives:
            self.assertEqual(set(nices(work.pid).values()), {0})

    @unittest.skipIf(RESET_ENDS_PROGRAMS, "no program is left to register")
    def test_a_helper_that_starts_during_a_reset_works_after_it(self):
        m, work = self.prepared()
        m.fault("reset", "hold")
        path = m.register(work.pid)
        eventually(lambda: str(m.gpu("Helper")).startswith("degraded"), "the helper degraded")
        self.eventually_says(m, "degraded", "hsa_init")
        self.assert_answers(m)
        m.fault("clear")
        self.used_again(m, path)


class Suspend(FaultTest):
    def test_a_level_refused_at_registration_is_written_later(self):
        m, work = self.prepared()
        m.fault("suspend")
        path = m.register(work.pid)
        eventually(lambda: m.outcome(path, "performance_level") == "denied", "the refusal")
        self.eventually_says(m, "performance_level", "denied", "reset or is suspended")
        self.assertEqual(set(nices(work.pid).values()), {-10}, "the other levers work")
        self.assert_answers(m)
        m.fault("clear")
        self.used_again(m, path)
        self.released(m, work, path)

    def test_a_daemon_stopped_meanwhile_leaves_the_level_to_restore(self):
        m, _, _ = self.boosted()
        m.fault("suspend")
        self.assertEqual(m.stop_daemon(), 0)
        self.eventually_logged(m, "stays in the ledger", "--restore")
        self.assertEqual(m.level(), "high")
        m.fault("clear")
        self.assertEqual(m.run_daemon("--restore").returncode, 0)
        eventually(lambda: m.level() == "auto", "the level restored")


class Hang(FaultTest):
    def test_a_hang_is_said_and_is_over_when_it_is_over(self):
        m, work, path = self.boosted()
        m.fault("hang")
        eventually(lambda: m.property("/org/apusched1", "Manager", "State") == "degraded",
                   "the daemon noticing")
        self.eventually_logged(m, "degraded", GPU, "queue hangs", "does not complete")
        # One helper after the other fails, and none of them passes for a GPU that works.
        self.eventually_logged(m, "degraded", GPU, "next start in 1.0 s")
        self.assertIn("degraded: ", self.status(m))
        self.assertNotIn("works again", m.log_text())
        # A program that waits for a GPU that hangs does nothing, which may be seen by now.
        self.assertIn(m.outcome(path, "performance_level"), ("applied", "standby"))
        self.assert_answers(m)
        m.fault("clear")
        self.used_again(m, path)
        self.released(m, work, path)

    def test_the_helpers_queue_alone_is_replaced(self):
        m, work, path = self.boosted()
        m.fault("stop-queue", str(m.helper_pid()))
        self.eventually_logged(m, "degraded", GPU, "does not complete")
        m.fault("clear")  # the next helper has a queue of its own anyway
        self.used_again(m, path)
        self.assertIsNone(work.poll())

    def test_a_queue_of_the_program_that_stops_is_none_of_the_gpus(self):
        m, work, path = self.boosted()
        m.fault("stop-queue", str(work.pid))
        self.assert_in_use(m, path)
        self.assertNotIn("degraded", self.status(m))
        m.fault("clear")
        self.released(m, work, path)


class RocmSmi(FaultTest):
    PRIVATE = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "-")

    def hold(self, m, pid):
        """Holds the mutex in the /dev/shm that a process sees."""
        holder = m.spawn(
            # the root too, or a program in a chroot enters the namespace's
            ["nsenter", "--target", str(pid), "--mount", "--root", SOFTAPU_CTL, "--session", m.apu,
             "fault", "rsmi-mutex"], stdout=subprocess.PIPE, text=True)
        self.assertTrue(holder.stdout.readline().startswith("holding"))

    def second_opinion(self, m):
        return str(m.gpu("Telemetry").get("level_rocm_smi", ""))

    def test_a_mutex_that_another_program_holds_is_not_the_helpers(self):
        m = self.machine()
        m.before_daemon = self.PRIVATE  # not the /dev/shm of this machine
        m.start_daemon()
        self.hold(m, m.daemon.pid)
        path = m.register(m.workload().pid)
        self.assert_in_use(m, path)
        eventually(lambda: self.second_opinion(m) == "high", "rocm-smi's reading")

    def test_a_helper_that_waits_for_its_mutex_is_replaced(self):
        m = self.machine()
        m.before_daemon = self.PRIVATE
        m.start_daemon()
        path = m.register(m.workload().pid)
        self.assert_in_use(m, path)
        eventually(lambda: self.second_opinion(m) == "high", "rocm-smi's reading")
        old = m.helper_pid()
        self.hold(m, old)
        self.eventually_logged(m, "degraded", GPU, "does not answer")
        self.assert_answers(m)
        eventually(lambda: (m.helper_pid() or old) != old, "another helper, another /dev/shm")
        self.used_again(m, path)
        eventually(lambda: float(m.gpu("Telemetry").get("age_seconds", 60)) < 3, "fresh readings")


class Files(FaultTest):
    def test_a_level_file_that_is_missing_is_said_and_used_when_it_is_there(self):
        m, work = self.prepared()
        m.fault("vanish", LEVEL)
        path = m.register(work.pid)
        eventually(lambda: m.outcome(path, "performance_level") == "failed", "the failure")
        self.eventually_says(m, "performance_level", "failed", LEVEL)
        self.assert_answers(m)
        m.fault("clear")
        self.used_again(m, path)
        self.released(m, work, path)

    def test_a_level_is_restored_when_its_file_is_back(self):
        m, work, path = self.boosted()
        m.fault("vanish", LEVEL)
        m.unregister(path)
        self.eventually_logged(m, "performance level", LEVEL, "try again")
        self.assert_answers(m)
        m.fault("clear")
        eventually(lambda: m.level() == "auto", "the level restored")
        self.assertEqual(set(nices(work.pid).values()), {0})

    def test_a_reading_that_is_missing_is_no_number(self):
        m, _, path = self.boosted()
        eventually(lambda: "busy_percent" in m.gpu("Telemetry"), "the reading")
        m.fault("vanish", "gpu_busy_percent")
        eventually(lambda: "busy_percent" not in m.gpu("Telemetry"), "no reading")
        self.assertIn("shader_clock_mhz", m.gpu("Telemetry"))
        self.assertNotIn("busy", self.status(m))
        m.fault("clear")
        eventually(lambda: "busy_percent" in m.gpu("Telemetry"), "the reading back")
        self.used_again(m, path)

    def test_a_level_written_by_somebody_else_is_theirs(self):
        m, work, path = self.boosted()
        m.fault("level", "low")
        eventually(lambda: m.outcome(path, "performance_level") == "contended", "contention")
        self.eventually_says(m, "changed by somebody else, left alone", "set it to low")
        m.unregister(path)
        self.eventually_logged(m, "changed by somebody else and is left as it is")
        self.assertEqual(m.level(), "low")
        # Handed over by being set to auto again.
        m.fault("level", "auto")
        self.assert_in_use(m, m.register(work.pid))

    def test_slow_files_delay_the_level_and_nothing_else(self):
        m, work = self.prepared()
        m.fault("slow-sysfs", "1000")
        path = m.register(work.pid)
        self.assertEqual(set(nices(work.pid).values()), {-10})
        self.assert_answers(m)
        self.assert_in_use(m, path, "degraded")
        helper = m.helper_pid()
        eventually(lambda: "level" in m.gpu("Telemetry"), "readings")
        self.eventually_says(m, "sysfs is slow")
        self.assert_in_use(m, path, "degraded")
        self.assertEqual(m.helper_pid(), helper, "a slow file is no reason to kill the helper")
        self.released(m, work, path)
        m.fault("clear")
        path = m.register(work.pid)
        eventually(lambda: "sysfs is slow" not in self.status(m), "the end of it")
        self.used_again(m, path)


class Gone(FaultTest):
    def test_a_gpu_that_is_removed_is_said_to_be_gone_and_used_when_it_is_back(self):
        m, work, path = self.boosted()
        m.fault("gone")
        self.eventually_says(m, "degraded", GPU, "is gone")
        self.eventually_logged(m, "degraded", GPU, "is gone")
        eventually(lambda: m.outcome(path, "performance_level") is None, "no level of no GPU")
        eventually(lambda: not self.level_in_ledger(m), "the ledger")
        self.assert_answers(m)
        self.assertEqual(set(nices(work.pid).values()), {-10}, "the other levers stay")
        m.fault("clear")
        eventually(lambda: "is gone" not in self.status(m), "the GPU back")
        self.eventually_logged(m, GPU, "works again")
        m.unregister(path)
        self.assertEqual(m.level(), "auto")
        self.assert_in_use(m, m.register(m.workload().pid))

    def test_a_daemon_stops_without_its_gpu(self):
        m, work, _ = self.boosted()
        m.fault("gone")
        self.assertEqual(m.stop_daemon(), 0)
        self.assertEqual(set(nices(work.pid).values()), {0})
        self.assertFalse(self.level_in_ledger(m))


class Memory(FaultTest):
    def test_a_probe_without_memory_is_opened_when_there_is_some(self):
        m, work = self.prepared()
        m.fault("no-memory")
        path = m.register(work.pid)
        eventually(lambda: str(m.gpu("Helper")).startswith("degraded"), "the helper degraded")
        self.eventually_says(m, "degraded", "hsa_")
        eventually(lambda: m.outcome(path, "performance_level") == "applied", "the level")
        self.assert_answers(m)
        m.fault("clear")
        self.used_again(m, path)
        self.released(m, work, path)

    def test_a_queue_that_is_open_already_goes_on(self):
        m, _, path = self.boosted()
        m.fault("no-memory")
        self.used_again(m, path)


if __name__ == "__main__":
    unittest.main(verbosity=2)
