# SPDX-License-Identifier: MIT
"""Start-up errors have exit codes of their own; a machine without a GPU is a normal one."""

import os
import socket
import subprocess
import unittest

from harness import DAEMON, NOBODY, MachineTest, eventually, nices


class StartUp(MachineTest):
    def quiet(self):
        return self.machine(with_gpu=False, with_systemd=False)

    def test_no_bus(self):
        m = self.quiet()
        m.address = "unix:path=/nonexistent/bus"
        done = m.run_daemon()
        self.assertEqual(done.returncode, 5)
        self.assertIn("/nonexistent/bus", done.stderr)

    def test_the_name_is_taken(self):
        m = self.quiet().start_daemon()
        command = m.daemon_command() + ["--runtime-dir", f"{m.dir}/run2"]
        command.remove(f"{m.dir}/run")
        command.remove("--runtime-dir")
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn("org.apusched1", done.stderr)

    def test_the_runtime_directory_is_in_use(self):
        m = self.quiet().start_daemon()
        for extra in ([], ["--restore"]):
            done = m.run_daemon(*extra)
            self.assertEqual(done.returncode, 7, done.stderr)
            self.assertIn("another apuschedd", done.stderr)

    def test_not_root_on_the_system_bus(self):
        done = subprocess.run(
            ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", DAEMON],
            capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("root", done.stderr)

    def test_a_configuration_that_is_not_there(self):
        m = self.quiet()
        m.config = "/nonexistent/apuschedd.yaml"
        done = m.run_daemon()
        self.assertEqual(done.returncode, 3)
        self.assertIn("/nonexistent/apuschedd.yaml", done.stderr)

    def test_an_unknown_option(self):
        done = self.quiet().run_daemon("--turbo")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--turbo", done.stderr)

    def test_version_and_help(self):
        for option in ("--version", "--help"):
            done = subprocess.run([DAEMON, option], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0)
            self.assertIn("apuschedd", done.stdout + done.stderr)

    def test_without_a_gpu_the_cpu_levers_work_and_status_says_what_is_off(self):
        m = self.machine(with_gpu=False).start_daemon()
        degraded = [str(text) for text in m.property("/org/apusched1", "Manager", "Degraded")]
        self.assertTrue(any("GPU" in text for text in degraded), degraded)
        work = m.spawn(["sleep", "600"])
        path = m.register(work.pid)
        self.assertEqual(set(nices(work.pid).values()), {-10})
        eventually(lambda: m.weights() == (1000, 500), "the weights")
        status = m.ctl("status")
        self.assertEqual(status.returncode, 0, status.stderr)
        self.assertIn("GPU", status.stdout)
        self.assertIsNone(m.lever(path, "performance_level"))

    def test_without_systemd_the_weights_are_unsupported_and_say_why(self):
        m = self.quiet().start_daemon()
        path = m.register(m.spawn(["sleep", "600"]).pid)
        lever = eventually(
            lambda: m.outcome(path, "cpu_weight") != "pending" and m.lever(path, "cpu_weight"),
            "an outcome")
        self.assertEqual(lever[0], "unsupported")
        self.assertIn("systemd", lever[3])

    def test_it_tells_systemd_when_it_is_ready_and_when_it_stops(self):
        m = self.quiet()
        path = f"{m.dir}/notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind(path)
            notify.settimeout(30)
            os.environ["NOTIFY_SOCKET"] = path
            os.environ["WATCHDOG_USEC"] = "200000"
            try:
                m.start_daemon()
            finally:
                del os.environ["NOTIFY_SOCKET"], os.environ["WATCHDOG_USEC"]
            seen = []
            while "WATCHDOG=1" not in seen or "READY=1" not in seen:
                seen += notify.recv(4096).decode().split("\n")
            m.daemon.terminate()
            while "STOPPING=1" not in seen:
                seen += notify.recv(4096).decode().split("\n")
        self.assertEqual(m.daemon.wait(timeout=30), 0)

    def test_a_bus_that_goes_away_ends_the_daemon_and_restores_at_the_next_start(self):
        m = self.machine(with_gpu=False, with_systemd=False).start_daemon()
        work = m.spawn(["sleep", "600"])
        m.register(work.pid)
        m.started[0].kill()  # the bus
        self.assertEqual(m.daemon.wait(timeout=30), 5)
        done = m.run_daemon("--restore")
        self.assertEqual(set(nices(work.pid).values()), {0}, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
