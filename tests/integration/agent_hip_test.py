#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An unmodified HIP program on Debian's HIP runtime, with and without the agent."""

import unittest

from agent_harness import HIP_USER, AgentTest
from agent_daemon import APPLIED, LOW
from harness import eventually

PRIORITY, MASKED = 4, 2
HIP_SUCCESS, HIP_OUT_OF_MEMORY = 0, 2


class Hip(AgentTest):
    def test_it_behaves_as_without_the_agent_and_gets_mask_and_priority(self):
        plain = self.plain_program(HIP_USER)
        expected = plain.do("work")
        self.assertEqual(set(expected["results"]), {0})
        self.assertEqual(plain.end()[0], 0)

        daemon = self.daemon()
        program = self.program(executable=HIP_USER)
        self.assertEqual(program.do("work"), expected)
        daemon.peer().set(masks={0: (32, [0x3])}, priority=LOW)
        report = self.settled(daemon.peer())
        self.assertEqual(report.mask[0].applied, APPLIED)
        masks = [queue["mask"] for queue in self.queues(program)]
        self.assertEqual(masks.count("0x3"), report.queue_count)
        # The default stream's: HIP has set it to normal, which is no wish.
        flags = [queue.flags for queue in report.queues[:report.reported_queues]]
        self.assertIn(MASKED | PRIORITY, flags)
        self.assertEqual(program.do("work"), expected)
        seen = eventually(daemon.peer().settled, "the agent goes on")
        self.assertGreaterEqual(seen.submitted, 22)
        self.assertGreater(seen.memory_bytes, 0)
        code, errors = program.end()
        self.assertEqual((code, errors), (0, ""))

    def test_the_memory_limit_is_its_own_error(self):
        daemon = self.daemon()
        program = self.program(executable=HIP_USER)
        self.assertEqual(set(program.do("work")["results"]), {0})
        self.assertEqual(program.do("allocate 32")["results"], [HIP_SUCCESS, HIP_SUCCESS])
        # What HIP allocates for itself must go through: 5.2 crashes where it does not.
        daemon.peer().set(memory_limit_bytes=24 << 20)
        self.settled(daemon.peer())
        self.assertEqual(program.do("allocate 32")["results"], [HIP_OUT_OF_MEMORY, HIP_SUCCESS])
        self.assertEqual(set(program.do("work")["results"]), {0})
        self.assertEqual(program.end()[0], 0)

    def test_in_serial_queues_it_behaves_the_same(self):
        program = self.program(executable=HIP_USER, APUSCHED_SERIAL=1)
        self.assertEqual(set(program.do("work")["results"]), {0})
        self.assertEqual(program.end()[0], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
