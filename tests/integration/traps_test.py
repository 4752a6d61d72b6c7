# SPDX-License-Identifier: MIT
"""Texts of sysfs that real machines have shown: the daemon lives with each, and shows no number
that is none."""

import json
import unittest

from harness import MachineTest, eventually

TRAPS = ("nul-bytes", "two-stars", "no-star", "bare-row", "equal-rows", "missing-files",
         "unknown-metrics")


class Traps(MachineTest):
    def boosted(self, trap):
        m = self.machine(apu_options=("--trap", trap)).start_daemon()
        path = m.register(m.workload().pid)
        eventually(lambda: m.outcome(path, "performance_level") == "applied", "the level")
        eventually(lambda: m.samples() > 0, "samples")
        return m, path

    def test_the_daemon_does_its_job_under_each(self):
        for trap in TRAPS:
            with self.subTest(trap=trap):
                m, path = self.boosted(trap)
                self.assertEqual(m.level(), "high")
                status = m.ctl("status")
                self.assertEqual(status.returncode, 0, status.stderr)
                self.assertNotIn("degraded", status.stdout)
                m.unregister(path)
                eventually(lambda m=m: m.level() == "auto", "the level restored")
                m.close()

    def test_what_has_no_file_has_no_number(self):
        m, _ = self.boosted("missing-files")
        readings = json.loads(m.ctl("--json", "status").stdout)["gpus"][0]["telemetry"]
        for key in ("busy_percent", "temperature_celsius", "power_watts"):
            self.assertIsNone(readings[key], readings)


if __name__ == "__main__":
    unittest.main()
