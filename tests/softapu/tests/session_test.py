#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Debian's ROCr and rocm-smi on the software APU.

Durations come from device timestamps; host time only limits how long a condition is awaited.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = pathlib.Path(os.environ["SOFTAPU_BUILD_DIR"]).resolve()
RUN = BUILD / "softapu-run"
STAT = BUILD / "softapu-stat"
PROGRAMS = BUILD / "programs"
SOURCE = pathlib.Path(__file__).resolve().parent.parent
PATIENCE = 30
NOBODY = 65534


def run(*command, **options):
    """A command that must succeed, with its output."""
    options = {"capture_output": True, "text": True, "timeout": 4 * PATIENCE, **options}
    result = subprocess.run([str(part) for part in command], check=False, **options)
    if result.returncode != 0:
        raise AssertionError(f"{command}: {result.returncode}\n{result.stdout}\n{result.stderr}")
    return result.stdout


def eventually(condition, what):
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError(f"never: {what}")


ROCR = run("dpkg-query", "--show", "--showformat=${source:Upstream-Version}", "libhsa-runtime64-1")
ROCR_RELEASE = tuple(int(part) for part in ROCR.split("+")[0].split(".")[:2])


class Session:
    """A served session; use as a context manager."""

    def __init__(self, model="rembrandt", options=()):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="softapu-test-"))
        self.server = subprocess.Popen(
            [str(RUN), "--session", str(self.directory), "--serve", "--model", model,
             *options],
            stdout=subprocess.PIPE, text=True)
        assert self.server.stdout.readline().startswith("ready"), "not ready"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.terminate()
        self.server.wait(PATIENCE)
        self.server.stdout.close()
        shutil.rmtree(self.directory)

    def command(self, *command):
        return [str(RUN), "--join", str(self.directory), "--", *(str(part) for part in command)]

    def check(self, name, environment=None):
        return run(*self.command(PROGRAMS / "apu_check", name),
                   env={**os.environ, **(environment or {})})

    @contextlib.contextmanager
    def holder(self, prefix=(), command=None):
        """A program with a queue, and the process id it has."""
        command = command or [PROGRAMS / "apu_check", "hold"]
        process = subprocess.Popen([*prefix, *self.command(*command)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        try:
            line = process.stdout.readline()
            assert line.startswith("holding") or '"ready"' in line, line
            yield process
        finally:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()

    def stat(self, gpu=0):
        return json.loads(run(STAT, self.directory, str(gpu)))

    @property
    def device(self):
        return next((self.directory / "sys/bus/pci/drivers/amdgpu").glob("0000:*")).resolve()

    @property
    def level_file(self):
        return self.device / "power_dpm_force_performance_level"

    @property
    def proc(self):
        return self.directory / "sys/class/kfd/kfd/proc"

    def write_level(self, level):
        # As a plain file, the way a program without the preload libraries sees it.
        self.level_file.write_text(level)

    def set_level(self, level):
        self.write_level(level)
        eventually(lambda: self.stat()["level"] == level, f"level {level}")

    def kernel_us(self, environment=None):
        out = self.check("kernel-cost", environment)
        return int(out.split("kernel_us ")[1].split()[0])


class Tools(unittest.TestCase):
    def test_rocm_smi_reads_the_level(self):
        out = run(RUN, "--", "rocm-smi", "--showperflevel")
        self.assertIn("Performance Level: auto", out)

    def test_rocm_smi_reads_sensors(self):
        # Its status is 2, because it also asks for a gfx activity that APUs do not have.
        result = subprocess.run(
            [str(RUN), "--", "rocm-smi", "--showuse", "--showpower", "--showmeminfo", "vram", "gtt",
             "--json"], check=False, capture_output=True, text=True, timeout=PATIENCE)
        card = json.loads(result.stdout)["card0"]
        self.assertGreater(float(card["Average Graphics Package Power (W)"]), 0)
        self.assertEqual(card["VRAM Total Memory (B)"], str(512 << 20))

    @unittest.skipUnless(os.geteuid() == 0, "rocm-smi sets the level for root only")
    def test_rocm_smi_sets_the_level(self):
        with Session() as session:
            run(*session.command("rocm-smi", "--setperflevel", "high"))
            eventually(lambda: session.stat()["level"] == "high", "rocm-smi sets level high")

    @unittest.skipUnless(os.geteuid() == 0, "is nobody else already")
    def test_has_cpu_caches_where_the_machine_shows_none(self):
        # libhsakmt gives up on a CPU node without; many virtual machines have none
        out = run(RUN, "--", "sh", "-c",
                  "cat /sys/devices/system/node/node0/cpu0/cache/index0/type")
        self.assertEqual("Data\n", out)

    def test_works_as_nobody(self):
        with tempfile.TemporaryDirectory(prefix="softapu-nobody-") as directory:
            os.chmod(directory, 0o755)
            copy = pathlib.Path(directory) / "softapu"
            copy.mkdir()
            shutil.copy(RUN, copy)
            shutil.copy(BUILD / "libsoftapu-kfd.so", copy)
            shutil.copytree(BUILD / "models", copy / "models")
            temporary = pathlib.Path(directory) / "tmp"
            temporary.mkdir()
            os.chown(temporary, NOBODY, NOBODY)
            nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "env",
                      f"TMPDIR={temporary}"]
            out = run(*nobody, copy / "softapu-run", "--", "rocminfo", cwd=directory)
            self.assertIn("gfx1035", out)
            self.assertEqual(list(temporary.iterdir()), [])


class Launcher(unittest.TestCase):
    def test_passes_the_exit_code(self):
        result = subprocess.run([str(RUN), "--", "sh", "-c", "exit 7"], check=False)
        self.assertEqual(result.returncode, 7)

    def test_passes_the_signal_that_ended_the_command(self):
        result = subprocess.run([str(RUN), "--", "sh", "-c", "kill -USR1 $$"], check=False)
        self.assertEqual(result.returncode, -signal.SIGUSR1)

    def test_says_when_the_command_does_not_exist(self):
        result = subprocess.run([str(RUN), "--", "/nonexistent"], check=False, capture_output=True)
        self.assertEqual(result.returncode, 127)
        self.assertIn(b"/nonexistent", result.stderr)

    def test_says_when_the_model_does_not_exist(self):
        result = subprocess.run([str(RUN), "--model", "no-such", "--", "true"], check=False,
                                capture_output=True)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(b"no-such", result.stderr)

    def test_removes_its_directory_also_when_terminated(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number=number), tempfile.TemporaryDirectory() as directory:
                process = subprocess.Popen(
                    [str(RUN), "--", "sh", "-c", "echo up; exec sleep 1000"],
                    stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": directory})
                process.stdout.readline()
                process.send_signal(number)
                self.assertEqual(process.wait(PATIENCE), -number)
                process.stdout.close()
                self.assertEqual(os.listdir(directory), [])

    def test_refuses_a_directory_that_is_served_already(self):
        with Session() as session:
            result = subprocess.run([str(RUN), "--session", str(session.directory), "--", "true"],
                                    check=False, capture_output=True)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(str(session.directory).encode(), result.stderr)

    def test_refuses_to_join_what_is_not_served(self):
        result = subprocess.run([str(RUN), "--join", "/nonexistent", "--", "true"], check=False,
                                capture_output=True)
        self.assertNotEqual(result.returncode, 0)

    def test_prints_an_environment_that_works(self):
        with Session() as session:
            script = f'eval "export $({RUN} --join {session.directory} --print-env | tr "\\n" " ")"'
            out = run("sh", "-c", f"{script}; rocminfo")
            self.assertIn("gfx1035", out)

    def test_is_found_from_the_source_tree(self):
        self.assertIn("gfx1035", run(SOURCE / "softapu-run", "--", "rocminfo"))
        with tempfile.TemporaryDirectory() as clone:
            script = pathlib.Path(clone) / "tests/softapu/softapu-run"
            script.parent.mkdir(parents=True)
            shutil.copy(SOURCE / "softapu-run", script)
            environment = {k: v for k, v in os.environ.items() if k != "SOFTAPU_BUILD_DIR"}
            result = subprocess.run([str(script), "true"], check=False, capture_output=True,
                                    env=environment)
            self.assertEqual(result.returncode, 127)
            self.assertIn(b"not built", result.stderr)


class Programs(unittest.TestCase):
    def test_checks_pass_where_doorbells_must_be_polled(self):
        out = run(RUN, "--", PROGRAMS / "apu_check", "barriers-interrupt", "dependencies",
                  env={**os.environ, "SOFTAPU_NO_USERFAULTFD": "1"})
        self.assertIn("ok: dependencies", out)

    def test_a_mask_of_two_units_takes_six_times_as_long(self):
        with Session() as session:
            session.set_level("high")
            words = session.check("masks").split()
            masked, whole = int(words[1]), int(words[3])
            self.assertAlmostEqual(masked / whole, 6, delta=0.5)

    def test_the_decode_loop_reports(self):
        with Session() as session:
            process = subprocess.Popen(
                session.command(PROGRAMS / "decode_loop", "--rate", "200", "--report", "0.3"),
                stdout=subprocess.PIPE, text=True)
            ready = json.loads(process.stdout.readline())
            self.assertEqual(ready["pid"], process.pid)
            report = json.loads(process.stdout.readline())
            self.assertGreater(report["dispatch_latency_us"]["count"], 0)
            tasks = pathlib.Path(f"/proc/{process.pid}/task")
            before = len(list(tasks.iterdir()))
            process.send_signal(signal.SIGUSR1)
            eventually(lambda: len(list(tasks.iterdir())) == before + 1, "a thread more")
            process.terminate()
            rest = process.stdout.read().splitlines()
            process.stdout.close()
            self.assertEqual(process.wait(PATIENCE), 0)
            final = json.loads(rest[-1])
            self.assertEqual(final["event"], "final")
            self.assertIn("run_delay_ns", final["threads"][0])
            self.assertGreater(final["token_latency_us"]["p99"], 0)


class Device(unittest.TestCase):
    def test_the_level_is_felt_by_kernels(self):
        with Session() as session:
            session.set_level("high")
            fast = session.kernel_us()
            session.set_level("low")
            slow = session.kernel_us()
            # 400 and 2200 MHz.
            self.assertAlmostEqual(slow / fast, 5.5, delta=0.3)

    def test_the_level_moves_the_star(self):
        with Session() as session:
            for level, row in (("high", "2: 2200Mhz *"), ("low", "0: 400Mhz *")):
                session.set_level(level)
                eventually(lambda: row in (session.device / "pp_dpm_sclk").read_text(), row)
                eventually(lambda: session.level_file.read_text() == level + "\n", "newline")

    def test_garbage_in_the_level_file_is_replaced(self):
        with Session() as session:
            session.set_level("high")
            for garbage in ("ludicrous", "", "high low", "\0\0"):
                session.write_level(garbage)
                eventually(lambda: session.level_file.read_text() == "high\n", repr(garbage))
            self.assertEqual(session.stat()["level"], "high")

    def test_a_preloaded_writer_gets_einval_for_garbage(self):
        with Session() as session:
            name = "/" + str(session.level_file.relative_to(session.directory))
            program = (f"import os; fd = os.open('{name}', os.O_WRONLY); os.write(fd, b'low');\n"
                       "try: os.write(fd, b'ludicrous')\n"
                       "except OSError as e: print(e.errno)")
            out = run(*session.command(sys.executable, "-c", program))
            self.assertEqual(out.strip(), "22")
            eventually(lambda: session.stat()["level"] == "low", "low")

    def test_masks_and_priorities_are_recorded(self):
        with Session() as session, session.holder() as process:
            queues = [q for q in session.stat()["queues"] if q["pid"] == process.pid]
            chosen = [q for q in queues if q["mask"] == "0x3"]
            self.assertEqual(len(chosen), 1)
            # HSA's "high" is KFD's 15 up to ROCr 6.1, and 11 in 6.4.
            self.assertIn(chosen[0]["priority"], (3, 2))
            self.assertEqual(chosen[0]["retired"], chosen[0]["submitted"])

    def test_a_gpu_process_is_in_proc_as_long_as_it_lives(self):
        with Session() as session:
            with session.holder() as process:
                mine = session.proc / str(process.pid)
                queues = list((mine / "queues").iterdir())
                self.assertEqual(len(queues), len(session.stat()["queues"]))
                self.assertEqual((queues[0] / "type").read_text(), "0")
                gpu = (queues[0] / "gpuid").read_text()
                self.assertTrue((mine / f"vram_{gpu}").exists())
                self.assertTrue((mine / "pasid").read_text().strip().isdigit())
                seen = run(*session.command("ls", f"/sys/class/kfd/kfd/proc/{process.pid}/queues"))
                self.assertEqual(len(seen.split()), len(queues))
                process.stdin.close()
                self.assertEqual(process.wait(PATIENCE), 0)
                # Where nothing closed the device before, it is the supervisor that sees the end.
                eventually(lambda: list(session.proc.iterdir()) == [], "proc is empty")
                process.stdin = open(os.devnull, "wb")

    def test_a_killed_client_leaves_nothing(self):
        with Session() as session:
            loop = [PROGRAMS / "decode_loop", "--rate", "0", "--kernel", "work_1ms"]
            with session.holder(command=loop) as process:
                eventually(lambda: session.stat()["kernels_in_flight"] > 0, "kernels run")
                process.kill()
                process.wait()
                eventually(lambda: session.stat()["clients"] == [], "the client is reaped")
                stat = session.stat()
                self.assertEqual((stat["queues"], stat["kernels_in_flight"]), ([], 0))
                self.assertEqual(stat["clients_reaped"], 1)
                eventually(lambda: list(session.proc.iterdir()) == [], "proc is empty")
            session.check("barriers-busy")

    def test_two_processes_share_the_device(self):
        with Session() as session, session.holder() as one, session.holder() as two:
            self.assertEqual({q["pid"] for q in session.stat()["queues"]}, {one.pid, two.pid})
            self.assertEqual({p.name for p in session.proc.iterdir()}, {str(one.pid), str(two.pid)})


class Contention(unittest.TestCase):
    """Times are the device's, of 120 workgroups of 100 us (kernel-cost)."""

    @contextlib.contextmanager
    def hog(self, session, kernel, mask="0:0-11"):
        workgroups = {"work_10us": "1000000", "work_1ms": "12000"}[kernel]
        loop = ["env", f"HSA_CU_MASK={mask}", PROGRAMS / "decode_loop", "--rate", "0", "--kernel",
                kernel, "--workgroups", workgroups, "--kernels-per-token", "1"]
        with session.holder(command=loop):
            eventually(lambda: session.stat()["kernels_in_flight"] > 0, "the hog runs")
            yield

    @contextlib.contextmanager
    def device(self):
        with Session() as session:
            session.set_level("high")
            yield session, session.kernel_us()

    def test_the_same_units_are_shared(self):
        with self.device() as (session, alone), self.hog(session, "work_10us"):
            self.assertAlmostEqual(session.kernel_us() / alone, 2, delta=0.06)

    def test_nothing_starts_on_full_units_before_a_workgroup_has_ended(self):
        with self.device() as (session, alone), self.hog(session, "work_1ms"):
            self.assertAlmostEqual(session.kernel_us() - 2 * alone, 1000, delta=60)

    def test_disjoint_masks_do_not_slow_each_other(self):
        with self.device() as (session, _):
            mask = {"HSA_CU_MASK": "0:6-11"}
            alone = session.kernel_us(mask)
            with self.hog(session, "work_1ms", "0:0-5"):
                self.assertAlmostEqual(session.kernel_us(mask) / alone, 1, delta=0.03)

    def test_a_split_of_units_shows_in_throughput(self):
        with self.device() as (session, alone), self.hog(session, "work_1ms", "0:0-3"):
            self.assertAlmostEqual(session.kernel_us({"HSA_CU_MASK": "0:4-11"}) / alone, 12 / 8,
                                   delta=0.05)
            self.assertAlmostEqual(session.kernel_us({"HSA_CU_MASK": "0:8-11"}) / alone, 12 / 4,
                                   delta=0.1)


class Sharing(unittest.TestCase):
    @unittest.skipUnless(os.geteuid() == 0, "needs two users")
    def test_a_client_of_another_user_joins(self):
        with Session() as session, tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o755)
            copy = pathlib.Path(directory) / "softapu"
            shutil.copytree(BUILD, copy, ignore=shutil.ignore_patterns("CMakeFiles", "*.o"))
            nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
            out = run(*nobody, copy / "softapu-run", "--join", session.directory, "--",
                      copy / "programs/apu_check", "barriers-interrupt", "fill", cwd="/")
            self.assertIn("ok: fill", out)
            self.assertEqual(session.stat()["clients_seen"], 1)

    def test_readings_follow_the_load(self):
        with Session() as session:
            loop = [PROGRAMS / "decode_loop", "--rate", "0", "--kernel", "work_1ms"]
            busy = session.device / "gpu_busy_percent"
            used = session.device / "mem_info_gtt_used"
            before = int(used.read_text())
            with session.holder(command=loop):
                eventually(lambda: int(busy.read_text()) > 50, "busy")
                eventually(lambda: int(used.read_text()) != before, "memory used")
                sclk = session.device / "pp_dpm_sclk"
                eventually(lambda: "2: 2200Mhz *" in sclk.read_text(), "auto ramps up")
            eventually(lambda: int(used.read_text()) == before, "memory is given back")

    def test_readings_rest_while_nothing_moves_and_move_again_with_work(self):
        def rests():
            return session.stat()["readings_rest"]
        with Session() as session, session.holder():
            busy = session.device / "gpu_busy_percent"
            eventually(rests, "the readings rest")
            session.set_level("high")
            eventually(lambda: "2: 2200Mhz *" in (session.device / "pp_dpm_sclk").read_text(),
                       "the clock is shown")
            eventually(rests, "the readings rest")
            with session.holder(command=[PROGRAMS / "decode_loop", "--kernel", "work_1ms"]):
                eventually(lambda: int(busy.read_text()) > 0, "busy")
                self.assertFalse(rests())
            eventually(lambda: int(busy.read_text()) == 0, "not busy")
            eventually(rests, "the readings rest")

    def test_an_idle_client_does_not_wake_up(self):
        with Session() as session, session.holder() as process:
            def wakeups():
                return [c["wakeups"] for c in session.stat()["clients"] if c["pid"] == process.pid]
            eventually(lambda: wakeups() == (time.sleep(0.3), wakeups())[1], "it falls asleep")
            before = wakeups()
            time.sleep(1)
            self.assertEqual(wakeups(), before)


if __name__ == "__main__":
    unittest.main()
