#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Debian's tools and runtime on every model that this Debian's ROCr knows."""

import json
import subprocess
import unittest

from session_test import PATIENCE, PROGRAMS, RUN, SOURCE, run

# ISA, CUs, marketing name, and the first release of ROCr in Debian that knows the ISA.
MODELS = {
    "rembrandt": ("gfx1035", 12, "AMD Radeon Graphics", (5, 2)),
    "renoir": ("gfx90c", 7, "AMD Radeon Graphics", (5, 2)),
    "strix_halo": ("gfx1151", 40, "AMD Radeon 8060S Graphics", (6, 1)),
}
CHECKS = ("barriers-busy", "barriers-interrupt", "fill", "overlap", "dependencies", "copies",
          "many-signals", "create-destroy", "fork")
ROCR = run("dpkg-query", "--show", "--showformat=${source:Upstream-Version}", "libhsa-runtime64-1")


def models(known=True):
    release = tuple(int(part) for part in ROCR.split("+")[0].split(".")[:2])
    return [name for name, facts in MODELS.items() if (release >= facts[3]) == known]


class Models(unittest.TestCase):
    def test_all_models_are_in_the_table(self):
        self.assertEqual(set(MODELS), {path.stem for path in (SOURCE / "models").iterdir()})

    def test_rocminfo_lists_them(self):
        for model in models():
            isa, units, marketing, _ = MODELS[model]
            with self.subTest(model=model):
                agent = run(RUN, "--model", model, "--", "rocminfo").split("Agent 2")[1]
                self.assertRegex(agent, rf"Name: +{isa}\s")
                self.assertRegex(agent, rf"Compute Unit: +{units}\s")
                self.assertRegex(agent, f"Marketing Name: +{marketing}")

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
                for word in (model, MODELS[model][0], f"ROCr {ROCR} "):
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
                for word in ("Performance Level: auto", "GPU use (%)", "Mhz *",
                             "Average Graphics Package Power (W)", "PCI Bus"):
                    self.assertIn(word, out)
                self.assertIn("End of ROCm SMI Log", out)

    def test_answers_in_json(self):
        for model in models():
            with self.subTest(model=model):
                facts = json.loads((SOURCE / "models" / f"{model}.json").read_text())
                answer = json.loads(self.rocm_smi(model, "--showmeminfo", "vram", "gtt",
                                                  "--showperflevel", "--json"))
                self.assertEqual(len(answer), 1, answer)
                card = next(iter(answer.values()))
                self.assertEqual(card["Performance Level"], "auto")
                self.assertEqual(card["VRAM Total Memory (B)"],
                                 str(facts["memory"]["vram_bytes"]))
                self.assertEqual(card["GTT Total Memory (B)"], str(facts["memory"]["gtt_bytes"]))


if __name__ == "__main__":
    unittest.main()
