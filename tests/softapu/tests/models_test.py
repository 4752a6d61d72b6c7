#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Debian's tools and runtime on every model that this Debian's ROCr knows."""

import json
import re
import subprocess
import unittest

from session_test import PATIENCE, PROGRAMS, RUN, SOURCE, run

MODELS = {path.stem: json.loads(path.read_text()) for path in (SOURCE / "models").iterdir()}
# The first release of ROCr in Debian that knows an ISA.
KNOWN_FROM = {
    "gfx902": (5, 2), "gfx90c": (5, 2), "gfx1030": (5, 2), "gfx1035": (5, 2),
    "gfx942": (6, 1), "gfx1103": (6, 1), "gfx1150": (6, 1), "gfx1151": (6, 1),
}
CHECKS = ("barriers-busy", "barriers-interrupt", "fill", "overlap", "dependencies", "copies",
          "many-signals", "create-destroy", "fork")
ROCR = run("dpkg-query", "--show", "--showformat=${source:Upstream-Version}", "libhsa-runtime64-1")


def is_known(model):
    release = tuple(int(part) for part in ROCR.split("+")[0].split(".")[:2])
    # No release after 5 makes queues where CPU and GPU are one node.
    until = (5, 99) if model["quirks"].get("merged_node") else (99,)
    return KNOWN_FROM[model["gfx"]["name"]] <= release <= until


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
