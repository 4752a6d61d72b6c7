#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Counts wake-ups, CPU time and memory of the idle daemon beside its peers on the same bus.

Idle means: a process was registered and unregistered before, now nothing is. All are watched over
the same time. For the memory goals the daemon and the stub each run alone beside the bus: PSS
splits a library among its users, and the stub that shares its libraries with the daemon would make
the daemon look worse, not bigger."""

import os
import shutil
import statistics
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
    return {"rss_kb": field(rollup, "Rss:"), "pss_kb": field(rollup, "Pss:"),
            "private_dirty_kb": field(rollup, "Private_Dirty:")}


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
        result[name] = {"wakeups": switches(pid) - begin[name][0],
                        "cpu_ms": round((cpu_ns(pid) - begin[name][1]) / 1e6, 3),
                        "threads": len(tasks(pid)), **memory_kb(pid)}
    return result


def memory_alone(start, use):
    """Of the process that `start(machine)` starts, after `use(machine)`."""
    machine = stage.make_stage(with_systemd=False)
    try:
        pid = start(machine)
        use(machine)
        return memory_kb(pid)
    finally:
        machine.close()


def start_daemon(machine):
    machine.start_daemon()
    return machine.daemon.pid


def use_echo(machine):
    stub = machine.connection().get_object("org.apusched.Bench", "/org/apusched/Bench",
                                           introspect=False)
    for _ in range(3):
        stub.Echo("text", dbus_interface="org.apusched.Bench")


def memory_rows():
    runs = [(memory_alone(start_daemon, exercise),
             memory_alone(lambda machine: machine.start_echo().pid, use_echo))
            for _ in range(3)]
    rows = []
    for position, name in enumerate(("apuschedd", STUB)):
        rows.append(stage.row(name, {
            figure: statistics.median(run[position][figure] for run in runs)
            for figure in runs[0][0]}))
    for figure, goal in (("rss_kb", 2.0), ("pss_kb", 2.0), ("private_dirty_kb", None)):
        ratio = statistics.median(mine[figure] / floor[figure] for mine, floor in runs)
        label = f"{figure.removesuffix('_kb').upper()} / {STUB}"
        rows.append(stage.row(label, {} if goal else {"ratio": round(ratio, 2)}, goal, ratio, "x"))
    return rows


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
        rows.append(stage.row(f"wake-ups in {chosen.seconds} s", {}, 0,
                              seen["apuschedd"]["wakeups"]))
        return rows
    finally:
        machine.close()


def main():
    chosen = stage.arguments(__doc__.splitlines()[0], seconds=60)
    stage.report("idle", {f"{chosen.seconds} s with nothing registered": measure(chosen),
                          "Memory, each alone on a bus": memory_rows()}, chosen.json)


if __name__ == "__main__":
    stage.run(main)
