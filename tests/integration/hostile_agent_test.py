#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that talk to the agent's socket themselves, to harm the daemon or another's agent."""

import json
import os
import subprocess
import unittest

from agent_harness import AGENT, agent_daemon
from harness import CTL, DECODE, PYTHON, SOFTAPU, MachineTest, alive, eventually

# The other end of the socket, in a process of its own; says "ready" and does what it is told.
HOSTILE = """
import array, ctypes, mmap, os, random, socket, sys, time
sys.path[:0] = [DOUBLES]
import agent_daemon as abi
def connect():
    end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    end.connect(SOCKET)
    return end
def greet(end):
    end.send(bytes(abi.Hello(abi.MAGIC, abi.VERSION, ctypes.sizeof(abi.Hello), 63)))
    data, ancillary, _, _ = end.recvmsg(64, socket.CMSG_SPACE(8))
    fds = array.array('i')
    for _, _, part in ancillary:
        fds.frombytes(part)
    return list(fds)
def say(word):
    print(word, flush=True)
"""


class Hostile(MachineTest):
    def with_victim(self):
        """A daemon, and a program with an agent that must not notice anything."""
        m = self.machine()
        m.start_daemon("--agent-library", AGENT)
        m.victim = m.spawn(
            [SOFTAPU, "--join", m.apu, "--", CTL, f"--bus={m.address}", "run", "--", DECODE,
             "--rate", "50"], stdout=subprocess.PIPE, text=True)
        json.loads(m.victim.stdout.readline())
        m.victim_path = eventually(lambda: m.processes(), "its registration")[0]
        eventually(lambda: m.property(m.victim_path, "Process", "AgentAttached"), "its agent")
        eventually(lambda: m.samples() >= 1, "the GPU helper, whose descriptors count too")
        return m

    def attacker(self, m, text, wait_for="ready"):
        preface = (f"SOCKET = {m.dir + '/run/agent.sock'!r}\n"
                   f"DOUBLES = {os.path.dirname(agent_daemon.__file__)!r}\n")
        process = m.spawn([PYTHON, "-B", "-c", preface + HOSTILE + text], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stderr.close)
        line = process.stdout.readline()
        self.assertEqual(line, wait_for + "\n", process.stderr.read() if not line else "")
        return process

    def assert_unharmed(self, m):
        self.assertIsNone(m.daemon.poll(), "the daemon lives")
        self.assertEqual(m.ctl("status").returncode, 0)
        self.assertIsNone(m.victim.poll())
        before = m.property(m.victim_path, "Process", "Agent")["submitted"]
        eventually(lambda: m.property(m.victim_path, "Process", "Agent")["submitted"] > before,
                   "the other agent goes on reporting")
        self.assertEqual(m.outcome(m.victim_path, "queue_priority"), "applied")

    def descriptors(self, m):
        return len(os.listdir(f"/proc/{m.daemon.pid}/fd"))

    def test_one_that_fills_its_page_with_garbage_loses_only_its_own_figures(self):
        m = self.with_victim()
        attacker = self.attacker(m, """
end = connect(); fds = greet(end)
page = mmap.mmap(fds[1], ctypes.sizeof(abi.Telemetry))
say('ready')
while True:
    page[:] = random.randbytes(len(page))
    page[0:16] = bytes(abi.Telemetry(abi.MAGIC, abi.VERSION, len(page), 2))[:16]
""")
        path = m.register(attacker.pid)
        eventually(lambda: "reports nonsense" in m.log_text(), "the daemon saying so")
        self.assert_unharmed(m)
        self.assertEqual(m.log_text().count("reports nonsense"), 1)
        self.assertEqual(m.property(path, "Process", "Agent").get("submitted", 0), 0)

    def test_pages_can_be_neither_cut_nor_written_where_they_must_not(self):
        m = self.with_victim()
        attacker = self.attacker(m, """
end = connect(); fds = greet(end)
refused = 0
for fd, what in ((fds[0], 0), (fds[1], 0), (fds[0], 1 << 20), (fds[1], 1 << 20)):
    try:
        os.ftruncate(fd, what)
    except OSError:
        refused += 1
try:
    mmap.mmap(fds[0], ctypes.sizeof(abi.Control))
except OSError:
    refused += 1
try:
    os.pwrite(fds[0], b'x', 0)
except OSError:
    refused += 1
for fd in fds:
    os.close(fd)
say(f'{refused} refused')
time.sleep(600)
""", "6 refused")
        m.register(attacker.pid)
        self.assert_unharmed(m)

    def test_one_that_talks_after_its_greeting_is_dropped(self):
        m = self.with_victim()
        attacker = self.attacker(m, """
end = connect(); greet(end)
say('ready'); sys.stdin.readline()
try:
    while True:
        end.send(b'x' * 1000)
except OSError:
    say('dropped')
time.sleep(600)
""")
        path = m.register(attacker.pid)
        eventually(lambda: m.property(path, "Process", "AgentAttached"), "its agent")
        attacker.stdin.write("go\n")
        attacker.stdin.flush()
        self.assertEqual(attacker.stdout.readline(), "dropped\n")
        eventually(lambda: not m.property(path, "Process", "AgentAttached"), "its agent is gone")
        self.assert_unharmed(m)

    def test_a_flood_of_connections_costs_no_descriptor_and_no_log(self):
        m = self.with_victim()
        before = self.descriptors(m)
        self.attacker(m, """
ends = []
for n in range(400):
    end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    end.setblocking(False)
    try:
        end.connect(SOCKET)
    except OSError:
        continue
    try:
        end.send(random.randbytes(random.randrange(1, 2000)))
    except OSError:
        pass
    if n % 3 == 0:
        end.close()
    else:
        ends.append(end)
say('ready')
time.sleep(600)
""")
        self.assert_unharmed(m)
        eventually(lambda: self.descriptors(m) <= before + 2, "descriptors closed")
        self.assertLess(m.log_text().count("greeting"), 60)

    def test_one_that_sends_descriptors_leaves_none(self):
        m = self.with_victim()
        before = self.descriptors(m)
        self.attacker(m, """
for n in range(50):
    end = connect()
    fds = array.array('i', [sys.stdin.fileno()] * 200)
    end.sendmsg([b'hello'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    end.recv(64)
say('ready')
time.sleep(600)
""")
        self.assert_unharmed(m)
        eventually(lambda: self.descriptors(m) <= before + 2, "nothing kept")

    def test_another_user_may_have_an_agent_and_no_more(self):
        m = self.with_victim()
        attacker = self.attacker(m, """
os.setgroups([]); os.setgid(65534); os.setuid(65534)
end = connect(); say(f'{len(greet(end))} pages')
time.sleep(600)
""", "2 pages")
        # Not registered: nothing is asked of it.
        self.assertTrue(alive(attacker.pid))
        self.assert_unharmed(m)


if __name__ == "__main__":
    unittest.main(verbosity=2)
