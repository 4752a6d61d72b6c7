#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Times SIGKILL of a registered process → the autogroup nice of its session restored.

Alone, and with 200 further registered processes that sleep."""

import dbus

import stage

GOAL_MS = 50.0


def rows_of(runs, others):
    figures = {key: round(stage.median_of(runs, "exit_restored", f"{key}_ns") / 1e6, 2)
               for key in ("p50", "p99", "max")}
    return [stage.row(f"exit → restored, {others} others registered: p99",
                      {f"{key}_ms": value for key, value in figures.items()}, GOAL_MS,
                      figures["p99"], " ms")]


def measure(chosen, others):
    machine = stage.make_stage(with_systemd=False)
    try:
        machine.start_daemon()
        manager = dbus.Interface(
            machine.connection().get_object("org.apusched1", "/org/apusched1", introspect=False),
            "org.apusched1.Manager")
        for _ in range(others):
            manager.RegisterPid(dbus.UInt32(machine.start_idle_process().pid), "bench",
                                dbus.Dictionary({}, signature="sv"))
        return rows_of(stage.repetitions([
            stage.program("bench_exit_restore"), f"--bus={machine.address}",
            f"--exits={chosen.exits}", f"--repetitions={chosen.repetitions}",
        ]), others)
    finally:
        machine.close()


def main():
    chosen = stage.arguments(__doc__.splitlines()[0], exits=200, repetitions=3, others=200)
    stage.report("exit", {"Exit of a registered process":
                          measure(chosen, 0) + measure(chosen, chosen.others)}, chosen.json)


if __name__ == "__main__":
    stage.run(main)
