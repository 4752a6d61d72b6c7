#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How long a dispatch loop is off its target after a step load, and how often the lever moves.

The profile holds no lever until the closed loop asks for one. CPU hogs begin at once, stay, and end
at once; then, in a second part, they come and go every second. On target is a window of 100 ms whose
rounds were done, on average, at most 50 µs later than they are alone."""

import statistics
import time

import contention
import energy
import stage

TARGET_US, WINDOW_S, QUIET_WINDOWS, QUIET_OF = 50, 0.1, 9, 10
BACK_GOAL_S, OSCILLATION_GOAL, PULSES = 1.0, 0, 5
BEFORE_S, RELEASE_S = 2.0, 3.0


def windows(trace, since, until):
    """Mean latency of each window; one without any round is as late as it is long."""
    means, at = [], since
    while at + WINDOW_S <= until:
        rounds = [late for due, late in trace if at <= due < at + WINDOW_S]
        means.append(statistics.mean(rounds) if rounds else WINDOW_S * 1e6)
        at += WINDOW_S
    return means


def back_after(means, limit):
    """Seconds from the step to the first window from which nine of ten are on target."""
    good = [mean <= limit for mean in means]
    for first in range(len(good) - QUIET_OF + 1):
        if good[first] and sum(good[first:first + QUIET_OF]) >= QUIET_WINDOWS:
            return first * WINDOW_S
    return None


def step(scene, managed, seconds):
    beside = scene.beside()
    try:
        if managed:
            scene.machine.register(beside.pid, "loop-only")
        beside.command("begin")
        before = time.monotonic()
        time.sleep(BEFORE_S)
        begun = beside.start()
        time.sleep(seconds)
        ended = beside.stop()
        time.sleep(RELEASE_S if managed else 0)
        trace = beside.command("trace")
        alone = statistics.median(late for due, late in trace if before <= due < begun)
        means = windows(trace, begun, ended)
        limit = alone + TARGET_US
        made = {"alone": alone, "watched": seconds, "back": back_after(means, limit),
                "off": sum(mean > limit for mean in means) / len(means),
                "worst": max(late for due, late in trace if begun <= due < ended)}
        if managed:
            made.update(moves(contention.history(scene.machine, beside.pid), begun, ended))
        return made
    finally:
        beside.close()


def moves(lines, begun, ended):
    """A lever that is let go or undone while the load lasts has oscillated."""
    tried = [at for at, what, _ in lines if what == "tried" and at >= begun]
    gone = [at for at, what, _ in lines if what == "released" and at >= ended]
    made = {"oscillations": sum(line[1] in ("released", "undone")
                                for line in contention.writes(lines, begun, ended))}
    if tried:
        made["noticed"] = tried[0] - begun
    if tried and gone:
        made["released"] = gone[0] - ended
    return made


def pulses(scene):
    """Hogs that come and go: how often the lever moves in the ten seconds."""
    beside = scene.beside()
    try:
        scene.machine.register(beside.pid, "loop-only")
        time.sleep(BEFORE_S)
        begun = time.monotonic()
        for _ in range(PULSES):
            beside.start()
            time.sleep(1)
            beside.stop()
            time.sleep(1)
        ended = time.monotonic()
        lines = contention.history(scene.machine, beside.pid)
        return len(contention.writes(lines, begun, ended)) / (ended - begun)
    finally:
        beside.close()


def some(runs, key, digits=2):
    values = [run[key] for run in runs if run.get(key) is not None]
    return round(statistics.median(values), digits) if values else "never"


def rows_of(tree, results, pulsed):
    rows = []
    for way, runs in results.items():
        figures = {"back_after_s": some(runs, "back"), "off_target_share": some(runs, "off"),
                   "alone_us": some(runs, "alone", 0), "worst_us": some(runs, "worst", 0)}
        if way == "managed":
            figures["noticed_s"], figures["released_s"] = (some(runs, key)
                                                           for key in ("noticed", "released"))
        rows.append(stage.row(f"{tree}: {way}", figures))
    managed = results["managed"]
    # One that did not come back counts as having taken longer than it was watched.
    rows.append(stage.row(f"{tree}: back on target", {}, BACK_GOAL_S, statistics.median(
        run["watched"] + WINDOW_S if run["back"] is None else run["back"] for run in managed), " s"))
    rows.append(stage.row(f"{tree}: oscillations under a steady load",
                          {"most": max(run["oscillations"] for run in managed)}, OSCILLATION_GOAL,
                          statistics.median(run["oscillations"] for run in managed)))
    rows.append(stage.row(f"{tree}: lever writes per second, load that comes and goes", {}, 2,
                          statistics.median(pulsed)))
    return rows


def measure(tree, chosen):
    scene = contention.Scene(tree)
    try:
        results, pulsed = {"unmanaged": [], "managed": []}, []
        for _ in range(chosen.repetitions):
            for way, runs in results.items():
                runs.append(step(scene, way == "managed", chosen.seconds))
            pulsed.append(pulses(scene))
        return rows_of(tree, results, pulsed)
    finally:
        scene.close()


def main():
    chosen = stage.arguments(__doc__.splitlines()[0], seconds=6, repetitions=3, trees=4,
                             energy=40)
    trees = [tree for tree in contention.trees() if not contention.why_not_managed(tree)]
    sections = {}
    for tree in trees[: chosen.trees]:
        sections[f"{contention.HOGS} hogs, {tree}"] = measure(tree, chosen)
    if chosen.energy:
        # Once each: what is modelled does not scatter, and one takes four times as long as it says.
        sections[f"software APU: work and nothing, twice, {chosen.energy} s each"] = energy.rows(
            chosen.energy)
    stage.report("step_response", sections, chosen.json)


if __name__ == "__main__":
    stage.run(main)
