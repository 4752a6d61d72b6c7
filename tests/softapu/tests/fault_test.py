#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What programs see of the faults that softapu-ctl makes."""

import contextlib
import errno
import os
import signal
import socket
import struct
import subprocess
import sys
import unittest

from session_test import BUILD, PATIENCE, PROGRAMS, ROCR_RELEASE, Session, eventually, run

FAULTS_CHANGED = 6  # session/layout.h, RequestKind
CTL = BUILD / "softapu-ctl"
DEVICE = "/sys/class/drm/card0/device"
LEVEL = f"{DEVICE}/power_dpm_force_performance_level"

# Plain ioctls of linux/kfd_ioctl.h; `ioctl` prints the name of the error or "ok".
KFD = """
import ctypes, errno, fcntl, os, struct, sys
def attempt(what, *arguments):
    try:
        return what(*arguments) or "ok"
    except OSError as error:
        return errno.errorcode[error.errno]
def say(word):
    print(word, flush=True)
def number(command, size):
    return 3 << 30 | size << 16 | ord("K") << 8 | command
def ioctl(command, data):
    fcntl.ioctl(kfd, number(command, len(data)), data, True)
def create_event(kind):
    data = bytearray(struct.pack("QIIIIII", 0, 0, kind, 1, 0, 0, 0))
    ioctl(0x08, data)
    return struct.unpack("QIIIIII", data)[5]
def allocate(node=1):
    gpu = int(open(f"/sys/class/kfd/kfd/topology/nodes/{node}/gpu_id").read())
    ioctl(0x16, bytearray(struct.pack("QQQQII", 4096, 4096, 0, 0, gpu, 2)))
def wait_for(event):
    entry = (ctypes.c_uint32 * 12)()
    entry[10] = event
    data = bytearray(struct.pack("QIIII", ctypes.addressof(entry), 1, 1, 60000, 0))
    ioctl(0x0c, data)
    return struct.unpack("QIIII", data)[4], list(entry[:4])
"""


class FaultCase(unittest.TestCase):
    MODEL = "rembrandt"

    def setUp(self):
        self.session = Session(self.MODEL)
        self.addCleanup(self.session.__exit__)

    def fault(self, *words):
        return run(CTL, "--session", self.session.directory, "fault", *words)

    def python(self, text):
        return run(*self.session.command(sys.executable, "-c", KFD + text)).split()

    @contextlib.contextmanager
    def talking(self, text):
        process = subprocess.Popen(self.session.command(sys.executable, "-c", KFD + text),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()

    def loop(self, gpu=0):
        return self.session.holder(prefix=["env", f"ROCR_VISIBLE_DEVICES={gpu}"],
                                   command=[PROGRAMS / "decode_loop", "--rate", "100"])

    def retired(self, process, gpu=0):
        return sum(q["retired"] for q in self.session.stat(gpu)["queues"]
                   if q["pid"] == process.pid)

    def assert_goes_on(self, process, gpu=0):
        before = self.retired(process, gpu)
        eventually(lambda: self.retired(process, gpu) > before, "packets retire")

    def assert_stands(self, process, gpu=0):
        """Packets wait, and none has retired after something that takes longer than many."""
        def stands():
            queues = [q for q in self.session.stat(gpu)["queues"] if q["pid"] == process.pid]
            return any(q["submitted"] > q["retired"] for q in queues)
        eventually(stands, "packets wait")
        before = self.retired(process, gpu)
        run(*self.session.command("rocminfo"))
        self.assertEqual(self.retired(process, gpu), before)


class Faults(FaultCase):
    def test_a_hang_stops_everything_until_it_is_over(self):
        with self.loop() as process:
            self.assert_goes_on(process)
            self.fault("hang")
            self.assert_stands(process)
            busy = self.session.device / "gpu_busy_percent"
            eventually(lambda: int(busy.read_text()) == 100, "it reads busy")
            self.fault("clear")
            self.assert_goes_on(process)

    def test_a_stopped_queue_stops_nobody_else(self):
        with self.loop() as stopped, self.loop() as other:
            self.fault("stop-queue", str(stopped.pid))
            self.assert_stands(stopped)
            self.assert_goes_on(other)
            self.fault("clear", "stop-queue")
            self.assert_goes_on(stopped)

    def assert_loses_all(self, process):
        """ROCr 5 waits for ever, ROCr 6 ends the program."""
        if ROCR_RELEASE < (6,):
            return self.assert_stands(process)
        self.assertEqual(process.wait(PATIENCE), -signal.SIGABRT)
        return eventually(lambda: not self.session.stat()["queues"], "no queues are left")

    def test_a_reset_loses_kernels_and_queues_but_new_clients_work(self):
        with self.loop() as process:
            self.assert_goes_on(process)
            self.fault("reset")
            self.assert_loses_all(process)
            self.assertEqual(self.session.stat()["kernels_in_flight"], 0)
            self.assertEqual(self.session.stat()["losses"], 1)

    def test_a_reset_is_told_to_who_waits_for_it_and_its_ioctls_fail(self):
        with self.talking("kfd = os.open('/dev/kfd', os.O_RDWR)\n"
                          "event = create_event(3)\n"
                          "say(attempt(allocate))\n"
                          "say(wait_for(event))\n"
                          "say(attempt(allocate))\n") as process:
            self.assertEqual(process.stdout.readline(), "ok\n")
            self.fault("reset")
            # complete; whole GPU, hang, memory lost
            self.assertIn("(0, [0, 0, 1,", process.stdout.readline())
            self.assertEqual(process.stdout.readline(), "EIO\n")

    def test_nobody_joins_during_a_reset(self):
        program = ("say(attempt(os.open, '/dev/kfd', os.O_RDWR))\n"
                   f"fd = os.open('{LEVEL}', os.O_RDWR)\n"
                   "say(attempt(os.read, fd, 9)); say(attempt(os.write, fd, b'high'))\n")
        self.fault("reset", "hold")
        self.assertEqual(self.python(program), ["EINVAL", "EPERM", "EPERM"])
        self.fault("clear", "reset")
        self.assertEqual(self.python(program)[2], "4")

    def test_a_suspended_gpu_refuses_its_files(self):
        program = "".join(
            f"say(attempt(lambda: open('{DEVICE}/{name}').read().split()[0]))\n"
            for name in ("gpu_busy_percent", "hwmon/hwmon3/temp1_input", "mem_info_vram_total"))
        self.fault("suspend")
        self.assertEqual(self.python(program), ["EPERM", "EPERM", str(512 << 20)])
        out = subprocess.run(self.session.command("cat", f"{DEVICE}/gpu_busy_percent"),
                             check=False, capture_output=True, text=True, timeout=PATIENCE)
        self.assertIn(os.strerror(errno.EPERM), out.stderr)
        self.fault("clear")
        self.assertNotIn("EPERM", self.python(program))

    def test_a_level_is_refused_as_sysfs_does(self):
        program = (f"fd = os.open('{LEVEL}', os.O_WRONLY)\n"
                   "for word in (b'warp', b'high low', b'', b'perf_determinism', b'low'):\n"
                   "    say(attempt(os.write, fd, word))\n")
        self.assertEqual(self.python(program), ["EINVAL", "EINVAL", "EINVAL", "EINVAL", "3"])
        eventually(lambda: self.session.stat()["level"] == "low", "the last one is in force")

    def test_clocks_are_refused_as_sysfs_does(self):
        program = "".join(
            f"fd = os.open('{DEVICE}/{name}', os.O_WRONLY | os.O_TRUNC)\n"
            f"say(attempt(os.write, fd, {text!r}))\n"
            for name, text in (("pp_dpm_sclk", b"1"), ("pp_od_clk_voltage", b"s 0 400"),
                               ("pp_od_clk_voltage", b"faster")))
        table = (self.session.device / "pp_dpm_sclk").read_text()
        self.assertEqual(self.python(program), ["EINVAL", "EINVAL", "EINVAL"])
        self.session.set_level("manual")
        self.assertEqual(self.python(program), ["EINVAL", "7", "EINVAL"])
        self.fault("suspend")
        self.assertEqual(self.python(program), ["EPERM", "EPERM", "EPERM"])
        self.assertEqual((self.session.device / "pp_dpm_sclk").read_text(), table)

    def test_slow_files_are_read_slowly_and_once(self):
        # Host time, from below only: a busy machine is slower still.
        program = ("import time\n"
                   f"start = time.monotonic(); text = open('{LEVEL}').read()\n"
                   "say(text.strip()); say(time.monotonic() - start > 0.5)\n")
        self.fault("slow-sysfs", "500")
        self.assertEqual(self.python(program), ["auto", "True"])

    def test_a_file_vanishes_and_comes_back_alive(self):
        busy = self.session.device / "gpu_busy_percent"
        self.fault("vanish", "gpu_busy_percent")
        self.assertFalse(busy.exists())
        with self.loop():
            eventually(lambda: self.session.stat()["busy_percent"] > 0, "readings go on")
            self.assertFalse(busy.exists())
            self.fault("clear")
            eventually(lambda: int(busy.read_text()) > 0, "the file is alive")

    def test_a_device_goes_and_comes_back(self):
        node = self.session.directory / "sys/class/kfd/kfd/topology/nodes/1"
        with self.loop() as process:
            queues = self.session.proc / str(process.pid) / "queues"
            self.fault("gone")
            self.assertFalse(node.exists())
            # without any: ROCr 6 has ended the program, and its directory may be gone too
            self.assertEqual(list(queues.glob("*")), [])
            for path in ("/dev/kfd", "/dev/dri/renderD128"):
                self.assertEqual(self.python(f"say(attempt(os.open, '{path}', os.O_RDWR))"),
                                 ["ENOENT"])
            out = subprocess.run(self.session.command("rocminfo"), check=False,
                                 capture_output=True, text=True, timeout=PATIENCE)
            self.assertNotIn("gfx1035", out.stdout)
        self.fault("clear")
        self.assertIn("gfx1035", run(*self.session.command("rocminfo")))
        self.session.check("barriers-busy")

    def test_memory_runs_out(self):
        program = "kfd = os.open('/dev/kfd', os.O_RDWR)\nsay(attempt(allocate))\n"
        self.fault("no-memory")
        self.assertEqual(self.python(program), ["ENOMEM"])
        self.fault("clear")
        self.assertEqual(self.python(program), ["ok"])

    def test_somebody_else_writes_the_level(self):
        self.fault("level", "low")
        eventually(lambda: self.session.stat()["level"] == "low", "the level")

    @unittest.skipUnless(os.geteuid() == 0, "needs a mount namespace")
    def test_rocm_smi_waits_for_the_holder_of_its_mutex(self):
        # In a /dev/shm of its own: the mutex is everybody's on this machine.
        private = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "-"]
        holder = subprocess.Popen(
            [*private, str(CTL), "--session", str(self.session.directory), "fault", "rsmi-mutex"],
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(holder.stdout.close)
        self.addCleanup(holder.wait)
        self.addCleanup(holder.terminate)
        self.assertTrue(holder.stdout.readline().startswith("holding"))
        self.assertEqual(self.fault("list").split(), ["rsmi-mutex"])
        # The root too, or a program in a chroot enters the namespace's.
        beside = ["nsenter", "--target", str(holder.pid), "--mount", "--root",
                  *self.session.command("rocm-smi", "--showperflevel")]
        # rsmi_init waits five seconds and gives up; that of version 6 makes the mutex anew, because
        # it looks for those who have it open under a name that they do not show.
        out = subprocess.run(beside, check=False, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual("Performance Level: auto" in out.stdout, ROCR_RELEASE >= (6,))
        # Keeps the namespace when the holder ends; nsenter has entered once cat answers.
        other = subprocess.Popen([*beside[:5], "cat"], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE)
        self.addCleanup(other.stdout.close)
        self.addCleanup(other.wait)
        self.addCleanup(other.stdin.close)
        other.stdin.write(b"in\n")
        other.stdin.flush()
        self.assertEqual(other.stdout.readline(), b"in\n")
        self.fault("clear")
        self.assertEqual(holder.wait(PATIENCE), 0)
        beside[2] = str(other.pid)
        self.assertIn("Performance Level: auto", run(*beside))

    def test_who_comes_is_not_taken_for_who_ends(self):
        # All at once for the supervisor: one hangs up, one comes and asks, the first one ends. The
        # new one has the numbers of the descriptors that the first one had.
        connect = "import socket, sys; line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)"
        first = subprocess.Popen(
            [sys.executable, "-c", f"{connect}; line.connect(sys.argv[1]); print(flush=True); "
             "sys.stdin.readline(); line.close(); print(flush=True); sys.stdin.readline()",
             self.session.directory / "control"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(first.stdout.close)
        first.stdout.readline()
        supervisor = self.session.server.pid
        sockets = f"/proc/{supervisor}/fd"
        eventually(lambda: any("pidfd" in os.readlink(f"{sockets}/{fd}")
                               for fd in os.listdir(sockets)), "the first one is accepted")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
            line.settimeout(PATIENCE)
            os.kill(supervisor, signal.SIGSTOP)
            try:
                first.stdin.write("hang up\n")
                first.stdin.flush()
                first.stdout.readline()
                line.connect(str(self.session.directory / "control"))
                line.send(struct.pack("=iIII", FAULTS_CHANGED, 0, 0, 0))
                first.communicate("end\n", PATIENCE)
            finally:
                os.kill(supervisor, signal.SIGCONT)
            self.assertEqual(line.recv(64), struct.pack("=i", 0))

    def test_the_list_says_what_there_is(self):
        self.fault("hang")
        self.fault("slow-sysfs", "700")
        self.fault("vanish", "gpu_busy_percent")
        self.assertEqual(self.fault("list").splitlines(),
                         ["hang", "slow-sysfs 700", "vanish gpu_busy_percent"])
        self.fault("clear", "hang")
        self.assertNotIn("hang", self.session.stat()["faults"])
        self.fault("clear")
        self.assertEqual(self.fault("list"), "")

    def test_what_is_wrong_with_a_command_is_named(self):
        for words, status, said in (
                (["bogus"], 2, "bogus"), ([], 2, "which"), (["reset", "soon"], 2, "soon"),
                (["slow-sysfs", "0"], 2, "0"), (["stop-queue", "1"], 1, "process 1"),
                (["vanish", "../ready"], 1, "../ready"), (["vanish", "nothing"], 1, "nothing"),
                (["level", "warp"], 1, "warp"), (["clear", "bogus"], 2, "bogus")):
            with self.subTest(words=words):
                result = subprocess.run(
                    [str(CTL), "--session", str(self.session.directory), "fault", *words],
                    check=False, capture_output=True, text=True, timeout=PATIENCE)
                self.assertEqual(result.returncode, status, result.stderr)
                self.assertIn(said, result.stderr)
        result = subprocess.run([str(CTL), "--session", "/nonexistent", "fault", "list"],
                                check=False, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 1)
        self.assertIn("/nonexistent", result.stderr)


class OfTheSecondGpu(FaultCase):
    MODEL = "two_apus"

    def of_second(self, *words):
        return self.fault("--gpu", "1", *words)

    def test_a_hang_stops_the_queues_of_that_gpu_only(self):
        with self.loop() as first, self.loop(1) as second:
            self.of_second("hang")
            self.assert_stands(second, 1)
            self.assert_goes_on(first)
            self.assertEqual([self.of_second("list"), self.fault("list")], ["hang\n", ""])
            self.of_second("clear")
            self.assert_goes_on(second, 1)

    def test_after_a_reset_only_what_needs_that_gpu_fails(self):
        text = (KFD + "kfd = os.open('/dev/kfd', os.O_RDWR)\n"
                "event = create_event(3)\nsay('there')\nsay(wait_for(event))\n"
                "say(attempt(allocate)); say(attempt(allocate, 2))\n")
        process = subprocess.Popen(self.session.command(sys.executable, "-c", text),
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), "there\n")
        self.of_second("reset")
        # complete; whole GPU, hang, memory lost, and which GPU
        self.assertIn("(0, [0, 0, 1, 19426])", process.stdout.readline())
        self.assertEqual(process.stdout.read().split(), ["ok", "EIO"])

    def test_nobody_joins_while_it_is_reset(self):
        program = "say(attempt(os.open, '/dev/kfd', os.O_RDWR))\n"
        self.of_second("reset", "hold")
        self.assertEqual(self.python(program), ["EINVAL"])

    def test_it_goes_and_the_other_stays(self):
        self.of_second("gone")
        self.assertEqual(run(*self.session.command("rocminfo")).count("Name:                    gfx"),
                         1)
        self.session.check("barriers-busy")
        self.of_second("clear")
        self.assertEqual(run(*self.session.command("rocminfo")).count("Name:                    gfx"),
                         2)

    def test_its_files_fail_alone(self):
        devices = sorted((self.session.directory / "sys/bus/pci/drivers/amdgpu").glob("0000:*"))
        program = "".join(f"say(attempt(lambda: open('/sys/bus/pci/devices/{device.name}/"
                          "gpu_busy_percent').read().strip()))\n" for device in devices)
        self.of_second("suspend")
        self.assertEqual(self.python(program), ["0", "EPERM"])
        self.of_second("vanish", "gpu_busy_percent")
        self.assertEqual([(device / "gpu_busy_percent").exists() for device in devices],
                         [True, False])

    def test_a_gpu_that_there_is_not_is_named(self):
        result = subprocess.run(
            [str(CTL), "--session", str(self.session.directory), "fault", "--gpu", "2", "hang"],
            check=False, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 1)
        self.assertIn("no GPU 2", result.stderr)


if __name__ == "__main__":
    unittest.main()
