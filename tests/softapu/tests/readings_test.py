#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Power, heat and the files that show them, with real programs as the load."""

import errno
import json
import struct
import subprocess
import sys
import unittest

from session_test import PATIENCE, PROGRAMS, RUN, SOURCE, Session, eventually, run

# Busy for several of the governor's time constants, however long the program waits for a CPU after.
BUSY = [PROGRAMS / "decode_loop", "--rate", "0", "--kernel", "work_1ms",
        "--kernels-per-token", "100"]
MODELS = sorted(path.stem for path in (SOURCE / "models").iterdir())
# Needed for all that reads no clock out of the file: the ISAs that this Debian's ROCr knows.
FORMATS = {"rembrandt": (120, 2, 1), "renoir": (128, 2, 2)}


def metrics(session):
    return (session.device / "gpu_metrics").read_bytes()


class Power(unittest.TestCase):
    def test_the_cpus_load_takes_clock_from_kernels(self):
        with Session(options=("--cpu-load", "1")) as session, session.holder(command=BUSY):
            # The kernels' own program may have to wait for a CPU of this machine meanwhile: the
            # readings of one moment at which it did not.
            def throttled():
                state = session.stat()
                return (state["throttled_by_power"] and state["sclk_mhz"] < 2200
                        and abs(state["power_w"] - 35) < 0.5)

            eventually(throttled, "all of the power, and less than the highest clock")

    def test_without_it_kernels_have_all_the_clock(self):
        with Session() as session, session.holder(command=BUSY):
            eventually(lambda: session.stat()["sclk_mhz"] == 2200, "the highest clock")
            self.assertFalse(session.stat()["throttled_by_power"])
            eventually(lambda: session.stat()["temperature_c"] > 45, "it warms up")

    def test_a_load_that_is_no_number_is_refused(self):
        result = subprocess.run([str(RUN), "--cpu-load", "lots", "--", "true"], check=False,
                                capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 126)
        self.assertIn("--cpu-load", result.stderr)


class Metrics(unittest.TestCase):
    def test_have_the_format_of_the_generation_and_move(self):
        for model, (size, major, minor) in FORMATS.items():
            with self.subTest(model=model), Session(model) as session:
                first = metrics(session)
                self.assertEqual(struct.unpack_from("<HBB", first), (size, major, minor))
                self.assertEqual(len(first), size)
                with session.holder(command=BUSY):
                    # current_gfxclk, and average_socket_power in milliwatts
                    eventually(lambda s=session: struct.unpack_from("<H", metrics(s), 76)[0]
                               > struct.unpack_from("<H", first, 76)[0], "the clock")
                    eventually(lambda s=session: struct.unpack_from("<H", metrics(s), 40)[0]
                               > struct.unpack_from("<H", first, 40)[0], "the power")

    def test_are_missing_where_the_driver_has_none(self):
        facts = {m: json.loads((SOURCE / "models" / f"{m}.json").read_text()) for m in MODELS}
        none = [m for m in MODELS
                if facts[m].get("sensors", {}).get("gpu_metrics") == "none"]
        self.assertIn("raven", none)


class Traps(unittest.TestCase):
    def shown(self, trap, name, statuses="[02]"):
        with Session(options=("--trap", trap)) as session:
            out = run(*session.command("sh", "-c", "rocm-smi -a; echo status $?"))
            self.assertRegex(out, f"status {statuses}\n")
            file = session.device / name
            return file.read_bytes() if file.exists() else None

    def test_trap_two_stars(self):
        self.assertEqual(self.shown("two-stars", "pp_dpm_mclk").count(b"*"), 2)

    def test_trap_no_star(self):
        self.assertEqual(self.shown("no-star", "pp_dpm_sclk").count(b"*"), 0)

    def test_trap_bare_row(self):
        # rocm-smi-lib aborts at such a row (status 134): the daemon's helper must not read clocks
        # through it
        self.assertRegex(self.shown("bare-row", "pp_dpm_sclk", "(0|2|134)"), rb"\n   \d+Mhz \*\n$")

    def test_trap_equal_rows(self):
        rows = self.shown("equal-rows", "pp_dpm_mclk").split()
        self.assertEqual(len(set(row for row in rows if row.endswith(b"Mhz"))), 1)

    def test_trap_nul_bytes(self):
        self.assertGreater(self.shown("nul-bytes", "pp_od_clk_voltage").count(0), 100)

    def test_trap_missing_files(self):
        self.assertIsNone(self.shown("missing-files", "gpu_busy_percent"))

    def test_trap_unknown_metrics(self):
        self.assertEqual(set(self.shown("unknown-metrics", "gpu_metrics")[4:]), {0xff})

    def test_one_that_does_not_exist_is_refused(self):
        result = subprocess.run([str(RUN), "--trap", "pitfall", "--", "true"], check=False,
                                capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 126)
        self.assertIn('"pitfall"', result.stderr)


class Levels(unittest.TestCase):
    def test_levels_are_those_of_the_generation(self):
        program = ("import errno, os, sys\n"
                   "fd = os.open(sys.argv[1], os.O_WRONLY)\n"
                   "for level in sys.argv[2:]:\n"
                   "    try: os.write(fd, level.encode()); print(level, 'ok')\n"
                   "    except OSError as e: print(level, errno.errorcode[e.errno])\n")
        with Session("renoir") as session:
            name = "/" + str(session.level_file.relative_to(session.directory))
            out = run(*session.command(sys.executable, "-c", program, name, "profile_exit",
                                       "perf_determinism", "profile_peak", "auto"))
            refused = errno.errorcode[errno.EINVAL]
            self.assertEqual(out.split(), ["profile_exit", refused, "perf_determinism", refused,
                                           "profile_peak", "ok", "auto", "ok"])


if __name__ == "__main__":
    unittest.main()
