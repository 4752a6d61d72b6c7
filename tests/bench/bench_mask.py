#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Time from the D-Bus call to the CU mask in force on the software APU.

Two programs dispatch, each started by `apuschedctl run`; one is registered and released in turns, and
the mask of both follows. Seen by asking softapu-stat again and again: what one such look takes is
given too, because nothing faster can be seen."""

import json
import os
import statistics
import subprocess
import time

import stage

PROFILES = """profiles:
  server: {class: critical, cu_weight: 200, cu_exclusive: true}
  bulk: {class: background, cu_weight: 100}
"""
PATIENCE_S = 30


class Looks:
    """How many CUs the queues of two programs may use, as the device has it."""

    def __init__(self, build, apu, pids):
        self.command = [os.path.join(build, "tests", "softapu", "softapu-stat"), apu]
        self.pids, self.times = pids, []

    def cus(self):
        began = time.monotonic()
        out = subprocess.run(self.command, capture_output=True, text=True, check=True).stdout
        self.times.append(time.monotonic() - began)
        newest = {}
        for queue in json.loads(out)["queues"]:
            if queue["id"] >= newest.get(queue["pid"], (0, ""))[0]:
                newest[queue["pid"]] = (queue["id"], queue["mask"])
        return [bin(int(newest[pid][1], 16)).count("1") for pid in self.pids]

    def until(self, wanted):
        began = time.monotonic()
        while self.cus() != wanted:
            if time.monotonic() - began > PATIENCE_S:
                raise stage.BrokenRun(f"the masks never became {wanted}: {self.cus()}")
        return time.monotonic() - began


def start(machine, harness, profile):
    command = [harness.SOFTAPU, "--join", machine.apu, "--", harness.CTL, f"--bus={machine.address}",
               "run", "--profile", profile, "--", harness.DECODE, "--rate", "50"]
    process = machine.spawn(command, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    return process


def measure(machine, harness, rounds):
    build = os.environ["APUSCHED_BUILD_DIR"]
    server, bulk = (start(machine, harness, name) for name in ("server", "bulk"))
    looks = Looks(build, machine.apu, [server.pid, bulk.pid])
    looks.until([8, 4])
    paths = {int(properties["Pid"]): path
             for path, properties in machine.call("ListProcesses").items()}
    path, given, taken = paths[bulk.pid], [], []
    for _ in range(rounds):
        machine.unregister(path)
        taken.append(looks.until([12, 12]))
        # A queue's mask changes at most ten times a second.
        time.sleep(0.2)
        path = machine.register(bulk.pid, "bulk")
        given.append(looks.until([8, 4]))
        time.sleep(0.2)
    return looks, given, taken


def figures(seconds):
    return {"p50_ms": round(statistics.median(seconds) * 1e3, 1),
            "max_ms": round(max(seconds) * 1e3, 1)}


def main():
    chosen = stage.arguments(__doc__.splitlines()[0], rounds=20)
    machine = stage.make_stage(config=PROFILES, with_gpu=True, with_systemd=False)
    import harness

    try:
        agent = os.path.join(os.environ["APUSCHED_BUILD_DIR"], "client", "agent",
                             "libapusched-agent.so")
        machine.start_daemon("--agent-library", agent)
        looks, given, taken = measure(machine, harness, chosen.rounds)
        stage.report("mask", {"CU masks of two programs, on the software APU": [
            stage.row("RegisterPid → both masks in force", figures(given)),
            stage.row("Unregister → both released", figures(taken)),
            stage.row("one look", figures(looks.times)),
        ]}, chosen.json)
    finally:
        machine.close()


if __name__ == "__main__":
    stage.run(main)
