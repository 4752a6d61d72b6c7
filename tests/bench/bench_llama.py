#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Debian's llama-server on the CPU beside CPU hogs: tokens per second and the time between tokens.

The model is small and its weights are random: what the engine does for a token is real, the words
mean nothing. In turns: alone, untouched, every thread at nice -20, by gamemoded, by hand (the group
that decides at a hundred times the weight, and nice -20), and managed, which is the registration and
nothing else. Needs llama-server, which Debian 12 has not: packaging/matrix sid
../../tests/bench/bench_llama.py"""

import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import contention
import stage

WAYS = ("alone", "unmanaged", "nice -20", "gamemoded", "by hand", "managed")
MANAGED_GOAL = 1 / 0.95
PATIENCE_S, SETTLE_S = 180, 2
MODEL = os.path.join(stage.HERE, "..", "engine", "random_gguf.py")
PERCENTILES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))


class Engine(contention.Beside):
    """llama-server with as many threads as there are CPUs, no GPU, and the hogs of a tree."""

    def __init__(self, tree, machine, model):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        self.machine, self.model = machine, model
        super().__init__(tree)

    def loop_command(self):
        return ["/bin/sh", "-c", 'exec "$@" > "$0" 2>&1', f"{self.machine.dir}/server.log",
                "llama-server", "-m", self.model, "-ngl", "0", "-c", "4096", "-np", "1", "-t",
                str(os.cpu_count()), "--host", "127.0.0.1", "--port", self.url.rsplit(":", 1)[1]]

    def await_ready(self):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if self.loop.poll() is not None:
                with open(f"{self.machine.dir}/server.log", encoding="utf-8") as log:
                    raise stage.BrokenRun(f"llama-server ended: {log.read()[-500:]}")
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=5):
                    return
            except (urllib.error.HTTPError, OSError):
                time.sleep(0.1)
        raise stage.BrokenRun("llama-server is not ready")

    def tokens_ms(self, seconds, most=2000, least=16):
        """When each token was there, by the engine's own clock: whoever asks has to wait for a CPU
        as well, and sees them in bursts. Breaks off after so long."""
        request = urllib.request.Request(
            f"{self.url}/completion",
            json.dumps({"prompt": "w1 w2 w3", "n_predict": most, "ignore_eos": True,
                        "stream": True, "cache_prompt": False,
                        "timings_per_token": True}).encode(),
            {"Content-Type": "application/json"})
        came, until = [], time.monotonic() + seconds
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            for line in answer:
                if line.startswith(b"data: {") and b'"timings"' in line:
                    came.append(json.loads(line[5:])["timings"]["predicted_ms"])
                if len(came) >= least and time.monotonic() > until:
                    break
        if len(came) < least:
            raise stage.BrokenRun(f"the engine told of {len(came)} tokens")
        return sorted(set(came))


class Bench(contention.Scene):
    def __init__(self, tree, model, chosen):
        super().__init__(tree)
        self.model, self.seconds = model, chosen.seconds
        # In units others hardly get the CPU: their group weighs more.
        self.most_foreign = 1 if self.units else chosen.foreign / 100
        self.refused = {}
        if not self.start_gamemoded():
            self.refused["gamemoded"] = "it is not installed"
        if why_not := contention.why_not_managed(tree):
            self.refused["managed"] = why_not
        self.ways = [way for way in WAYS if way not in self.refused]

    def quietest(self, way):
        return contention.quietest(lambda: self.once(way), self.most_foreign)

    def once(self, way):
        engine = self.put(Engine(self.tree, self.machine, self.model))
        try:
            engine.tokens_ms(0)  # everything is loaded, every thread is there
            self.treat(way, engine)
            begun = engine.start() if way != "alone" else time.monotonic()
            engine.tokens_ms(SETTLE_S)  # the closed loop acts on an engine at work
            usage = contention.Usage(engine)
            between, until = [], time.monotonic() + self.seconds
            while not between or time.monotonic() < until:
                came = engine.tokens_ms(until - time.monotonic())
                between += [later - earlier for earlier, later in zip(came, came[1:])]
            made = {"rate": 1000 * len(between) / sum(between), "between": sorted(between),
                    **usage.end()}
            if way == "managed":
                made["history"] = contention.told(self.machine, engine.pid, begun)
            return made
        finally:
            self.let_go_by_hand()
            engine.close()

    def treat(self, way, engine):
        if way == "nice -20":
            contention.renice_all(engine, -20)
        elif way == "by hand":
            self.hold_by_hand(engine)
        elif way == "gamemoded":
            self.register_game(engine)
        elif way == "managed":
            self.machine.register(engine.pid, "llm-interactive")


def percentile(between, share):
    return between[min(len(between) - 1, int(share * len(between)))]


def figures_of(runs):
    figures = {"tokens_per_s": round(statistics.median(run["rate"] for run in runs), 1),
               "each": [round(run["rate"], 1) for run in runs]}
    for name, share in PERCENTILES:
        figures[f"{name}_ms"] = round(
            statistics.median(percentile(run["between"], share) for run in runs), 2)
    figures["hogs_cpus"] = round(statistics.median(run["hogs"] for run in runs), 2)
    figures["foreign"] = round(max(run["foreign"] for run in runs), 2)
    if "history" in runs[-1]:
        figures["history"] = runs[-1]["history"]
    return figures


def ratio_row(tree, results, way, most_foreign, goal=None):
    """Where others took the CPU "alone" was not alone, and the ratio is chance: not judged."""
    name = f"{tree}: alone ÷ {way}, tokens per second"
    ratios = [alone["rate"] / run["rate"] for alone, run in zip(results["alone"], results[way])
              if alone["foreign"] <= most_foreign]
    if not ratios:
        foreign = min(run["foreign"] for run in results["alone"])
        return {"name": name, "skipped": f"alone was not alone: others took {foreign:.0%} of the "
                                         f"CPU, at most {most_foreign:.0%} are bearable"}
    figures = {"each": [round(ratio, 2) for ratio in ratios]}
    middle = statistics.median(ratios)
    if goal is None:
        return {"name": name, "ratio": round(middle, 2), **figures}
    return stage.row(name, figures, goal, middle)


def measure(tree, model, chosen):
    why_not = contention.refusal(tree)
    if why_not:
        return [{"name": tree, "skipped": why_not}]
    bench = Bench(tree, model, chosen)
    try:
        results = {way: [] for way in bench.ways}
        for _ in range(chosen.repetitions):
            for way in bench.ways:
                results[way].append(bench.quietest(way))
    finally:
        bench.close()
    rows = [stage.row(f"{tree}: {way}", figures_of(runs)) for way, runs in results.items()]
    rows += [{"name": f"{tree}: {way}", "skipped": why} for way, why in bench.refused.items()]
    rows.append(ratio_row(tree, results, "by hand", bench.most_foreign))
    if "managed" in results:
        rows.append(ratio_row(tree, results, "managed", bench.most_foreign, MANAGED_GOAL))
    return rows


def main():
    chosen = stage.arguments(__doc__.splitlines()[0], seconds=4, repetitions=3, trees=4,
                             foreign=20, width=512, layers=8)
    if shutil.which("llama-server") is None:
        raise stage.BrokenRun("no llama-server is installed here (Debian: llama.cpp-tools, not in "
                              "12): packaging/matrix sid ../../tests/bench/bench_llama.py")
    # In the engine's own session no group lever acts.
    trees = [tree for tree in contention.SESSIONS + contention.UNITS if tree != "same session"]
    sections = {}
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/random.gguf"
        subprocess.run([sys.executable, MODEL, model, "--width", str(chosen.width), "--layers",
                        str(chosen.layers)], check=True)
        for tree in trees[: chosen.trees]:
            sections[f"{contention.HOGS} hogs, {tree}"] = measure(tree, model, chosen)
    stage.report("llama", sections, chosen.json)


if __name__ == "__main__":
    stage.run(main)
