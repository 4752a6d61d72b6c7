#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Counts wake-ups, CPU time and memory of the idle daemon beside its peers on the same bus.

Idle means: a process was registered and unregistered before, now nothing is. All are watched over
the same time."""

import os
import shutil
import time

import dbus

import stage

RTKIT = "/usr/libexec/rtkit-daemon"
STUB = "bare sdbus-c++ service"


def tasks(pid):
    return [f"/proc/{pid}/task/{tid}" for tid in os.listdir(f"/proc/{pid}/task")]


def field(path, name):
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1])
    raise stage.BrokenRun(f"{path} has no {name}")


def switches(pid):
    return sum(field(f"{task}/status", "voluntary_ctxt_switches:") for task in tasks(pid))


def cpu_ns(pid):
    total = 0
    for task in tasks(pid):
        with open(f"{task}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total


def memory_kb(pid):
    rollup = f"/proc/{pid}/smaps_rollup"
    return field(rollup, "Rss:"), field(rollup, "Pss:")


def start_rtkit(machine):
    """Its system bus is ours; it must not change user or root directory to run there."""
    return machine.start_service(
        [RTKIT, "--no-drop-privileges", "--no-chroot", "--no-limit-resources",
         "--our-nice-level=0"], "org.freedesktop.RealtimeKit1",
        {"DBUS_SYSTEM_BUS_ADDRESS": machine.address})


def start_peers(machine):
    peers, skipped = {}, []
    for name, there, start in (
        ("gamemoded", shutil.which("gamemoded"), machine.start_gamemoded),
        ("rtkit-daemon", os.path.exists(RTKIT), lambda: start_rtkit(machine)),
    ):
        try:
            if not there:
                raise stage.BrokenRun("it is not installed")
            peers[name] = start().pid
        except stage.BrokenRun as why:
            skipped.append({"name": name, "skipped": str(why)})
    return peers, skipped


def exercise(machine):
    """One registration, and its end, as any daemon has seen that has been up for a while."""
    manager = dbus.Interface(
        machine.connection().get_object("org.apusched1", "/org/apusched1", introspect=False),
        "org.apusched1.Manager")
    path = manager.RegisterPid(dbus.UInt32(machine.start_idle_process().pid), "bench",
                               dbus.Dictionary({}, signature="sv"))
    manager.Unregister(path)
    manager.ListProcesses()


def watch(pids, seconds):
    time.sleep(2)  # what was put off by the exercise is done; the time of idling is the method
    begin = {name: (switches(pid), cpu_ns(pid)) for name, pid in pids.items()}
    time.sleep(seconds)
    result = {}
    for name, pid in pids.items():
        rss, pss = memory_kb(pid)
        result[name] = {"wakeups": switches(pid) - begin[name][0],
                        "cpu_ms": round((cpu_ns(pid) - begin[name][1]) / 1e6, 3),
                        "threads": len(tasks(pid)), "rss_kb": rss, "pss_kb": pss}
    return result


def measure(chosen):
    os.environ.pop("WATCHDOG_USEC", None)
    machine = stage.make_stage(with_systemd=False)
    try:
        machine.start_daemon()
        stub = machine.start_echo().pid
        peers, skipped = start_peers(machine)
        exercise(machine)
        pids = {"apuschedd": machine.daemon.pid, STUB: stub, **peers}
        seen = watch(pids, chosen.seconds)
        rows = [stage.row(name, figures) for name, figures in seen.items()] + skipped
        mine, floor = seen["apuschedd"], seen[STUB]
        rows.append(stage.row(f"wake-ups in {chosen.seconds} s", {}, 0, mine["wakeups"]))
        for kind in ("rss", "pss"):
            rows.append(stage.row(f"{kind.upper()} / {STUB}", {}, 2.0,
                                  mine[f"{kind}_kb"] / floor[f"{kind}_kb"], "x"))
        return rows
    finally:
        machine.close()


def main():
    chosen = stage.arguments(__doc__.splitlines()[0], seconds=60)
    stage.report("idle", {f"{chosen.seconds} s with nothing registered": measure(chosen)},
                 chosen.json)


if __name__ == "__main__":
    stage.run(main)
