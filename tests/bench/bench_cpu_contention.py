#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A dispatch loop beside CPU hogs: untouched, reniced, by gamemoded, by hand, and managed.

By default the loop is bench_dispatch_loop: two threads, no GPU, least noise. --apu 1 takes
tests/workloads/decode on the software APU, through the real HSA runtime. In turns, for each place
where the hogs can stand: all in another session, each in one of its own, in the loop's own. What is
measured begins a while after the hogs do. The daemon is given the registration and nothing else;
"loop only" has a profile that holds no lever until the closed loop asks for one."""

import os
import statistics
import time

import dbus

import contention
import stage

PROFILES = {"managed": "llm-interactive", "managed, loop only": "loop-only"}
WAYS = ("alone", "unmanaged", "renice main", "renice all", "gamemoded", "by hand", *PROFILES)
LEAD_S, SETTLE_S, RELEASE_S = 0.5, 1.5, 3.0
MARGIN_S = 0.2  # a decode loop ends by itself, a little earlier than expected
NOTICED_GOAL_MS, RELEASED_GOAL_MS = 300, 1000


class Bench(contention.Scene):
    def __init__(self, tree, chosen):
        super().__init__(tree, bool(chosen.apu))
        self.seconds, self.apu, self.most_foreign = chosen.seconds, chosen.apu, chosen.foreign / 100
        with_gamemode = self.start_gamemoded()
        unmanaged = contention.why_not_managed(tree)
        self.ways = [way for way in WAYS if (way != "gamemoded" or with_gamemode)
                     and not (unmanaged and way in PROFILES)]

    def beside(self):
        if not self.apu:
            return super().beside()
        return self.put(contention.ApuLoop(self.tree, self.machine, LEAD_S + SETTLE_S,
                                           self.seconds))

    def quietest(self, way):
        # In units others hardly get the CPU: their group weighs more.
        return contention.quietest(lambda: self.once(way), 1 if self.units else self.most_foreign)

    def once(self, way):
        beside = self.beside()
        try:
            self.treat(way, beside)
            time.sleep(LEAD_S)  # the hogs begin in the middle of its life
            begun = beside.start() if way != "alone" else None
            time.sleep(SETTLE_S)
            usage = contention.Usage(beside)
            beside.command("begin")
            steady = time.monotonic()
            time.sleep(self.seconds - MARGIN_S)
            used = usage.end()
            time.sleep(MARGIN_S)
            made = {**beside.command("end"), **used}
            ended = beside.stop()
            if way in PROFILES:
                made.update(self.decisions(beside.pid, begun, steady, ended))
            return made
        finally:
            self.untreat(way, beside)
            beside.close()

    def treat(self, way, beside):
        if way == "renice main":
            os.setpriority(os.PRIO_PROCESS, beside.pid, -10)
        elif way == "renice all":
            contention.renice_all(beside, -10)
        elif way == "gamemoded":
            self.register_game(beside)
        elif way == "by hand":
            self.hold_by_hand(beside)
        elif way in PROFILES:
            self.machine.register(beside.pid, PROFILES[way])

    def untreat(self, way, beside):
        if way == "gamemoded":
            self.gamemode.UnregisterGame(dbus.Int32(beside.pid))
        elif way == "by hand":
            self.let_go_by_hand()

    def decisions(self, pid, begun, steady, ended):
        """An APU loop is over when the hogs are: its release is not one by the closed loop."""
        lines = contention.history(self.machine, pid)
        tried = [at for at, what, _ in lines if what == "tried" and at >= begun]
        made = {"writes_per_s": len(contention.writes(lines, steady, ended)) / (ended - steady)}
        if not tried:
            return made
        made["noticed_ms"] = (tried[0] - begun) * 1000
        while not self.apu and time.monotonic() < ended + RELEASE_S:
            gone = [at for at, what, _ in contention.history(self.machine, pid)
                    if what in ("released", "undone") and at >= ended]
            if gone:
                made["released_ms"] = (gone[0] - ended) * 1000
                break
            time.sleep(0.1)
        return made


def seen(runs, key):
    return [run[key] for run in runs if key in run]


def middle(runs, key):
    return statistics.median(seen(runs, key))


def figures_of(runs):
    figures = {f"{key}_us": round(middle(runs, key)) for key in ("p50", "p99", "p99.9")}
    figures["p99_spread_us"] = contention.spread(seen(runs, "p99"))
    figures["wait_us"] = round(middle(runs, "wait"), 1)
    figures["missed_per_1000"] = round(statistics.median(
        1000 * run["missed"] / max(1, run["missed"] + run["rounds"]) for run in runs), 1)
    figures["hogs_cpus"] = round(middle(runs, "hogs"), 2)
    figures["foreign"] = round(max(seen(runs, "foreign")), 2)
    for key in ("noticed_ms", "released_ms", "writes_per_s"):
        if seen(runs, key):
            figures[key] = round(middle(runs, key), 1)
    return figures


WHATS = {"p99": "p99", "wait": "mean wait for a CPU"}


def goal_rows(tree, results):
    rows = []
    for way in PROFILES:
        if way in results:
            rows += ratio_rows(tree, way, results) + loop_rows(f"{tree}: {way}", results, way)
        else:
            rows.append({"name": f"{tree}: {way}", "skipped": contention.why_not_managed(tree)})
    # In the loop's own session nice does act.
    if tree != "same session":
        for way in ("renice main", "renice all"):
            for key, what in WHATS.items():
                rows.append(contention.fail_row(tree, way, what, middle(results["unmanaged"], key)
                                                / middle(results[way], key)))
    return rows


def ratio_rows(tree, way, results):
    rows = []
    for key, what in WHATS.items():
        managed, by_hand, unmanaged = (middle(results[which], key)
                                       for which in (way, "by hand", "unmanaged"))
        rows.append(stage.row(f"{tree}: {way} ÷ by hand, {what}", {}, contention.ORACLE_GOAL,
                              managed / by_hand))
        rows.append(contention.cut_row(f"{tree}: {way} ÷ unmanaged, {what}", managed / unmanaged,
                                       by_hand / unmanaged))
    return rows


def loop_rows(name, results, way):
    loss = 1 - middle(results[way], "hogs") / middle(results["unmanaged"], "hogs")
    rows = [stage.row(f"{name}: CPU that the hogs lose", {}, contention.LOSS_GOAL, loss),
            stage.row(f"{name}: lever writes per second, steady", {}, contention.WRITES_GOAL,
                      middle(results[way], "writes_per_s"))]
    for key, goal in (("noticed_ms", NOTICED_GOAL_MS), ("released_ms", RELEASED_GOAL_MS)):
        runs = seen(results[way], key)
        if runs:
            rows.append(stage.row(f"{name}: {key.removesuffix('_ms')}",
                                  {"runs": f"{len(runs)} of {len(results[way])}",
                                   "most_ms": round(max(runs))},
                                  goal, statistics.median(runs), " ms"))
    return rows


def measure(tree, chosen):
    bench = Bench(tree, chosen)
    try:
        results = {way: [] for way in bench.ways}
        for _ in range(chosen.repetitions):
            for way in bench.ways:
                results[way].append(bench.quietest(way))
        rows = [stage.row(f"{tree}: {way}", figures_of(runs)) for way, runs in results.items()]
        return rows + goal_rows(tree, results)
    finally:
        bench.close()


def main():
    chosen = stage.arguments(__doc__.splitlines()[0], seconds=1, repetitions=3, trees=5, apu=0,
                             foreign=20)
    sections = {}
    for tree in contention.trees()[: chosen.trees]:
        sections[f"{contention.HOGS} hogs, {tree}"] = measure(tree, chosen)
    stage.report("cpu_contention", sections, chosen.json)


if __name__ == "__main__":
    stage.run(main)
