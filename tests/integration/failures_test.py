# SPDX-License-Identifier: MIT
"""Whatever is killed, stopped or changed behind the daemon's back, the originals come back."""

import os
import signal
import subprocess
import unittest

from harness import MachineTest, alive, eventually, nices, read


class Failures(MachineTest):
    def boosted(self):
        m = self.machine().start_daemon()
        work = m.workload()
        path = m.register(work.pid)
        eventually(lambda: m.outcome(path, "performance_level") == "applied", "the level")
        eventually(lambda: m.outcome(path, "cpu_weight") == "applied", "the weight")
        return m, work, path

    def assert_all_original(self, m, work):
        eventually(lambda: m.level() == "auto", "the level restored")
        eventually(lambda: m.weights() == (None, None), "the weights restored")
        eventually(lambda: set(nices(work.pid).values()) == {0}, "the nice values restored")
        eventually(lambda: not os.listdir(m.control_dir), "the drop-ins gone")

    def test_a_killed_program_is_removed_and_its_shared_levers_are_restored(self):
        m, work, _ = self.boosted()
        work.kill()
        work.wait()
        eventually(lambda: not m.processes(), "the registration gone")
        eventually(lambda: m.level() == "auto", "the level restored")
        eventually(lambda: m.weights() == (None, None), "the weights restored")
        eventually(lambda: not m.queues(work.pid), "no queue left behind")

    def test_the_next_start_restores_what_a_killed_daemon_left(self):
        m, work, _ = self.boosted()
        m.kill_daemon()
        # A thread born while no daemon runs inherits the boost as well.
        before = set(nices(work.pid))
        work.send_signal(signal.SIGUSR1)
        eventually(lambda: set(nices(work.pid)) - before, "a thread born meanwhile")
        self.assertEqual(set(nices(work.pid).values()), {-10})
        self.assertEqual(m.level(), "high")
        m.start_daemon()
        self.assert_all_original(m, work)
        self.assertEqual(m.processes(), [])

    def test_restore_puts_everything_back_and_ends(self):
        m, work, _ = self.boosted()
        m.kill_daemon()
        done = m.run_daemon("--restore")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_all_original(m, work)

    def test_restore_works_without_a_bus_for_all_but_the_weights(self):
        m, work, _ = self.boosted()
        m.kill_daemon()
        command = m.daemon_command("--restore")
        command = [part.replace(m.address, "unix:path=/nonexistent/bus") for part in command]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertNotEqual(done.returncode, 0, "the weights are not restored")
        self.assertEqual(set(nices(work.pid).values()), {0})
        self.assertEqual(m.level(), "auto")
        self.assertIn("llama.service", read(f"{m.dir}/run/ledger"))
        self.assertEqual(m.run_daemon("--restore").returncode, 0)
        self.assert_all_original(m, work)

    def test_a_stopped_daemon_restores_before_it_ends(self):
        m, work, _ = self.boosted()
        self.assertEqual(m.stop_daemon(), 0)
        self.assert_all_original(m, work)

    def test_a_value_changed_by_somebody_else_is_left_to_them(self):
        m, work, path = self.boosted()
        level = f"{m.sysfs}/class/drm/card0/device/power_dpm_force_performance_level"
        with open(level, "w", encoding="ascii") as file:
            file.write("low\n")
        os.setpriority(os.PRIO_PROCESS, work.pid, 3)
        eventually(lambda: m.outcome(path, "performance_level") == "contended", "contention")
        m.unregister(path)
        self.assertEqual(m.level(), "low")
        eventually(lambda: nices(work.pid)[work.pid] == 3, "the renice of theirs")
        others = {nice for tid, nice in nices(work.pid).items() if tid != work.pid}
        self.assertEqual(others, {0})

    def test_a_level_somebody_chose_before_is_never_touched(self):
        m = self.machine().start_daemon()
        level = f"{m.sysfs}/class/drm/card0/device/power_dpm_force_performance_level"
        with open(level, "w", encoding="ascii") as file:
            file.write("manual\n")
        path = m.register(m.workload().pid)
        eventually(lambda: m.outcome(path, "performance_level") == "contended", "refusal")
        self.assertEqual(m.level(), "manual")

    def test_a_killed_helper_is_started_again_and_goes_on_sampling(self):
        m, _, path = self.boosted()
        eventually(lambda: m.samples() >= 3, "samples")
        old = m.helper_pid()
        os.kill(old, signal.SIGKILL)
        eventually(lambda: (m.helper_pid() or old) != old, "another helper")
        count = m.samples()
        eventually(lambda: m.samples() > count, "samples of the new helper")
        self.assertEqual(m.outcome(path, "performance_level"), "applied")

    def test_a_stopped_helper_is_replaced(self):
        m, _, path = self.boosted()
        eventually(lambda: m.samples() >= 3, "samples")
        old = m.helper_pid()
        os.kill(old, signal.SIGSTOP)
        eventually(lambda: "degraded" in m.gpu("Helper"), "the daemon noticing")
        eventually(lambda: not alive(old), "the stopped helper killed")
        count = m.samples()
        eventually(lambda: m.samples() > count, "samples of another helper")
        # The daemon itself answered all the while, and its levers did not move.
        self.assertEqual(m.outcome(path, "performance_level"), "applied")
        self.assertEqual(m.level(), "high")

    def test_a_helper_that_cannot_start_degrades_but_the_levers_work(self):
        m = self.machine()
        m.helper = "/nonexistent/helper"
        m.start_daemon()
        work = m.workload()
        path = m.register(work.pid)
        eventually(lambda: "degraded" in m.gpu("Helper"), "the degraded state")
        eventually(lambda: m.outcome(path, "performance_level") == "applied", "the level")
        m.unregister(path)
        self.assert_all_original(m, work)


class Children(MachineTest):
    def wrapper(self, m, count=2):
        script = " ".join("sleep 600 &" for _ in range(count)) + " wait"
        process = m.spawn(["sh", "-c", script])

        def workers():
            path = f"/proc/{process.pid}/task/{process.pid}/children"
            found = [int(pid) for pid in read(path).split()]
            return found if len(found) == count else None

        return process, eventually(workers, "the workers")

    def end(self, pids):
        for pid in pids:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)

    def test_a_wrappers_workers_are_covered_also_after_it_has_ended(self):
        m = self.machine(with_gpu=False).start_daemon()
        process, workers = self.wrapper(m)
        self.addCleanup(self.end, workers)
        path = m.register(process.pid, include_children=True)
        for pid in [process.pid, *workers]:
            self.assertEqual(set(nices(pid).values()), {-10})
        process.kill()
        process.wait()
        eventually(lambda: m.property(path, "Process", "Members") == 2, "two workers left")
        m.unregister(path)
        for pid in workers:
            self.assertEqual(set(nices(pid).values()), {0})

    def test_the_registration_ends_with_the_last_worker(self):
        m = self.machine(with_gpu=False).start_daemon()
        process, workers = self.wrapper(m)
        self.addCleanup(self.end, workers)
        m.register(process.pid, include_children=True)
        self.end([*workers, process.pid])
        process.wait()
        eventually(lambda: not m.processes(), "the registration gone")

    def test_children_that_were_not_asked_for_do_not_keep_the_boost(self):
        m = self.machine(with_gpu=False).start_daemon()
        process = m.spawn(["sh", "-c", "read go; sleep 600 & wait"], stdin=subprocess.PIPE)
        self.addCleanup(process.stdin.close)
        path = m.register(process.pid)
        process.stdin.write(b"go\n")
        process.stdin.flush()
        children = f"/proc/{process.pid}/task/{process.pid}/children"
        child = int(eventually(lambda: read(children), "the child").split()[0])
        self.addCleanup(self.end, [child])
        eventually(lambda: set(nices(child).values()) == {0}, "the child put back")
        self.assertEqual(m.property(path, "Process", "Members"), 1)

    def test_a_thread_reset_on_fork_is_boosted_and_gets_its_creators_original(self):
        m = self.machine(with_gpu=False).start_daemon()
        # Every thread this program makes starts at nice 0 (SCHED_RESET_ON_FORK of the creator).
        program = (
            "import os, sys, threading, time\n"
            "os.setpriority(os.PRIO_PROCESS, 0, 5)\n"
            "os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK,"
            " os.sched_param(0))\n"
            "print('ready', flush=True)\n"
            "sys.stdin.readline()\n"
            "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
            "time.sleep(600)\n"
        )
        process = m.spawn(["/usr/bin/python3", "-c", program], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdin.close)
        self.assertEqual(process.stdout.readline(), "ready\n")
        path = m.register(process.pid)
        self.assertEqual(set(nices(process.pid).values()), {-10})
        process.stdin.write("go\n")
        process.stdin.flush()
        eventually(lambda: list(nices(process.pid).values()) == [-10, -10], "both threads boosted")
        m.unregister(path)
        self.assertEqual(list(nices(process.pid).values()), [5, 5])


if __name__ == "__main__":
    unittest.main(verbosity=2)
