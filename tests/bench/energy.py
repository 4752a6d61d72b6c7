# SPDX-License-Identifier: MIT
"""Modelled joules of the software APU, from the power that its hwmon shows: the clock, the load and
the package's fixed part as tests/softapu/FIDELITY.md says, nothing of silicon. The model charges an
idle GPU the same at every level: what a held level costs, it costs at work."""

import glob
import json
import os
import statistics
import subprocess
import threading
import time

import stage

EVERY_S, ROUNDS_OF_WORK = 0.05, 2
LEVELS = ("auto", "held high", "managed")
DECODE = ("--rate", "20")


class Meter(threading.Thread):
    """Integrates the modelled power until end()."""

    def __init__(self, machine):
        super().__init__(daemon=True)
        device = level_file(machine).rsplit("/", 1)[0]
        found = glob.glob(f"{device}/hwmon/hwmon*/power1_average")
        if not found:
            raise stage.BrokenRun(f"the model shows no power below {device}")
        self.file, self.level_file = found[0], level_file(machine)
        self.joules, self.high, self.seconds = 0.0, 0.0, 0.0
        self.ended = threading.Event()

    def run(self):
        last = time.monotonic()
        while not self.ended.wait(EVERY_S):
            now = time.monotonic()
            self.joules += int(read(self.file)) / 1e6 * (now - last)
            self.high += (now - last) * (read(self.level_file) == "high")
            self.seconds += now - last
            last = now

    def end(self):
        self.ended.set()
        self.join()
        return {"joules": self.joules, "high_share": self.high / self.seconds}


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def level_file(machine):
    return glob.glob(f"{machine.sysfs}/bus/pci/drivers/amdgpu/0000:*/"
                     "power_dpm_force_performance_level")[0]


def work(machine, harness, seconds, profile):
    """A program that decodes for so long; what it says at its end."""
    decode = os.path.join(os.environ["APUSCHED_BUILD_DIR"], "tests", "softapu", "workloads", "decode")
    run = [harness.CTL, f"--bus={machine.address}", "run", "--profile", profile, "--"]
    process = machine.spawn(
        [harness.SOFTAPU, "--join", machine.apu, "--", *(run if profile else ()), decode, *DECODE,
         "--duration", str(seconds)], stdout=subprocess.PIPE, text=True)
    out, _ = process.communicate(timeout=seconds + harness.DEADLINE_S)
    if process.returncode != 0:
        raise stage.BrokenRun(f"decode ended with {process.returncode}")
    return json.loads(out.splitlines()[-1])


def once(way, seconds):
    """Work and nothing, twice, each for `seconds`."""
    machine = stage.make_stage(config="", with_gpu=True, with_systemd=False)
    import harness

    try:
        agent = os.path.join(os.environ["APUSCHED_BUILD_DIR"], "client", "agent",
                             "libapusched-agent.so")
        machine.start_daemon("--agent-library", agent)
        if way == "held high":
            with open(level_file(machine), "w", encoding="ascii") as file:
                file.write("high")
        meter = Meter(machine)
        meter.start()
        finals = []
        for _ in range(ROUNDS_OF_WORK):
            finals.append(work(machine, harness, seconds,
                               "llm-interactive" if way == "managed" else None))
            time.sleep(seconds)
        latency = [final["round_latency_us"] for final in finals]
        return {**meter.end(), "rounds": sum(final["rounds"] for final in finals),
                **{key: statistics.median(one[key] for one in latency) for key in ("p50", "p99")}}
    finally:
        machine.close()


def rows(seconds):
    results = {way: once(way, seconds) for way in LEVELS}
    made = [stage.row(f"level {way}", {
        "modelled_joules": round(run["joules"], 1), "high_share": round(run["high_share"], 2),
        "rounds": run["rounds"], "round_p50_us": round(run["p50"]),
        "round_p99_us": round(run["p99"])}) for way, run in results.items()]
    ratio = results["managed"]["joules"] / results["held high"]["joules"]
    return [*made, stage.row("managed ÷ held high, modelled joules", {}, 1.0, ratio)]
