# SPDX-License-Identifier: MIT
"""Machines with two GPUs: each is probed and set for the processes that use it, and trouble of one
is none of the other's."""

import json
import unittest

from harness import SOURCE, MachineTest, eventually, nices, read, rocr_major

MODELS = f"{SOURCE}/tests/softapu/models"


def facts_of(machine):
    """Of each GPU, in the order of KFD, ROCr and the daemon: (PCI address, ISA)."""
    result = []
    for part in json.loads(read(f"{MODELS}/{machine}.json"))["machine"]:
        model = json.loads(read(f"{MODELS}/{part['model']}.json"))
        result.append((part.get("pci", model["pci"])["address"], model["gfx"]["name"]))
    return result


class TwoGpus(MachineTest):
    MACHINE = "two_apus"
    SOURCES = (("queue", "kernel"), ("queue", "kernel"))  # what each GPU is probed with

    def prepared(self):
        m = self.machine(model=self.MACHINE)
        m.let_the_writer_see_faults()
        m.start_daemon()
        facts = facts_of(self.MACHINE)
        self.names = [address for address, _ in facts]
        self.assertEqual([(str(m.gpu("PciAddress", gpu)), str(m.gpu("Isa", gpu)))
                          for gpu in (0, 1)], facts)
        return m

    def level(self, m, gpu):
        return m.level(self.names[gpu])

    @staticmethod
    def work_on(m, gpu):
        """A workload that is not registered yet."""
        return m.workload(environment=[f"ROCR_VISIBLE_DEVICES={gpu}"])

    def both_in_use(self):
        m = self.prepared()
        works = [self.work_on(m, 0), self.work_on(m, 1)]
        paths = [m.register(work.pid) for work in works]
        for gpu, path in enumerate(paths):
            self.assert_in_use(m, gpu, path)
        return m, works, paths

    def assert_in_use(self, m, gpu, path):
        eventually(lambda: m.outcome(path, "performance_level") == "applied", "the level")
        eventually(lambda: self.level(m, gpu) == "high", f"the level of GPU {gpu}")
        self.assert_sampled(m, gpu)

    def assert_sampled(self, m, gpu):
        for source in self.SOURCES[gpu]:
            count = m.samples(source, gpu)
            eventually(lambda s=source, c=count: m.samples(s, gpu) > c,
                       f"{source} samples of GPU {gpu}")

    def eventually_logged(self, m, *words):
        eventually(lambda: any(all(word in line for word in words)
                               for line in m.log_text().splitlines()), f"a log line with {words}")

    def level_is_restored(self, m, gpu):
        eventually(lambda: self.level(m, gpu) == "auto", f"the level of GPU {gpu} restored")


class EachForItself(TwoGpus):
    def test_only_the_gpu_in_use_is_set_and_probed(self):
        for used in (0, 1):
            with self.subTest(used=used):
                m = self.prepared()
                other = 1 - used
                path = m.register(self.work_on(m, used).pid)
                self.assert_in_use(m, used, path)
                self.assertEqual(m.lever(path, "performance_level")[1], self.names[used])
                self.assertEqual((self.level(m, other), m.samples(gpu=other)), ("auto", 0))
                self.assertEqual(m.gpu("Helper", other), "absent")
                m.unregister(path)
                self.level_is_restored(m, used)
                self.assertEqual(m.stop_daemon(), 0)
                self.assertEqual((self.level(m, 0), self.level(m, 1)), ("auto", "auto"))

    def test_two_workloads_have_a_gpu_each_and_release_restores_each(self):
        m, works, paths = self.both_in_use()
        m.unregister(paths[1])
        self.level_is_restored(m, 1)
        self.assertEqual(self.level(m, 0), "high", "the other's level stays")
        self.assertEqual(set(nices(works[1].pid).values()), {0})
        self.assertEqual(set(nices(works[0].pid).values()), {-10})
        eventually(lambda: m.gpu("Helper", 1) == "absent", "its helper gone")
        self.assert_sampled(m, 0)
        m.unregister(paths[0])
        self.level_is_restored(m, 0)

    def test_a_daemon_that_stops_restores_both(self):
        m, _, _ = self.both_in_use()
        self.assertEqual(m.stop_daemon(), 0)
        self.assertEqual((self.level(m, 0), self.level(m, 1)), ("auto", "auto"))
        self.assertEqual(len(read(f"{m.dir}/run/ledger").splitlines()), 1, "an empty ledger")


class ApuAndDiscrete(EachForItself):
    MACHINE = "apu_and_dgpu"
    # The helper has kernels for APUs.
    SOURCES = (("queue", "kernel"), ("queue",))

    def test_what_the_discrete_one_cannot_be_probed_with_is_said(self):
        m, _, _ = self.both_in_use()
        self.eventually_logged(m, f"GPU {self.names[1]} degraded", "no kernel for ISA gfx1030",
                               "barrier samples only")
        self.assertNotIn(f"GPU {self.names[0]} degraded", m.log_text())
        self.assertNotIn("kernel", m.gpu("DispatchLatency", 1))


class FaultsOfTheSecond(TwoGpus):
    def of_second(self, m, *words):
        m.fault("--gpu", "1", *words)

    def assert_the_first_is_well(self, m, path):
        self.assert_in_use(m, 0, path)
        self.assertEqual(m.gpu("Helper", 0), "ready")
        self.assertNotIn(f"GPU {self.names[0]} degraded", m.log_text())

    def test_a_hang_is_said_of_that_gpu_and_the_first_goes_on(self):
        m, works, paths = self.both_in_use()
        self.of_second(m, "hang")
        self.eventually_logged(m, f"GPU {self.names[1]} degraded", "does not complete")
        eventually(lambda: str(m.gpu("Helper", 1)).startswith("degraded"), "its helper")
        self.assert_the_first_is_well(m, paths[0])
        self.assertEqual(m.property("/org/apusched1", "Manager", "State"), "degraded")
        m.unregister(paths[0])
        self.level_is_restored(m, 0)
        paths[0] = m.register(works[0].pid)
        self.assert_the_first_is_well(m, paths[0])
        self.of_second(m, "clear")
        # While it hung, its program did nothing: the level went back.
        self.assert_in_use(m, 1, paths[1])
        self.eventually_logged(m, f"GPU {self.names[1]} works again")
        eventually(lambda: m.property("/org/apusched1", "Manager", "State") == "active", "health")

    @unittest.skipIf(rocr_major() >= 6, "ROCr 6 ends every program at a reset of any GPU")
    def test_a_reset_costs_the_probe_of_that_gpu_and_not_the_firsts(self):
        m, _, paths = self.both_in_use()
        self.of_second(m, "reset")
        self.eventually_logged(m, f"GPU {self.names[1]} degraded", "queue hangs")
        self.assert_sampled(m, 1)
        self.eventually_logged(m, f"GPU {self.names[1]} works again")
        self.assert_the_first_is_well(m, paths[0])

    def test_a_reset_that_lasts_keeps_the_level_of_that_gpu_and_no_other(self):
        m, works, paths = self.both_in_use()
        self.of_second(m, "reset", "hold")
        for work in works:
            work.kill()
            work.wait()
        eventually(lambda: not m.processes(), "the registrations gone")
        self.eventually_logged(m, self.names[1], "reset or is suspended", "try again")
        self.level_is_restored(m, 0)
        self.assertEqual(self.level(m, 1), "high")
        self.of_second(m, "clear")
        self.level_is_restored(m, 1)

    def test_one_that_is_gone_is_said_to_be_and_the_first_goes_on(self):
        m, works, paths = self.both_in_use()
        self.of_second(m, "gone")
        self.eventually_logged(m, f"GPU {self.names[1]} degraded", "is gone")
        eventually(lambda: m.outcome(paths[1], "performance_level") is None, "no level of no GPU")
        self.assertEqual(set(nices(works[1].pid).values()), {-10}, "the other levers stay")
        self.assert_the_first_is_well(m, paths[0])
        m.unregister(paths[0])
        self.level_is_restored(m, 0)
        self.of_second(m, "clear")
        self.eventually_logged(m, f"GPU {self.names[1]} works again")
        self.assertEqual((self.level(m, 0), self.level(m, 1)), ("auto", "auto"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
