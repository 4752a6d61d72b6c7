#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A dispatch loop beside CPU hogs in units of a real systemd with cgroup v2, in an emulated machine.

What bench_cpu_contention cannot have where the groups are of v1: slices that the daemon raises. An
emulated CPU is ten times slower and less even than a real one: only ratios say something. Builds
nothing; takes root, and packaging/vmtest's machine."""

import json
import os
import shutil
import statistics
import subprocess
import tempfile

import contention
import stage

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WAYS = ("alone", "unmanaged", "renice all", "by hand", "managed")
START_UP_S, AROUND_S = 240, 20


def in_machine(chosen):
    """What was measured there: one dictionary per run."""
    build = os.environ["APUSCHED_BUILD_DIR"]
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory(prefix="bench-units-") as work:
        layer, beside, out = (os.path.join(work, name) for name in ("stage", "beside", "out"))
        os.mkdir(beside)
        subprocess.run(["cmake", "--install", build, "--strip"], check=True,
                       env={**os.environ, "DESTDIR": layer}, stdout=subprocess.DEVNULL)
        shutil.copy(os.path.join(build, "tests", "bench", "bench_dispatch_loop"), beside)
        runs = chosen.repetitions * chosen.trees * len(WAYS)
        limit = START_UP_S + runs * (chosen.seconds + AROUND_S)
        done = subprocess.run(
            [os.path.join(ROOT, "packaging", "vmtest"), "--backend", "qemu", "--timeout", str(limit),
             "--copy", layer, "--include", beside, "--include",
             os.path.join(ROOT, "tests", "vm"), "--out", out, "--",
             os.path.join(here, "units_in_machine.sh"), str(chosen.seconds),
             str(chosen.repetitions), str(chosen.trees)],
            check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise stage.BrokenRun(f"vmtest ended with {done.returncode}:\n"
                                  + "\n".join((done.stdout + done.stderr).splitlines()[-20:]))
        with open(os.path.join(out, "units.jsonl"), encoding="utf-8") as lines:
            made = [json.loads(line) for line in lines]
    if len(made) != runs:
        raise stage.BrokenRun(f"{len(made)} of {runs} runs have figures")
    return made


def figures_of(runs, seconds):
    def middle(key):
        return statistics.median(run[key] for run in runs)

    return {"p50_us": round(middle("p50")), "p99_us": round(middle("p99")),
            "p99_spread_us": contention.spread(run["p99"] for run in runs),
            "wait_us": round(middle("wait_us"), 1), "missed": middle("missed"),
            "hogs_cpus": round(middle("hogs_us") / 1e6 / seconds, 2),
            "held": ", ".join(sorted({name for run in runs for name in run["held"]})) or "-"}


def goal_rows(tree, results, seconds):
    def middle(way, key):
        return statistics.median(run[key] for run in results[way])

    rows = []
    for key, what in (("p99", "p99"), ("wait_us", "mean wait for a CPU")):
        cut = middle("by hand", key) / middle("unmanaged", key)
        ratio = middle("managed", key) / middle("unmanaged", key)
        rows.append(stage.row(f"{tree}: managed ÷ by hand, {what}", {},
                              contention.ORACLE_GOAL,
                              middle("managed", key) / middle("by hand", key)))
        rows.append(contention.cut_row(f"{tree}: managed ÷ unmanaged, {what}", ratio, cut))
        rows.append(contention.fail_row(tree, "renice all", what, middle("unmanaged", key)
                                        / middle("renice all", key)))
    rows.append(stage.row(f"{tree}: managed: CPU that the hogs lose", {}, contention.LOSS_GOAL,
                          1 - middle("managed", "hogs_us") / middle("unmanaged", "hogs_us")))
    rows.append(stage.row(f"{tree}: managed: lever writes per second, steady", {},
                          contention.WRITES_GOAL, middle("managed", "writes") / seconds))
    return rows


def main():
    chosen = stage.arguments(__doc__.splitlines()[0], seconds=6, repetitions=3, trees=2)
    made = in_machine(chosen)
    sections = {}
    for tree in contention.UNITS[: chosen.trees]:
        results = {way: [run for run in made if (run["tree"], run["way"]) == (tree, way)]
                   for way in WAYS}
        rows = [stage.row(f"{tree}: {way}", figures_of(runs, chosen.seconds))
                for way, runs in results.items()]
        sections[f"4 hogs, {tree}, emulated"] = rows + goal_rows(tree, results, chosen.seconds)
    stage.report("units", sections, chosen.json)


if __name__ == "__main__":
    stage.run(main)
