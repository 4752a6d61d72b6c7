# SPDX-License-Identifier: MIT
"""What the benchmarks share: a private bus with everything on it, and the printing of results.

A result is a list of rows. A row has a name, figures, and where there is a goal the ratio or
figure it limits and whether that is met. A missed goal is reported, never an exit code."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

CONFIG = """profiles:
  bench:
    class: critical
    nice: -10
  bench-units:
    class: critical
    nice: -10
    cpu_weight: 1000
    io_weight: 500
  bench-session:
    class: critical
    autogroup_nice: -10
"""


class BrokenRun(Exception):
    """The run itself failed: nothing was measured."""


def arguments(description, **defaults):
    """Command line of a benchmark: --build-dir, --json, and one --NAME N per default."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--build-dir", default=os.environ.get("APUSCHED_BUILD_DIR"),
        help="build tree to measure; default: $APUSCHED_BUILD_DIR",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=value, help=f"default: {value}")
    chosen = parser.parse_args()
    if not chosen.build_dir:
        parser.error("say which build to measure: --build-dir or APUSCHED_BUILD_DIR")
    os.environ["APUSCHED_BUILD_DIR"] = os.path.abspath(chosen.build_dir)
    return chosen


def program(name):
    return os.path.join(os.environ["APUSCHED_BUILD_DIR"], "tests", "bench", name)


def make_stage(config=CONFIG, with_gpu=False, **options):
    """A private bus, optionally with a mocked systemd and the software APU; the integration tests'
    own machine, with the configuration and log level of a real installation. APUSCHED_BUILD_DIR
    must be set."""
    sys.path.insert(0, os.path.join(HERE, "..", "integration"))
    import harness

    # The ledger is on a tmpfs, as it is below /run: /tmp may be a disk.
    tempfile.tempdir = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

    class Stage(harness.Machine):
        def __init__(self):
            super().__init__(with_gpu=with_gpu, **options)
            helper = "gpu:\n  helper_user: nobody\n" if with_gpu else ""
            self.config = self.write("apuschedd.yaml", config + helper)

        def daemon_command(self, *extra):
            return [
                harness.DAEMON, "--config", self.config, f"--bus={self.address}",
                "--sysfs-root", self.sysfs, "--runtime-dir", f"{self.dir}/run",
                "--systemd-control-dir", self.control_dir,
                *(("--gpu-helper", self.helper, "--gpu-write", self.writer) if with_gpu else ()),
                *extra,
            ]

        def start_echo(self):
            return self.start_service([program("bench_echo_service"), self.address],
                                      "org.apusched.Bench")

        def start_service(self, command, name, env=None):
            log = open(os.path.join(self.dir, f"{name}.log"), "a", encoding="utf-8")
            with log:
                process = self.spawn(command, env=dict(os.environ, **(env or {})), stdout=log,
                                     stderr=log, cwd=self.dir)
            bus = self.connection()
            harness.eventually(
                lambda: bus.name_has_owner(name) or process.poll() is not None, name
            )
            if process.poll() is not None:
                raise BrokenRun(f"{command[0]} ended with {process.returncode}")
            return process

        def start_gamemoded(self):
            """With the renice that the bench profile applies, and nothing else that costs."""
            self.write("gamemode.ini", "[general]\nrenice=10\nioprio=off\nsoftrealtime=off\n"
                                       "inhibit_screensaver=0\n")
            env = {"DBUS_SESSION_BUS_ADDRESS": self.address, "XDG_CONFIG_HOME": self.dir,
                   "HOME": self.dir}
            return self.start_service(["gamemoded"], "com.feralinteractive.GameMode", env)

        def start_idle_process(self, threads=2):
            process = self.spawn([program("bench_idle_process"), str(threads)],
                                 stdout=subprocess.PIPE, text=True)
            if process.stdout.readline() != "ready\n":
                raise BrokenRun("bench_idle_process did not start")
            return process

    return Stage()


def repetitions(command):
    """Runs a measuring client; its repetitions, one dictionary each."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise BrokenRun(result.stderr.strip() or f"{command[0]} ended with {result.returncode}")
    return [json.loads(line) for line in result.stdout.splitlines()]


def median_of(runs, name, figure):
    return statistics.median(run[name][figure] for run in runs)


def ratio_of(runs, name, floor, figure):
    """Median of the ratios within each repetition."""
    return statistics.median(run[name][figure] / run[floor][figure] for run in runs)


def row(name, figures, goal=None, value=None, unit=""):
    """`goal` is the largest `value` that meets it."""
    made = {"name": name, **figures}
    if goal is not None:
        made.update(goal=goal, value=value, unit=unit, met=value <= goal)
    return made


def table(title, rows):
    print(title)
    for made in rows:
        if "skipped" in made:
            print(f"  {made['name']:<44} skipped: {made['skipped']}")
            continue
        figures = "  ".join(
            f"{key} {value:g}" if isinstance(value, (int, float)) else f"{key} {value}"
            for key, value in made.items()
            if key not in ("name", "goal", "value", "unit", "met", "section")
        )
        verdict = ""
        if "goal" in made:
            verdict = (f"  {made['value']:.3g}{made['unit']} of at most {made['goal']:g}"
                       f"{made['unit']}: {'met' if made['met'] else 'MISSED'}")
        print(f"  {made['name']:<44} {figures}{verdict}")


def report(benchmark, sections, as_json):
    load = os.getloadavg()[0]
    if as_json:
        print(json.dumps({"benchmark": benchmark, "load_average": load, "cpus": os.cpu_count(),
                          "sections": sections}, indent=1))
        return
    for title, rows in sections.items():
        table(title, rows)
    print(f"({os.cpu_count()} CPUs, load average at the end {load:.1f})")


def run(main):
    try:
        main()
    except BrokenRun as broken:
        print(f"broken run: {broken}", file=sys.stderr)
        sys.exit(1)
