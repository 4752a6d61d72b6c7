# SPDX-License-Identifier: MIT
"""A software APU and programs on it with the agent loaded, as the agent's tests need them."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "doubles"))

import agent_daemon  # noqa: E402
from harness import BUILD, DEADLINE_S, PLAIN, SOFTAPU, eventually, read  # noqa: E402

AGENT = os.path.join(BUILD, "client", "agent", "libapusched-agent.so")
STAT = os.path.join(PLAIN, "tests", "softapu", "softapu-stat")
QUEUE_USER = os.path.join(PLAIN, "tests", "softapu", "programs", "queue_user")
HIP_USER = os.path.join(PLAIN, "tests", "softapu", "programs", "hip_user")
# A sanitizer's library, where the agent is built with one and the program is not. It comes behind
# the software APU's own.
SANITIZER = os.environ.get("APUSCHED_SANITIZER_LIBRARY", "")
SANITIZED = ["/bin/sh", "-c", 'LD_PRELOAD="$LD_PRELOAD:$0" exec "$@"', SANITIZER]


class Program:
    """queue_user on the software APU, one command at a time."""

    def __init__(self, session, environment, program=QUEUE_USER):
        self.process = subprocess.Popen(
            [SOFTAPU, "--join", session, "--", *(SANITIZED if SANITIZER else []),
             "/usr/bin/env", *environment, program],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        self.pid = self.answer()["pid"]

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise AssertionError(
                f"the program ended with {self.process.returncode}: {self.process.stderr.read()}")
        return json.loads(line)

    def begin(self, command):
        """answer() follows."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def do(self, command):
        self.begin(command)
        return self.answer()

    def end(self, command=None):
        """To its end, by itself; its exit code and what it said on stderr."""
        if command:
            self.process.stdin.write(command + "\n")
        _, errors = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, errors

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


class AgentTest(unittest.TestCase):
    model = "rembrandt"

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="apusched-agent-")
        cls.apu = f"{cls.dir}/apu"
        cls.server = subprocess.Popen(
            [SOFTAPU, "--session", cls.apu, "--serve", "--model", cls.model],
            stdout=subprocess.DEVNULL)
        eventually(lambda: os.path.exists(f"{cls.apu}/ready"), "the software APU")

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.wait()
        shutil.rmtree(cls.dir)

    def setUp(self):
        self.socket_dir = tempfile.mkdtemp(prefix="run-", dir=self.dir)
        self.socket = f"{self.socket_dir}/agent.sock"
        self.daemons, self.programs = [], []

    def tearDown(self):
        for program in self.programs:
            program.kill()
        for daemon in self.daemons:
            try:
                daemon.end()
            except OSError:
                pass  # ended by the test

    def daemon(self, **options):
        self.daemons.append(agent_daemon.FakeDaemon(self.socket, **options))
        return self.daemons[-1]

    def program(self, tools=AGENT, executable=QUEUE_USER, wait_ms=1000, **environment):
        """With the agent. It waits long enough for its first queue that no test depends on that."""
        variables = [f"HSA_TOOLS_LIB={tools}", f"APUSCHED_AGENT_SOCKET={self.socket}",
                     f"APUSCHED_AGENT_WAIT_MS={wait_ms}"]
        variables += [f"{name}={value}" for name, value in environment.items()]
        self.programs.append(Program(self.apu, variables, executable))
        return self.programs[-1]

    def plain_program(self, executable=QUEUE_USER):
        self.programs.append(Program(self.apu, [], executable))
        return self.programs[-1]

    def device(self):
        out = subprocess.run([STAT, self.apu], capture_output=True, text=True, check=True)
        return json.loads(out.stdout)

    def queues(self, program):
        """What the device has of the program's own queues, which the runtime's come before."""
        mine = [q for q in self.device()["queues"] if q["pid"] == program.pid]
        return sorted(mine, key=lambda queue: queue["id"])

    def settled(self, peer):
        return eventually(peer.settled, "the agent has done what the control page says")


def thread_names(pid):
    return [read(f"/proc/{pid}/task/{tid}/comm") for tid in os.listdir(f"/proc/{pid}/task")]
