#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A dispatch loop beside CPU hogs: untouched, reniced, by the best lever by hand, and managed.

The loop is tests/workloads/decode on the software APU through the real HSA runtime. In turns, for
each place where the hogs can stand: in the loop's own session, all in another, each in one of its
own. The daemon is given the registration and nothing else."""

import contextlib
import json
import os
import statistics
import subprocess

import stage

HOGS = 2 * os.cpu_count()
HOG = ["/bin/sh", "-c", "while :; do :; done"]
TREES = ("same session", "another session", "each its own session")
WAYS = ("alone", "unmanaged", "renice main", "renice all", "by hand", "managed")
ORACLE_GOAL, CUT_GOAL = 1.1, 0.17


class Run:
    def __init__(self, machine, seconds):
        self.machine, self.seconds = machine, seconds
        self.decode = os.path.join(os.environ["APUSCHED_BUILD_DIR"], "tests", "softapu", "workloads",
                                   "decode")

    @contextlib.contextmanager
    def hogs(self, tree):
        """Ended afterwards. For the first tree the loop is started in this script's session too."""
        if tree == "same session":
            started = [subprocess.Popen(HOG) for _ in range(HOGS)]
        elif tree == "another session":
            command = ["/bin/sh", "-c", "while :; do :; done & " * HOGS + "wait"]
            started = [subprocess.Popen(command, start_new_session=True)]
        else:
            started = [subprocess.Popen(HOG, start_new_session=True) for _ in range(HOGS)]
        yield
        for process in started:
            subprocess.run(["pkill", "-P", str(process.pid)], check=False)
            process.kill()
            process.wait()

    def once(self, tree, way):
        own = tree != "same session"
        loop = subprocess.Popen(
            [stage_softapu(), "--join", self.machine.apu, "--", self.decode, "--rate", "100",
             "--kernels", "4", "--duration", str(self.seconds)],
            stdout=subprocess.PIPE, text=True, start_new_session=own)
        loop.stdout.readline()
        path = self.treat(way, loop.pid)
        try:
            with self.hogs(tree) if way != "alone" else contextlib.nullcontext():
                final = json.loads(loop.stdout.readline())
                loop.wait()
        finally:
            loop.kill()
            self.untreat(own)
        latency = final["dispatch_latency_us"]
        made = {"p50": latency["p50"], "p99": latency["p99"], "p99.9": latency["p99.9"],
                "missed": final["missed_periods"]}
        if path:
            made.update(self.decisions(loop.pid))
        return made

    def treat(self, way, pid):
        if way == "renice main":
            os.setpriority(os.PRIO_PROCESS, pid, -10)
        elif way == "renice all":
            for tid in os.listdir(f"/proc/{pid}/task"):
                os.setpriority(os.PRIO_PROCESS, int(tid), -10)
        elif way == "by hand":
            for tid in os.listdir(f"/proc/{pid}/task"):
                os.setpriority(os.PRIO_PROCESS, int(tid), -20)
            write_autogroup(pid, -20)
        elif way == "managed":
            return self.machine.register(pid, "llm-interactive")
        return None

    def untreat(self, own):
        if not own:
            write_autogroup(os.getpid(), 0)

    def decisions(self, pid):
        lines = json.loads(self.machine.ctl("history", "-n", "512", "--json").stdout)["lines"]
        mine = [line for line in lines if line["pid"] == pid]
        return {"decisions": len([line for line in mine if line["lever"]]),
                "tried": sum(line["what"] == "tried" for line in mine)}


def stage_softapu():
    import harness

    return harness.SOFTAPU


def write_autogroup(pid, nice):
    with open(f"/proc/{pid}/autogroup", "w", encoding="ascii") as file:
        file.write(str(nice))


def middle(runs, key):
    return round(statistics.median(run[key] for run in runs), 1)


def rows_of(tree, results):
    alone, unmanaged = middle(results["alone"], "p99"), middle(results["unmanaged"], "p99")
    rows = []
    for way in WAYS:
        runs = results[way]
        figures = {f"{key}_us": middle(runs, key) for key in ("p50", "p99", "p99.9")}
        figures["missed"] = middle(runs, "missed")
        figures["p99_spread_us"] = "–".join(str(round(edge(run["p99"] for run in runs)))
                                            for edge in (min, max))
        if "decisions" in runs[0]:
            figures["decisions"] = middle(runs, "decisions")
        rows.append(stage.row(f"{tree}: {way}", figures))
    by_hand, managed = middle(results["by hand"], "p99"), middle(results["managed"], "p99")
    rows.append(stage.row(f"{tree}: managed ÷ by hand, p99", {}, ORACLE_GOAL,
                          round(managed / by_hand, 2)))
    if unmanaged > 0 and by_hand <= CUT_GOAL * unmanaged:
        rows.append(stage.row(f"{tree}: managed ÷ unmanaged, p99", {}, CUT_GOAL,
                              round(managed / unmanaged, 3)))
    else:
        rows.append({"name": f"{tree}: managed ÷ unmanaged, p99",
                     "skipped": f"by hand is {by_hand / unmanaged:.2f} of it too: "
                                f"{managed / unmanaged:.2f} managed"})
    rows.append(stage.row(f"{tree}: renice main ÷ unmanaged, p99 (control)",
                          {"ratio": round(middle(results["renice main"], "p99") / unmanaged, 2),
                           "alone ÷ unmanaged": round(alone / unmanaged, 3)}))
    return rows


def main():
    chosen = stage.arguments(__doc__.splitlines()[0], seconds=6, repetitions=3, trees=3)
    machine = stage.make_gpu_machine()
    try:
        machine.start_daemon()
        run = Run(machine, chosen.seconds)
        sections = {}
        for tree in TREES[: chosen.trees]:
            results = {way: [] for way in WAYS}
            for _ in range(chosen.repetitions):
                for way in WAYS:
                    results[way].append(run.once(tree, way))
            sections[f"{HOGS} hogs, {tree}"] = rows_of(tree, results)
        stage.report("cpu_contention", sections, chosen.json)
    finally:
        machine.close()


if __name__ == "__main__":
    stage.run(main)
