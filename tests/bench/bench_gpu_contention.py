#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A decode loop beside four background programs on one GPU, on the software APU.

All of them have the agent and are registered, but for the column "unmanaged". The loop gets nothing
but its registration with the built-in profile: "by hand" divides the compute units from the start,
as somebody would who knew what is to come, and the best such share counts. What counts begins after
the time that the loop is given to find its own. A statement about policy, not about silicon."""

import json
import os
import signal
import statistics
import subprocess
import time

import contention
import stage

RIVALS, P99_GOAL, LOSS_GOAL_PERCENT = 4, 1.05, 25
SHARES = (25, 50, 75)
PROFILES = "profiles:\n  bulk: {class: background, queue_priority: low}\n" + "".join(
    f"  hand-{share}: {{class: critical, queue_priority: high, cu_weight: {share * 4}, "
    f"cu_exclusive: true}}\n  bulk-{share}: {{class: background, queue_priority: low, "
    f"cu_weight: {100 - share}}}\n" for share in SHARES)
# Small kernels, as they are in token generation: they need two of the twelve compute units.
DECODE = ["--rate", "50", "--workgroups", "2"]
PATIENCE_S = 30


class Programs:
    """The loop and its rivals, as one way of managing them starts them."""

    def __init__(self, machine, harness, seconds, settle):
        self.machine, self.harness = machine, harness
        self.seconds, self.settle = seconds, settle

    def start(self, program, profile, *arguments):
        run = [self.harness.CTL, f"--bus={self.machine.address}", "run", "--now", "--profile", profile, "--"]
        process = self.machine.spawn(
            [self.harness.SOFTAPU, "--join", self.machine.apu, "--", *(run if profile else []),
             os.path.join(os.environ["APUSCHED_BUILD_DIR"], "tests", "softapu", "workloads", program), *arguments],
            stdout=subprocess.PIPE, text=True)
        process.stdout.readline()  # it dispatches from now on
        return process

    def measure(self, loop_profile, rival_profile, rivals=RIVALS):
        skip = ["--skip", str(self.settle)]
        loop = self.start("decode", loop_profile, *DECODE, *skip)
        beside = [self.start("hog", rival_profile, *skip) for _ in range(rivals)]
        begun = time.monotonic()
        time.sleep(self.settle)
        busy, every = contention.machine_s()
        time.sleep(self.seconds)
        used = [after - before for after, before in zip(contention.machine_s(), (busy, every))]
        view = self.view(loop.pid)
        if view:
            view["history"] = contention.told(self.machine, loop.pid, begun)
        made = {"loop": finish(loop), "rounds": sum(finish(each)["rounds"] for each in beside)}
        return {**made, **view, "busy": used[0] / used[1]}

    def view(self, pid):
        for properties in self.machine.call("ListProcesses").values():
            control = properties.get("GpuControl")
            if int(properties["Pid"]) == pid and control:
                return {"state": str(control["state"]), "held": [str(x) for x in control["engaged"]]}
        return {}


def finish(process):
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=PATIENCE_S)
    if process.returncode != 0:
        raise stage.BrokenRun(f"a program ended with {process.returncode}")
    return json.loads(out.splitlines()[-1])


def once(programs):
    made = {"alone": programs.measure("bulk", None, rivals=0),
            "unmanaged": programs.measure(None, None),
            "managed": programs.measure("llm-interactive", "bulk"),
            "alone again": programs.measure("bulk", None, rivals=0)}
    hands = [programs.measure(f"hand-{share}", f"bulk-{share}") for share in SHARES]
    made["by hand"] = min(hands, key=lambda one: one["loop"]["round_latency_us"]["p99"])
    return made


def rows_of(runs):
    rows = []
    for way in runs[0]:
        latency = [run[way]["loop"]["round_latency_us"] for run in runs]
        figures = {f"{key}_us": round(statistics.median(one[key] for one in latency))
                   for key in ("p50", "p99")}
        figures["rounds"] = round(statistics.median(run[way]["loop"]["rounds"] for run in runs))
        figures["background"] = round(statistics.median(run[way]["rounds"] for run in runs))
        if way == "managed":
            figures["held"] = "; ".join(sorted({"+".join(run[way].get("held", [])) or "nothing"
                                                for run in runs}))
        # Where no CPU is left the engine and the programs' threads wait for one, whatever the policy.
        figures["cpus_busy"] = round(statistics.median(run[way]["busy"] for run in runs), 2)
        figures["each_p99_us"] = [round(one["p99"]) for one in latency]
        if way == "managed":
            figures["history"] = [run[way].get("history", []) for run in runs]
        rows.append(stage.row(way, figures))

    def ratios(way, floor):
        return [run[way]["loop"]["round_latency_us"]["p99"]
                / run[floor]["loop"]["round_latency_us"]["p99"] for run in runs]

    def ratio_row(way, floor, goal=None):
        each = ratios(way, floor)
        figures = {"ratio": round(statistics.median(each), 3),
                   "each": [round(one, 2) for one in each]}
        name = f"{way} / {floor}, p99"
        return stage.row(name, figures, goal, None if goal is None else statistics.median(each))

    loss = statistics.median(100 - 100 * run["managed"]["rounds"] / run["unmanaged"]["rounds"]
                             for run in runs)
    rows.append(ratio_row("managed", "alone", P99_GOAL))
    # What the machine does to "alone" by itself: a ratio within this says nothing of the policy.
    rows.append(ratio_row("alone again", "alone"))
    rows.append(ratio_row("managed", "unmanaged"))
    rows.append(ratio_row("by hand", "alone"))
    rows.append(stage.row("what the background loses", {}, LOSS_GOAL_PERCENT, loss, " %"))
    return rows


def main():
    chosen = stage.arguments(__doc__.splitlines()[0], seconds=4, settle=20, repetitions=3)
    machine = stage.make_stage(config=PROFILES, with_gpu=True, with_systemd=False)
    import harness

    try:
        agent = os.path.join(os.environ["APUSCHED_BUILD_DIR"], "client", "agent",
                             "libapusched-agent.so")
        machine.start_daemon("--agent-library", agent)
        programs = Programs(machine, harness, chosen.seconds, chosen.settle)
        runs = [once(programs) for _ in range(chosen.repetitions)]
        stage.report("gpu contention", {"decode loop beside four hogs, software APU": rows_of(runs)},
                     chosen.json)
    finally:
        machine.close()


if __name__ == "__main__":
    stage.run(main)
