#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The load programs run through ROCr on the software APU and tell what they felt."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["SOFTAPU_BUILD_DIR"]).resolve()
RUN = BUILD / "softapu-run"
PATIENCE = 60
NAMES = ("decode", "prefill", "vision", "hog")
LATENCIES = ("dispatch_latency_us", "completion_latency_us", "round_latency_us")
# Light enough for a slow machine.
LIGHT = ("--kernels", "2", "--workgroups", "6", "--workgroup-us", "10")


class Workloads(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.session = tempfile.mkdtemp(prefix="softapu-workloads-")
        cls.server = subprocess.Popen([str(RUN), "--session", cls.session, "--serve"],
                                      stdout=subprocess.PIPE, text=True)
        assert cls.server.stdout.readline().startswith("ready"), "not ready"

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.wait(PATIENCE)
        cls.server.stdout.close()
        shutil.rmtree(cls.session)

    def command(self, name, *arguments):
        program = BUILD / "workloads" / name
        return [str(RUN), "--join", self.session, "--", str(program), *arguments]

    @contextlib.contextmanager
    def running(self, name, *arguments):
        process = subprocess.Popen(self.command(name, *arguments), stdout=subprocess.PIPE,
                                   text=True)
        try:
            ready = json.loads(process.stdout.readline())
            self.assertEqual((ready["event"], ready["workload"], ready["pid"]),
                             ("ready", name, process.pid))
            yield process
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def final(self, process, name):
        self.assertEqual(process.wait(PATIENCE), 0)
        lines = process.stdout.read().splitlines()
        self.assertEqual(len(lines), 1)
        report = json.loads(lines[0])
        self.assertEqual((report["event"], report["workload"]), ("final", name))
        return report

    def test_all_of_them_tell_their_latencies_after_their_duration(self):
        for name in NAMES:
            with self.subTest(name=name), \
                    self.running(name, *LIGHT, "--duration", "0.5") as process:
                report = self.final(process, name)
                self.assertGreater(report["rounds"], 0)
                self.assertEqual(report["kernels"], 2 * report["rounds"])
                self.assertGreaterEqual(report["missed_periods"], 0)
                for latency in LATENCIES:
                    values = report[latency]
                    self.assertEqual(values["count"], report["rounds"])
                    order = [values[key] for key in ("p50", "p90", "p99", "p99.9", "max")]
                    self.assertEqual(order, sorted(order))
                    self.assertGreaterEqual(order[0], 0)

    def test_all_of_them_end_well_when_told_to(self):
        for name in NAMES:
            for number in (signal.SIGTERM, signal.SIGINT):
                with self.subTest(name=name, number=number), \
                        self.running(name, *LIGHT, "--wait", "busy") as process:
                    process.send_signal(number)
                    self.assertEqual(self.final(process, name)["wait"], "busy")

    def test_a_round_takes_at_least_its_kernels(self):
        # 24 workgroups of 1 ms on 12 units: 2 ms at the reference clock, three times over.
        with self.running("hog", "--kernels", "3", "--workgroups", "24", "--workgroup-us", "1000",
                          "--duration", "0.5") as process:
            self.assertGreaterEqual(self.final(process, "hog")["round_latency_us"]["p50"], 6000)

    def test_periods_that_pass_while_a_round_is_under_way_are_missed(self):
        # 12 workgroups of 50 ms on 12 units, every 10 ms.
        with self.running("decode", "--kernels", "1", "--workgroups", "12", "--workgroup-us",
                          "50000", "--rate", "100", "--duration", "0.6") as process:
            report = self.final(process, "decode")
            self.assertGreaterEqual(report["missed_periods"], 3 * (report["rounds"] - 1))

    def test_what_is_wrong_is_named(self):
        for arguments, word in ((("--rate", "-1"), "--rate"), (("--wait", "sleepy"), "--wait"),
                                (("--kernels", "0"), "--kernels"), (("--bogus",), "--bogus"),
                                (("--workgroup-us", "soon"), "--workgroup-us"),
                                (("--kernel-directory", "/nonexistent"), "/nonexistent")):
            for name in NAMES:
                with self.subTest(name=name, arguments=arguments):
                    result = subprocess.run([str(BUILD / "workloads" / name), *arguments],
                                            capture_output=True, text=True, timeout=PATIENCE,
                                            check=False)
                    self.assertEqual(result.returncode, 2)
                    self.assertIn(word, result.stderr)

    def test_a_machine_without_a_gpu_is_an_error(self):
        result = subprocess.run([str(BUILD / "workloads/decode"), "--duration", "0.1"],
                                capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertNotEqual(result.stderr, "")


if __name__ == "__main__":
    unittest.main()
