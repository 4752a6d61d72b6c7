# SPDX-License-Identifier: MIT
"""Bad input gets a clear error that names the thing, and loses nothing."""

import os
import shutil
import subprocess
import unittest

import dbus

from harness import MachineTest, eventually, nices, read


class BadRegistrations(MachineTest):
    @classmethod
    def setUpClass(cls):
        from harness import Machine

        cls.m = Machine(with_gpu=False)
        cls.addClassCleanup(cls.m.close)
        cls.m.start_daemon()
        cls.victim = cls.m.spawn(["sleep", "600"])

    def tearDown(self):
        self.assertEqual(self.m.processes(), [])
        self.assertEqual(set(nices(self.victim.pid).values()), {0})

    def refuse(self, name, words, *arguments, **options):
        self.assert_bus_error(name, words, self.m.register, *arguments, **options)

    def register_fd(self, fd):
        return self.m.call("Register", dbus.types.UnixFd(fd), "background",
                           dbus.Dictionary({}, signature="sv"))

    def test_an_unknown_profile_lists_those_there_are(self):
        self.refuse("UnknownProfile", ["fast", "llm-interactive", "background"],
                    self.victim.pid, "fast")

    def test_pid_0(self):
        self.refuse("InvalidArgument", ["0", "between 1 and"], 0)

    def test_a_pid_above_the_range(self):
        self.refuse("InvalidArgument", ["4294967295"], 4294967295)

    def test_pid_1(self):
        self.refuse("NotAllowed", ["init"], 1)

    def test_the_daemons_own_pid(self):
        self.refuse("NotAllowed", ["daemon itself"], self.m.daemon.pid)

    def test_a_kernel_thread(self):
        self.assertIn("kthreadd", read("/proc/2/comm"))
        self.refuse("NotAllowed", ["kernel thread"], 2)

    def test_a_pid_that_died(self):
        process = subprocess.Popen(["true"])
        process.wait()
        self.refuse("NoSuchProcess", [str(process.pid)], process.pid)

    def test_a_zombie(self):
        process = subprocess.Popen(["true"])
        eventually(lambda: " Z " in read(f"/proc/{process.pid}/stat"), "a zombie")
        self.refuse("NoSuchProcess", [str(process.pid)], process.pid)
        process.wait()

    def test_a_thread_id(self):
        program = ("import threading, time; t = threading.Thread(target=time.sleep, args=(600,),"
                   " daemon=True); t.start(); print(t.native_id, flush=True); time.sleep(600)")
        process = self.m.spawn(["/usr/bin/python3", "-c", program], stdout=subprocess.PIPE,
                               text=True)
        self.refuse("InvalidArgument", ["thread"], int(process.stdout.readline()))

    def test_a_descriptor_that_is_no_pidfd(self):
        with open("/dev/null", "rb") as file:
            self.assert_bus_error("InvalidArgument", ["pidfd"], self.register_fd, file.fileno())

    def test_the_pidfd_of_a_process_that_died(self):
        process = subprocess.Popen(["sleep", "600"])
        fd = os.pidfd_open(process.pid)
        self.addCleanup(os.close, fd)
        process.kill()
        process.wait()
        self.assert_bus_error("NoSuchProcess", ["gone"], self.register_fd, fd)

    def test_an_unknown_option(self):
        self.refuse("InvalidArgument", ["turbo", "include-children"], self.victim.pid, turbo=True)

    def test_an_option_of_the_wrong_type(self):
        self.refuse("InvalidArgument", ["include-children", "boolean"], self.victim.pid,
                    include_children="yes")

    def test_unregistering_what_is_not_registered(self):
        for path in ("/org/apusched1/process/99", "/", "/org/apusched1/process/0x1",
                     "/org/apusched1/process/99999999999"):
            self.assert_bus_error("NotRegistered", [path], self.m.unregister, path)


class BadConfiguration(MachineTest):
    def check(self, text):
        m = self.machine(with_gpu=False, with_systemd=False)
        m.config = m.write("bad.yaml", text)
        return m.run_daemon("--check-config")

    def test_unknown_keys_are_named_with_file_line_and_column(self):
        done = self.check("limits:\n  max_process: 5\ngpus: {}\n")
        self.assertEqual(done.returncode, 3)
        self.assertIn("bad.yaml:2:3: limits.max_process: expected", done.stderr)
        self.assertIn("bad.yaml:3:1: gpus: expected", done.stderr)

    def test_a_nice_value_out_of_range_is_named(self):
        done = self.check("profiles:\n  mine:\n    class: batch\n    nice: -30\n")
        self.assertEqual(done.returncode, 3)
        self.assertIn("bad.yaml:4:11: profiles.mine.nice: expected", done.stderr)
        self.assertIn("-30", done.stderr)

    def test_a_good_file_passes(self):
        done = self.check("limits:\n  max_processes: 5\n")
        self.assertEqual(done.returncode, 0, done.stderr)


class BadSysfs(MachineTest):
    def test_garbage_in_the_performance_level_is_shown_and_nothing_is_written(self):
        m = self.machine()
        # A plain copy, so that nothing repairs the file, and a process that seems to have a queue.
        frozen = f"{m.dir}/frozen"
        shutil.copytree(m.sysfs, frozen, symlinks=True)
        m.sysfs = frozen
        work = m.spawn(["sleep", "600"])
        gpu_id = next(
            text for node in os.listdir(f"{frozen}/class/kfd/kfd/topology/nodes")
            if (text := read(f"{frozen}/class/kfd/kfd/topology/nodes/{node}/gpu_id")) != "0"
        )
        queue = f"{frozen}/class/kfd/kfd/proc/{work.pid}/queues/1"
        os.makedirs(queue)
        for name, text in (("type", "0"), ("gpuid", gpu_id), ("size", "4096")):
            with open(f"{queue}/{name}", "w", encoding="ascii") as file:
                file.write(text)
        level = f"{frozen}/class/drm/card0/device/power_dpm_force_performance_level"
        with open(level, "wb") as file:
            file.write(b"\xff\x00turbo\x1b[31m\n")
        m.start_daemon()
        path = m.register(work.pid)
        lever = eventually(
            lambda: m.outcome(path, "performance_level") != "pending"
            and m.lever(path, "performance_level"), "an outcome")
        self.assertIn(lever[0], ("failed", "unsupported"))
        self.assertIn("turbo", lever[3])
        self.assertNotIn("\x1b", lever[3])
        with open(level, "rb") as file:
            self.assertEqual(file.read(), b"\xff\x00turbo\x1b[31m\n")
        self.assertEqual(m.outcome(path, "nice"), "applied")


if __name__ == "__main__":
    unittest.main(verbosity=2)
