#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""CPU time of the daemon with 1 to 10,000 registered processes that have a target, beside a bare floor.

The floor reads one kept-open schedstat per sampled thread, at the daemon's rate. The processes sleep;
beside them one registered loop runs, so that the closed loop keeps its full rate. Three daemons take
the cost apart: with the closed loop and no scan to speak of (what the control tick costs), with the
scan and no closed loop, and with both, as installed."""

import os
import resource
import statistics
import subprocess
import time

import dbus

import contention
import stage

TICK_MS, SCAN_MS, NO_SCAN_MS = 100, 500, 60000
GOAL, COUNTS = 2.0, (1, 100, 1000, 10000)
# As LimitNOFILE of the systemd unit; a pidfd and a schedstat of each process, and all else.
DESCRIPTORS, PER_PROCESS, BESIDE = 65536, 2, 200
WAYS = {"control tick": (True, NO_SCAN_MS), "scan": (False, SCAN_MS), "both": (True, SCAN_MS)}
CONFIG = """limits:
  max_processes: 16384
  max_members: 16384
  scan_interval_ms: {scan}
control:
  enabled: {enabled}
  tick_ms: 100
profiles:
  tick:
    class: critical
    target_wait_us: 1000000
"""


def cpu_ns(pid):
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total


class Farm:
    """The processes to be registered, and the floor, which is their parent."""

    def __init__(self, count):
        self.process = subprocess.Popen(
            [stage.program("bench_tick_floor"), str(count)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.pids = [int(pid) for pid in self.process.stdout.readline().split()]
        if len(self.pids) != count:
            raise stage.BrokenRun(f"{len(self.pids)} of {count} processes started")

    def floor_us(self, seconds):
        """CPU time per tick."""
        self.process.stdin.write(f"{max(1, seconds * 1000 // TICK_MS)} {TICK_MS}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline()) / 1000

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def measure(way, farm, seconds):
    """CPU time of the daemon per 100 ms."""
    enabled, scan = WAYS[way]
    machine = stage.make_stage(CONFIG.format(scan=scan, enabled=str(enabled).lower()),
                               with_systemd=False)
    loop = contention.Beside(None)
    try:
        machine.start_daemon()
        manager = dbus.Interface(machine.object(), "org.apusched1.Manager")
        nothing = dbus.Dictionary({}, signature="sv")
        for pid in [*farm.pids[1:], loop.pid]:
            manager.RegisterPid(dbus.UInt32(pid), "tick", nothing)
        registered = int(machine.property("/org/apusched1", "Manager", "ProcessCount"))
        if registered != len(farm.pids):
            raise stage.BrokenRun(f"{registered} of {len(farm.pids)} processes are registered")
        time.sleep(1.5)  # what registration left to be done is done; idle processes count as idle
        begin = cpu_ns(machine.daemon.pid)
        since = time.monotonic()
        time.sleep(seconds)
        passed = time.monotonic() - since
        return (cpu_ns(machine.daemon.pid) - begin) / 1000 / (passed * 1000 / TICK_MS)
    finally:
        loop.close()
        machine.close()


def rows_of(count, runs):
    name = f"{count} processes"

    def middle(key):
        return statistics.median(run[key] for run in runs)

    figures = {f"{way.replace(' ', '_')}_us": round(middle(way), 1) for way in ("floor", *WAYS)}
    figures["cpu_percent"] = round(middle("both") / TICK_MS / 10, 2)
    rows = [stage.row(f"{name}: CPU per {TICK_MS} ms", figures)]
    for way, goal in (("control tick", GOAL), ("both", None)):
        ratio = statistics.median(run[way] / run["floor"] for run in runs)
        rows.append(stage.row(f"{name}: {way} ÷ floor", {} if goal else {"ratio": round(ratio, 2)},
                              goal, ratio))
    return rows


def main():
    chosen = stage.arguments(__doc__.splitlines()[0], seconds=4, repetitions=3, most=10000)
    # The daemon's, which inherits it: what its systemd unit permits, or less where others forbid.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    permitted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (permitted, hard))
    room = (permitted - BESIDE) // PER_PROCESS
    sections = {}
    for wanted in [count for count in COUNTS if count <= chosen.most]:
        count = min(wanted, room)
        if count < wanted:
            sections[f"{wanted} registered"] = [{
                "name": f"{wanted} processes", "skipped": f"they need two descriptors each, and this "
                f"machine permits {permitted}: {count} instead"}]
        farm = Farm(count)
        try:
            runs = []
            for _ in range(chosen.repetitions):
                run = {"floor": farm.floor_us(chosen.seconds)}
                run.update({way: measure(way, farm, chosen.seconds) for way in WAYS})
                runs.append(run)
            sections[f"{count} registered"] = rows_of(count, runs)
        finally:
            farm.close()
    stage.report("tick", sections, chosen.json)


if __name__ == "__main__":
    stage.run(main)
