#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the background profile does to real threads, besides nice, and whether it comes back."""

import ctypes
import os
import signal
import subprocess
import unittest

from harness import MachineTest, eventually

SYS_IOPRIO_GET = {"x86_64": 252, "aarch64": 31}[os.uname().machine]
LIBC = ctypes.CDLL(None, use_errno=True)
IO_IDLE = 3
# Two threads, one of which somebody has already put to SCHED_BATCH; more on SIGUSR1.
PROGRAM = """
import os, signal, threading
def batch():
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)); ready.set(); threading.Event().wait()
ready = threading.Event()
signal.signal(signal.SIGUSR1, lambda *_: threading.Thread(
    target=threading.Event().wait, daemon=True).start())
threading.Thread(target=batch, daemon=True).start()
ready.wait()
print('ready', flush=True)
while True: signal.pause()
"""
PROFILES = """
  quiet:
    class: background
    nice: 10
    scheduling: idle
    io_class: idle
"""


def threads(pid):
    """Of each thread in order: policy, I/O class, nice."""
    return [(os.sched_getscheduler(tid), LIBC.syscall(SYS_IOPRIO_GET, 1, tid) >> 13,
             os.getpriority(os.PRIO_PROCESS, tid))
            for tid in sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))]


QUIET = (os.SCHED_IDLE, IO_IDLE, 10)


class Background(MachineTest):
    def quiet_process(self):
        m = self.machine(with_gpu=False, with_systemd=False)
        with open(m.config, "a", encoding="utf-8") as config:
            config.write(PROFILES)
        m.start_daemon()
        m.worker = m.spawn(["/usr/bin/python3", "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
        self.assertEqual(m.worker.stdout.readline(), "ready\n")
        m.before = threads(m.worker.pid)
        self.assertEqual([policy for policy, _, _ in m.before], [os.SCHED_OTHER, os.SCHED_BATCH])
        m.path = m.register(m.worker.pid, "quiet")
        eventually(lambda: threads(m.worker.pid) == [QUIET, QUIET], "quiet")
        eventually(lambda: m.outcome(m.path, "scheduling") == "applied", "told")
        return m

    def test_every_thread_is_quiet_and_gets_its_own_original_back(self):
        m = self.quiet_process()
        self.assertEqual(m.lever(m.path, "io_class")[2], "idle/0")
        m.worker.send_signal(signal.SIGUSR1)
        eventually(lambda: threads(m.worker.pid) == [QUIET] * 3, "a thread born later")
        eventually(lambda: m.lever(m.path, "scheduling")[1] == "3 threads", "which is covered")
        m.unregister(m.path)
        self.assertEqual(threads(m.worker.pid), [*m.before, m.before[0]])

    def test_a_daemon_that_dies_leaves_the_originals_to_restore(self):
        m = self.quiet_process()
        m.kill_daemon()
        self.assertEqual(m.run_daemon("--restore").returncode, 0)
        self.assertEqual(threads(m.worker.pid), m.before)

    def test_what_somebody_sets_meanwhile_is_theirs(self):
        m = self.quiet_process()
        os.sched_setscheduler(m.worker.pid, os.SCHED_BATCH, os.sched_param(0))
        m.unregister(m.path)
        self.assertEqual(threads(m.worker.pid)[0], (os.SCHED_BATCH, *m.before[0][1:]))

    def test_a_real_time_thread_is_left_alone(self):
        m = self.machine(with_gpu=False, with_systemd=False)
        with open(m.config, "a", encoding="utf-8") as config:
            config.write(PROFILES)
        m.start_daemon()
        worker = m.spawn(["/bin/sleep", "infinity"])
        os.sched_setscheduler(worker.pid, os.SCHED_FIFO, os.sched_param(1))
        path = m.register(worker.pid, "quiet")
        eventually(lambda: m.outcome(path, "scheduling") == "contended", "told")
        self.assertEqual(os.sched_getscheduler(worker.pid), os.SCHED_FIFO)


if __name__ == "__main__":
    unittest.main(verbosity=2)
