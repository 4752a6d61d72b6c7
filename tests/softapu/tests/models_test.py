#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Debian's tools and runtime on every model that this Debian's ROCr knows."""

import json
import re
import subprocess
import unittest

from session_test import (
    PATIENCE, PROGRAMS, ROCR, ROCR_RELEASE, RUN, SOURCE, Session, eventually, run,
)

ALL = {path.stem: json.loads(path.read_text()) for path in (SOURCE / "models").iterdir()}
MODELS = {name: facts for name, facts in ALL.items() if "machine" not in facts}
# Files that put several together.
MACHINES = {name: facts["machine"] for name, facts in ALL.items() if "machine" in facts}
# The first release of ROCr in Debian that knows an ISA.
KNOWN_FROM = {
    "gfx902": (5, 2), "gfx90c": (5, 2), "gfx1030": (5, 2), "gfx1035": (5, 2),
    "gfx942": (6, 1), "gfx1103": (6, 1), "gfx1150": (6, 1), "gfx1151": (6, 1),
}
CHECKS = ("barriers-busy", "barriers-interrupt", "fill", "overlap", "dependencies", "copies",
          "many-signals", "create-destroy", "fork")


def is_known(model):
    # No release after 5 makes queues where CPU and GPU are one node.
    until = (5, 99) if model["quirks"].get("merged_node") else (99,)
    return KNOWN_FROM[model["gfx"]["name"]] <= ROCR_RELEASE <= until


def models(known=True):
    return [name for name, model in sorted(MODELS.items()) if is_known(model) == known]


class Models(unittest.TestCase):
    def test_rocminfo_lists_them(self):
        for model in models():
            facts = MODELS[model]
            with self.subTest(model=model):
                agent = run(RUN, "--model", model, "--", "rocminfo").split("Agent 2")[1]
                self.assertRegex(agent, rf"Name: +{facts['gfx']['name']}\s")
                self.assertRegex(agent, rf"Compute Unit: +{facts['shader']['compute_units']}\s")
                # A merged node has one name, and libhsakmt takes the CPU's.
                if not facts["quirks"].get("merged_node"):
                    self.assertRegex(agent,
                                     f"Marketing Name: +{re.escape(facts['marketing_name'])}")

    def test_checks_pass_on_them(self):
        for model in models():
            for check in CHECKS:
                with self.subTest(model=model, check=check):
                    out = run(RUN, "--model", model, "--", PROGRAMS / "apu_check", check)
                    self.assertIn(f"ok: {check}", out)

    def test_one_that_rocr_does_not_know_is_refused_in_a_sentence(self):
        for model in models(known=False):
            with self.subTest(model=model):
                result = subprocess.run([str(RUN), "--model", model, "--", "true"], check=False,
                                        capture_output=True, text=True, timeout=PATIENCE)
                self.assertEqual(result.returncode, 126)
                for word in (model, MODELS[model]["gfx"]["name"], f"ROCr {ROCR} "):
                    self.assertIn(word, result.stderr)
        for model in models():
            run(RUN, "--model", model, "--", "true")


class Machines(unittest.TestCase):
    def test_rocminfo_lists_every_gpu(self):
        self.assertEqual(set(MACHINES), {"apu_and_dgpu", "two_apus"})
        for machine, gpus in MACHINES.items():
            with self.subTest(machine=machine):
                agents = run(RUN, "--model", machine, "--", "rocminfo").split("Agent ")[2:]
                names = [MODELS[gpu["model"]]["gfx"]["name"] for gpu in gpus]
                self.assertEqual([re.search(r"Name: +(gfx\w+)", a)[1] for a in agents], names)

    def test_programs_use_the_gpu_that_they_choose(self):
        for machine, gpus in MACHINES.items():
            for number in range(len(gpus)):
                with self.subTest(machine=machine, gpu=number), Session(machine) as session:
                    chosen = {"ROCR_VISIBLE_DEVICES": str(number)}
                    for check in ("barriers-interrupt", "fill", "copies"):
                        self.assertIn("ok: ", session.check(check, chosen))
                    busy = [session.stat(gpu)["busy_ns"] > 0 for gpu in range(len(gpus))]
                    self.assertEqual(busy, [gpu == number for gpu in range(len(gpus))])

    def test_a_process_shows_the_queues_of_each_of_its_gpus(self):
        with Session("two_apus") as session:
            environment = ["env", "ROCR_VISIBLE_DEVICES=1"]
            with session.holder(prefix=environment) as process:
                own = session.proc / str(process.pid)
                ids = {(queue / "gpuid").read_text() for queue in (own / "queues").iterdir()}
                self.assertEqual(ids, {"19426"})
                self.assertTrue((own / "vram_19425").exists())
                self.assertTrue((own / "vram_19426").exists())
            eventually(lambda: not own.exists(), "it is gone")
            self.assertEqual([session.stat(gpu)["clients"] for gpu in (0, 1)], [[], []])

    def test_each_has_its_own_level(self):
        with Session("two_apus") as session:
            devices = sorted((session.directory / "sys/bus/pci/drivers/amdgpu").glob("0000:*"))
            (devices[1] / "power_dpm_force_performance_level").write_text("high")
            eventually(lambda: session.stat(1)["level"] == "high", "the level of the second")
            self.assertEqual(session.stat(0)["level"], "auto")

    def test_rocm_smi_lists_every_gpu(self):
        for machine, gpus in MACHINES.items():
            with self.subTest(machine=machine):
                answer = json.loads(RocmSmi.rocm_smi(machine, "--showperflevel", "--json"))
                self.assertEqual(len(answer), len(gpus))


class RocmSmi(unittest.TestCase):
    @staticmethod
    def rocm_smi(model, *arguments):
        # Its status is 2 where it asked for something that an APU does not have.
        result = subprocess.run([str(RUN), "--model", model, "--", "rocm-smi", *arguments],
                                check=False, capture_output=True, text=True, timeout=PATIENCE)
        if result.returncode not in (0, 2):
            raise AssertionError(f"{result.returncode}\n{result.stdout}\n{result.stderr}")
        return result.stdout

    def test_shows_all_it_knows(self):
        for model in models():
            with self.subTest(model=model):
                out = self.rocm_smi(model, "-a")
                words = ["Performance Level: auto", "GPU use (%)", "Mhz *", "PCI Bus"]
                if MODELS[model]["sensors"]["power_file"]:
                    words.append(" Graphics Package Power (W)")  # "Average" or "Current Socket"
                for word in words:
                    self.assertIn(word, out)
                self.assertIn("End of ROCm SMI Log", out)

    def test_answers_in_json(self):
        for model in models():
            with self.subTest(model=model):
                memory = MODELS[model]["memory"]
                answer = json.loads(self.rocm_smi(model, "--showmeminfo", "vram", "gtt",
                                                  "--showperflevel", "--json"))
                self.assertEqual(len(answer), 1, answer)
                card = next(iter(answer.values()))
                self.assertEqual(card["Performance Level"], "auto")
                # From rocm-smi 6 on it is KFD's pool where there is no VRAM.
                self.assertIn(int(card["VRAM Total Memory (B)"]),
                              (memory["vram_bytes"], memory["kfd_pool_bytes"]))
                self.assertEqual(card["GTT Total Memory (B)"], str(memory["gtt_bytes"]))


if __name__ == "__main__":
    unittest.main()
