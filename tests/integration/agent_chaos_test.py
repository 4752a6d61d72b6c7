#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a host program, its user or the machine may do to the agent. The program must behave as if
the agent were not there.

APUSCHED_CHURN_SECONDS: how long queues come and go (5)."""

import os
import shutil
import socket
import unittest

from agent_harness import AGENT, AgentTest, thread_names
from harness import eventually

CHURN_S = int(os.environ.get("APUSCHED_CHURN_SECONDS", "5"))
QUEUES_PER_SECOND = 100


class HostProgram(AgentTest):
    def attached(self, **options):
        daemon, program = self.daemon(), self.program(**options)
        program.do("make")
        daemon.peer().set(masks={0: (32, [0xF])}, sample_hz=100)
        self.settled(daemon.peer())
        return daemon, program

    def test_fork_leaves_the_agent_with_the_parent(self):
        daemon, program = self.attached()
        self.assertEqual(program.do("fork"), {"exited": True, "code": 7})
        daemon.peer().set(masks={0: (32, [0x3])})
        self.settled(daemon.peer())
        self.assertFalse(daemon.peer().ended())
        self.assertEqual(program.end(), (0, ""))

    def test_exec_ends_the_connection(self):
        daemon, program = self.attached()
        program.do("exec")
        eventually(daemon.peer().ended, "the connection ends")
        self.assertEqual(program.end(), (0, ""))

    def test_exit_with_a_busy_queue_and_an_open_runtime(self):
        daemon, program = self.attached()
        program.do("spin 100000")
        self.assertEqual(program.end("exit"), (0, ""))
        eventually(daemon.peer().ended, "the connection ends")

    def test_exit_while_masks_and_priorities_change(self):
        for turn in range(5):
            daemon, program = self.daemon(), self.program()
            program.do("make 4")
            program.do("spin")
            for step in range(turn + 1):
                daemon.peer().set(masks={0: (32, [0x3 << 2 * step])}, priority=1 + step % 3)
            self.assertEqual(program.end("exit"), (0, ""))
            daemon.end()

    def test_shutting_the_runtime_down_ends_the_agent(self):
        daemon, program = self.attached()
        self.assertEqual(program.end(), (0, ""))
        eventually(daemon.peer().ended, "the connection ends")

    def test_a_hundred_queues_per_second_come_and_go(self):
        daemon, program = self.attached()
        count = QUEUES_PER_SECOND * CHURN_S
        program.begin(f"churn {count} {QUEUES_PER_SECOND}")
        step = [0]

        def submitted_all():
            step[0] += 1
            daemon.peer().set(masks={0: (32, [0x3 << 2 * (step[0] % 5)])}, priority=step[0] % 4)
            seen = daemon.peer().telemetry()
            return seen and seen.submitted >= count
        eventually(submitted_all, "all kernels were submitted", deadline=30 + 4 * CHURN_S)
        self.assertEqual(program.answer(), {"made": count})
        self.assertEqual(program.do("drop 9"), {"queues": 0})
        eventually(lambda: (t := daemon.peer().telemetry()) and t.queue_count == 0, "none is left")
        self.assertEqual(program.end(), (0, ""))


class Tools(AgentTest):
    def works(self, tools):
        daemon, program = self.daemon(), self.program(tools=tools)
        program.do("make")
        daemon.peer().set(masks={0: (32, [0xF])})
        self.settled(daemon.peer())
        self.assertEqual(self.queues(program)[-1]["mask"], "0xf")
        self.assertEqual(thread_names(program.pid).count("apusched-agent"), 1)
        self.assertEqual(len(daemon.peers), 1)
        return program.end()

    def test_named_twice(self):
        self.assertEqual(self.works(f"{AGENT} {AGENT}"), (0, ""))

    def test_two_copies(self):
        copy = f"{self.socket_dir}/libapusched-agent.so"
        shutil.copy(AGENT, copy)
        self.assertEqual(self.works(f"{AGENT} {copy}"), (0, ""))

    def test_beside_a_library_that_is_missing(self):
        code, errors = self.works(f"/nonexistent/tool.so {AGENT}")
        self.assertEqual(code, 0)
        self.assertIn("/nonexistent/tool.so", errors)  # what ROCr says of it


class Daemon(AgentTest):
    def goes_on(self, program):
        program.do("make")
        self.assertGreater(program.do("run")["device_ns"], 0)
        self.assertEqual(program.end(), (0, ""))

    def test_killed_before_it_answers(self):
        daemon = self.daemon(answer=lambda peer: peer.close())
        program = self.program()
        daemon.peer(2)  # it has tried again
        self.goes_on(program)

    def test_killed_after_it_has_answered(self):
        def answer(peer):
            peer.welcome()
            peer.close()
        daemon = self.daemon(answer=answer)
        program = self.program()
        daemon.peer(2)
        self.goes_on(program)

    def test_one_that_never_answers(self):
        daemon = self.daemon(answer=lambda peer: None)
        program = self.program(wait_ms=10)
        daemon.peer()
        self.goes_on(program)

    def test_killed_and_started_while_queues_come_and_go(self):
        program = self.program()
        program.begin("churn 200 100")
        for _ in range(10):
            daemon = self.daemon(prepare=lambda peer: peer.set(
                wake=False, masks={0: (32, [0xF])}, priority=1, sample_hz=1000))
            daemon.peer()
            daemon.end()
        self.assertEqual(program.answer(), {"made": 200})
        self.goes_on(program)

    def test_a_file_that_is_no_socket(self):
        with open(self.socket, "w", encoding="utf-8"):
            pass
        self.goes_on(self.program())

    def test_a_socket_that_nobody_listens_on(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stale:
            stale.bind(self.socket)
        self.goes_on(self.program())

    def test_a_socket_of_another_kind(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
            other.bind(self.socket)
            other.listen()
            self.goes_on(self.program())


if __name__ == "__main__":
    unittest.main(verbosity=2)
