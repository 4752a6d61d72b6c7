#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The agent in an unmodified program, with the real runtime on the software APU and a daemon that is
a double. Nothing depends on a time: kernels are judged by the device's own clock."""

import os
import unittest

from agent_harness import AgentTest, thread_names
from agent_daemon import APPLIED, CONFLICT, HIGH, LEAVE, LOW, NOTHING, UNSUPPORTED
from harness import eventually, read

OUT_OF_RESOURCES = 0x1008
MASKED, PRIORITY, OWN_MASK, OWN_PRIORITY, SERIAL = 2, 4, 16, 32, 1


def thread_named(pid, name):
    for tid in os.listdir(f"/proc/{pid}/task"):
        if read(f"/proc/{pid}/task/{tid}/comm") == name:
            return f"/proc/{pid}/task/{tid}"
    return None


def switches_asleep(task):
    """How often it has gone to sleep; None while it is awake."""
    status = dict(line.split(":\t", 1) for line in read(f"{task}/status").splitlines())
    return int(status["voluntary_ctxt_switches"]) if status["State"].startswith("S") else None


class Attaching(AgentTest):
    def test_it_tells_the_daemon_what_it_sees(self):
        daemon, program = self.daemon(), self.program()
        hello = daemon.peer().hello
        self.assertEqual(daemon.peer().pid, program.pid)
        self.assertEqual(hello.gpu_count, 1)
        gpu = hello.gpus[0]
        facts = self.device()
        self.assertEqual(gpu.isa.decode(), facts["gfx"])
        self.assertEqual(gpu.compute_units, facts["compute_units"])
        self.assertGreaterEqual(hello.core_table_bytes, 296)
        self.assertIn("apusched-agent", thread_names(program.pid))
        self.assertEqual(program.end(), (0, ""))

    def test_without_a_daemon_the_program_runs_and_the_agent_comes_later(self):
        os.rmdir(self.socket_dir)
        program = self.program()
        program.do("make")
        self.assertGreater(program.do("run")["device_ns"], 0)
        os.mkdir(self.socket_dir)
        self.assertEqual(self.daemon().peer().pid, program.pid)

    def test_without_a_daemon_the_agent_is_never_woken(self):
        program = self.program()
        program.do("make")
        agent = eventually(lambda: thread_named(program.pid, "apusched-agent"), "the thread")
        seen = eventually(lambda: switches_asleep(agent), "it sleeps")
        self.assertEqual(program.do("churn 50 10000"), {"made": 50})
        program.do("run")
        self.assertEqual(switches_asleep(agent), seen)

    def test_settings_are_there_before_the_first_queue(self):
        daemon = self.daemon(prepare=lambda peer: peer.set(wake=False, queue_limit=1))
        program = self.program()
        self.assertEqual(program.do("make 2")["status"], OUT_OF_RESOURCES)
        self.assertEqual(program.do("make 0")["queues"], 1)
        seen = eventually(lambda: t if (t := daemon.peer().settled()) and t.refused_queues else None,
                          "the refusal is reported")
        self.assertEqual((seen.queue_count, seen.refused_queues), (1, 1))

    def test_a_daemon_that_ends_takes_its_settings_along(self):
        daemon, program = self.daemon(), self.program()
        program.do("make")
        whole = self.queues(program)[-1]["mask"]
        daemon.peer().set(masks={0: (32, [0x3])}, priority=LOW, queue_limit=1)
        self.settled(daemon.peer())
        self.assertEqual(self.queues(program)[-1]["mask"], "0x3")
        daemon.end()
        eventually(lambda: self.queues(program)[-1]["mask"] == whole, "the mask is restored")
        eventually(lambda: self.queues(program)[-1]["priority"] == self.queues(program)[0]["priority"],
                   "the priority is restored")
        self.assertEqual(program.do("make 2")["queues"], 3)
        again = self.daemon()
        self.assertEqual(again.peer().pid, program.pid)
        again.peer().set(masks={0: (32, [0xC])})
        self.settled(again.peer())
        self.assertEqual(self.queues(program)[-1]["mask"], "0xc")
        self.assertEqual(program.end(), (0, ""))

    def test_one_that_refuses_is_left_alone(self):
        daemon = self.daemon(answer=lambda peer: peer.welcome(refusal=3, descriptors=[]))
        program = self.program()
        daemon.peer()
        program.do("make")
        self.assertGreater(program.do("run")["device_ns"], 0)
        self.assertEqual(program.end(), (0, ""))


class Masks(AgentTest):
    def test_a_program_that_dispatches_gets_a_mask_and_its_throughput_follows(self):
        daemon, program = self.daemon(), self.program()
        program.do("make")
        whole = self.queues(program)[-1]["mask"]
        free = program.do("run 120 10000")["device_ns"]
        daemon.peer().set(masks={0: (32, [0x3])})
        report = self.settled(daemon.peer())
        self.assertEqual(report.mask[0].applied, APPLIED)
        self.assertTrue(report.queues[0].flags & MASKED)
        self.assertEqual(self.queues(program)[-1]["mask"], "0x3")
        masked = program.do("run 120 10000")["device_ns"]
        self.assertGreater(masked, 3 * free)
        daemon.peer().set(masks={0: (0, [])})
        report = self.settled(daemon.peer())
        self.assertEqual(report.mask[0].applied, NOTHING)
        self.assertEqual(self.queues(program)[-1]["mask"], whole)
        self.assertLess(program.do("run 120 10000")["device_ns"], masked / 2)

    def test_a_change_while_kernels_run(self):
        daemon, program = self.daemon(), self.program()
        program.do("make")
        program.do("spin")
        for words in ([0x3], [0xF], [0xFC]):
            daemon.peer().set(masks={0: (32, words)})
            self.settled(daemon.peer())
            before = program.do("rounds")["rounds"]
            eventually(lambda: program.do("rounds")["rounds"] > before, "the program goes on")
        program.do("stop")
        self.assertEqual(program.end(), (0, ""))

    def test_the_program_keeps_its_own_mask_and_sees_it(self):
        daemon, program = self.daemon(), self.program()
        program.do("make")
        program.do("set-mask 3f")
        daemon.peer().set(masks={0: (32, [0xFFC])})
        self.assertTrue(self.settled(daemon.peer()).queues[0].flags & OWN_MASK)
        self.assertEqual(self.queues(program)[-1]["mask"], "0x3c")
        self.assertEqual(program.do("get-mask")["mask"], 0x3F)
        program.do("set-mask f")
        self.assertEqual(self.queues(program)[-1]["mask"], "0xc")
        daemon.peer().set(masks={0: (0, [])})
        self.settled(daemon.peer())
        self.assertEqual(self.queues(program)[-1]["mask"], "0xf")

    def test_no_cu_left_means_that_the_programs_mask_alone_is_in_force(self):
        daemon, program = self.daemon(), self.program()
        program.do("make")
        program.do("set-mask 3")
        daemon.peer().set(masks={0: (32, [0xC])})
        self.assertEqual(self.settled(daemon.peer()).mask[0].applied, CONFLICT)
        self.assertEqual(self.queues(program)[-1]["mask"], "0x3")

    def test_what_the_environment_left_of_the_gpu_is_all_there_is(self):
        daemon, program = self.daemon(), self.program(HSA_CU_MASK="0:0-1")
        program.do("make")
        daemon.peer().set(masks={0: (32, [0xC])})
        self.assertEqual(self.settled(daemon.peer()).mask[0].applied, CONFLICT)
        self.assertEqual(self.queues(program)[-1]["mask"], "0x3")
        self.assertGreater(program.do("run")["device_ns"], 0)


class Priorities(AgentTest):
    def test_it_is_set_and_restored(self):
        daemon, program = self.daemon(), self.program()
        program.do("make")
        normal = self.queues(program)[-1]["priority"]
        daemon.peer().set(priority=HIGH)
        report = self.settled(daemon.peer())
        self.assertEqual(report.priority.applied, APPLIED)
        self.assertTrue(report.queues[0].flags & PRIORITY)
        self.assertGreater(self.queues(program)[-1]["priority"], normal)
        # HIP sets this on every queue that it makes.
        program.do("priority normal")
        self.settled(daemon.peer())
        self.assertGreater(self.queues(program)[-1]["priority"], normal)
        daemon.peer().set(priority=LEAVE)
        self.settled(daemon.peer())
        self.assertEqual(self.queues(program)[-1]["priority"], normal)

    def test_one_that_the_program_has_set_stays(self):
        daemon, program = self.daemon(), self.program()
        program.do("make")
        program.do("priority high")
        high = self.queues(program)[-1]["priority"]
        daemon.peer().set(priority=LOW)
        report = self.settled(daemon.peer())
        self.assertEqual(report.priority.applied, UNSUPPORTED)
        self.assertTrue(report.queues[0].flags & OWN_PRIORITY)
        self.assertEqual(self.queues(program)[-1]["priority"], high)


class AtCreation(AgentTest):
    def test_kernels_of_a_serial_queue_do_not_overlap(self):
        daemon = self.daemon(prepare=lambda peer: peer.set(wake=False, serial=1))
        program = self.program()
        program.do("make")
        self.assertFalse(program.do("overlap")["overlap"])
        report = eventually(lambda: t if (t := daemon.peer().settled()) and t.queue_count else None,
                            "the queue is reported")
        self.assertEqual(report.serial.applied, APPLIED)
        self.assertTrue(report.queues[0].flags & SERIAL)
        daemon.peer().set(serial=0)
        self.settled(daemon.peer())
        self.assertTrue(program.do("overlap")["overlap"])

    def test_without_the_agent_they_overlap(self):
        program = self.plain_program()
        program.do("make")
        self.assertTrue(program.do("overlap")["overlap"])

    def test_a_serial_queue_takes_masks_and_priorities(self):
        daemon = self.daemon(prepare=lambda peer: peer.set(wake=False, serial=1))
        program = self.program()
        program.do("make")
        daemon.peer().set(masks={0: (32, [0x3])}, priority=LOW)
        report = self.settled(daemon.peer())
        self.assertEqual(report.mask[0].applied, APPLIED)
        self.assertEqual(self.queues(program)[-1]["mask"], "0x3")

    def test_the_environment_acts_without_a_daemon(self):
        program = self.program(APUSCHED_SERIAL=1, APUSCHED_QUEUE_LIMIT=2,
                               APUSCHED_MEMORY_LIMIT_MIB=8)
        self.assertEqual(program.do("make 3")["queues"], 2)
        self.assertFalse(program.do("overlap")["overlap"])
        self.assertEqual(program.do("allocate 9")["status"], OUT_OF_RESOURCES)
        program.do("drop")
        self.assertEqual(program.do("make")["status"], 0)

    def test_the_memory_limit(self):
        daemon = self.daemon(
            prepare=lambda peer: peer.set(wake=False, memory_limit_bytes=64 << 20))
        program = self.program()
        program.do("make")
        self.settled(daemon.peer())
        self.assertEqual(program.do("allocate 40")["status"], 0)
        self.assertEqual(program.do("allocate 40")["status"], OUT_OF_RESOURCES)
        report = eventually(
            lambda: t if (t := daemon.peer().settled()) and t.refused_allocations else None,
            "the refusal is reported")
        self.assertGreaterEqual(report.memory_bytes, 40 << 20)
        self.assertEqual(program.do("free")["status"], 0)
        self.assertEqual(program.do("allocate 40")["status"], 0)
        self.assertEqual(program.end(), (0, ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
