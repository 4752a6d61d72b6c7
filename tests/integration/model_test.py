# SPDX-License-Identifier: MIT
"""The main job on another APU than the other tests have: the one that APUSCHED_MODEL names."""

import json
import os
import unittest

from harness import SOURCE, MachineTest, eventually, read

MODEL = os.environ["APUSCHED_MODEL"]
FACTS = json.loads(read(f"{SOURCE}/tests/softapu/models/{MODEL}.json"))


class Model(MachineTest):
    def test_it_is_probed_and_its_level_is_set_and_restored(self):
        m = self.machine(model=MODEL).start_daemon()
        self.assertEqual(m.gpu("Isa"), FACTS["gfx"]["name"])
        self.assertEqual(m.gpu("ComputeUnits"), FACTS["shader"]["compute_units"])
        path = m.register(m.workload().pid)
        for source, what in (("queue", "barrier round trips"), ("kernel", "no-op dispatches")):
            eventually(lambda s=source: m.samples(s) >= 5, what)
            self.assertGreater(int(m.gpu("DispatchLatency")[source][5]), 0, "p99")
        eventually(lambda: m.outcome(path, "performance_level") == "applied", "the level")
        self.assertEqual(m.level(), "high")

        def both_readings():
            m.call("Refresh", path="/org/apusched1/gpu/0", interface="org.apusched1.Gpu")
            telemetry = m.gpu("Telemetry")
            return (telemetry.get("level"), telemetry.get("level_rocm_smi")) == ("high", "high")

        eventually(both_readings, "the level as sysfs and as rocm-smi have it")
        m.unregister(path)
        eventually(lambda: m.level() == "auto", "the level restored")


if __name__ == "__main__":
    unittest.main(verbosity=2)
