#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Times RegisterPid, Unregister and queries beside an echo and beside gamemoded's RegisterGame.

All calls of a repetition are made in turns on one connection to one bus, with all processes on one
CPU (--cpu N; default: the last). Before a timed call its service is at rest. Ratios are taken within
a repetition; what is printed is the median over the repetitions."""

import os
import shutil

import stage


def figures(runs, name):
    return {"p50_us": round(stage.median_of(runs, name, "p50_ns") / 1000, 1),
            "p99_us": round(stage.median_of(runs, name, "p99_ns") / 1000, 1)}


def against(runs, name, floor, label, p50, p99=None):
    rows = [stage.row(f"{label}: p50 / {floor}", figures(runs, name), p50,
                      stage.ratio_of(runs, name, floor, "p50_ns"), "x")]
    if p99:
        rows.append(stage.row(f"{label}: p99 / {floor}", {}, p99,
                              stage.ratio_of(runs, name, floor, "p99_ns"), "x"))
    return rows


def rows_of(runs):
    rows = [stage.row("echo", figures(runs, "echo"))]
    rows += against(runs, "register", "echo", "RegisterPid, 2 threads", 2.0, 3.0)
    rows.append(stage.row("Unregister", {
        **figures(runs, "unregister"),
        "p50_ratio": round(stage.ratio_of(runs, "unregister", "echo", "p50_ns"), 2)}))
    rows += against(runs, "get", "echo", "Get State", 1.15)
    rows += against(runs, "list_none", "echo", "ListProcesses, none", 1.15)
    rows += against(runs, "list_changed", "echo", "ListProcesses, one new", 1.15)
    rows += against(runs, "list_one", "echo", "ListProcesses, one", 1.15)
    rows += against(runs, "list_one", "echo_list", "ListProcesses, one", 1.15)
    if "gamemode_register" in runs[0]:
        rows.append(stage.row("gamemoded RegisterGame", figures(runs, "gamemode_register")))
        rows.append(stage.row("gamemoded UnregisterGame", figures(runs, "gamemode_unregister")))
        rows.append(stage.row("RegisterPid: p50 / RegisterGame", {}, 1.2, stage.ratio_of(
            runs, "register", "gamemode_register", "p50_ns"), "x"))
    return rows


def start_gamemode(machine):
    """Starts gamemoded in game mode; a process to register with it."""
    if not shutil.which("gamemoded"):
        raise stage.BrokenRun("it is not installed")
    machine.start_gamemoded()
    client = machine.connection().get_object(
        "com.feralinteractive.GameMode", "/com/feralinteractive/GameMode", introspect=False)
    # Held for the whole run: no call pays for entering game mode.
    client.RegisterGame(machine.start_idle_process().pid,
                        dbus_interface="com.feralinteractive.GameMode")
    return machine.start_idle_process().pid


def measure(chosen, with_systemd, other_cpus):
    machine = stage.make_stage(with_systemd=with_systemd)
    try:
        if with_systemd and other_cpus:
            # In Python it takes a hundred times what the real one does for a call, and on our CPU
            # the scheduler lets it go first. The last that was started is the mock.
            os.sched_setaffinity(machine.started[-1].pid, other_cpus)
        machine.start_daemon()
        machine.start_echo()
        command = [stage.program("bench_dbus_calls"), f"--bus={machine.address}",
                   f"--pid={machine.start_idle_process().pid}",
                   f"--repetitions={chosen.repetitions}"]
        skipped = None
        if with_systemd:
            # The mock takes milliseconds for the weights that follow each registration.
            command += ["--profile=bench-units", "--systemd",
                        f"--count={max(1, chosen.count // 10)}"]
        else:
            command.append(f"--count={chosen.count}")
            try:
                command.append(f"--gamemode-pid={start_gamemode(machine)}")
            except stage.BrokenRun as why:
                skipped = {"name": "gamemoded", "skipped": str(why)}
        runs = stage.repetitions(command)
        return rows_of(runs) + ([skipped] if skipped else [])
    finally:
        machine.close()


def main():
    chosen = stage.arguments(__doc__.splitlines()[0], count=1000, repetitions=3, cpu=-1)
    # Where a wake-up crosses CPUs, which of two services happens to share the client's decides
    # their ratio (an echo took 27 or 69 us): all on one.
    cpus = sorted(os.sched_getaffinity(0))
    own = cpus[chosen.cpu] if chosen.cpu < 0 else chosen.cpu
    os.sched_setaffinity(0, {own})
    others = set(cpus) - {own}
    sections = {
        "No systemd on the bus, profile with nice": measure(chosen, False, others),
        "Mocked systemd, profile with nice and weights": measure(chosen, True, others),
    }
    stage.report("dbus", sections, chosen.json)


if __name__ == "__main__":
    stage.run(main)
