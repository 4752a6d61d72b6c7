#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""CPU time that the software APU costs: idle, and beside a program that dispatches.

Its share is what its threads in the program ("softapu-...") and its supervisor use; the rest of the
program is the program's and ROCr's own. In each repetition the floor of this machine is measured
too: a thread that is woken 1,000 times a second, by a futex or by a watched doorbell, and does
nothing. Medians over the repetitions."""

import contextlib
import json
import os
import statistics
import subprocess
import tempfile
import time

import stage

MODEL = "rembrandt"
GOAL_PERCENT = 5.0
# name, tokens a second, kernels each
LOADS = (("1000 dispatches/s, one by one", 1000, 1), ("1000 dispatches/s, in tens", 100, 10))
FLOORS = ("futex", "doorbell")


def softapu(*parts):
    return os.path.join(os.environ["APUSCHED_BUILD_DIR"], "tests", "softapu", *parts)


def cpu_ns(pid):
    """CPU time of a process's threads, by whose they are."""
    times = {"softapu": 0, "program": 0}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8") as file:
            whose = "softapu" if file.read().startswith("softapu-") else "program"
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as file:
            times[whose] += int(file.read().split()[0])
    return times


@contextlib.contextmanager
def running(*command, first=""):
    """A process from its first line, which begins so, to the end of the block."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        try:
            if not process.stdout.readline().startswith(first):
                raise stage.BrokenRun(f"{command[0]} did not start")
            yield process
        finally:
            process.kill()


def joined(directory):
    return (softapu("softapu-run"), "--join", directory, "--")


def stat(directory):
    return json.loads(subprocess.run([softapu("softapu-stat"), directory], capture_output=True,
                                     text=True, check=True).stdout)


def dispatched(directory):
    return sum(queue["dispatches"] for queue in stat(directory)["queues"])


def watch(directory, server, program, seconds):
    """What each used in that time, in percent of a core, and dispatches per second; `program` may
    be None."""
    time.sleep(1)  # it has started up; the time of measuring is the method

    def now():
        inside = cpu_ns(program) if program else {"program": 0, "softapu": 0}
        return {"program": inside["program"], "threads": inside["softapu"],
                "supervisor": sum(cpu_ns(server).values())}

    begin, count, start = now(), dispatched(directory), time.monotonic_ns()
    time.sleep(seconds)
    end, took = now(), time.monotonic_ns() - start
    used = {f"{name}_percent": round((end[name] - begin[name]) * 100 / took, 3) for name in end}
    return {**used, "dispatches_per_s": round((dispatched(directory) - count) * 1e9 / took)}


def idle(directory, server, seconds):
    yield "idle, no program", watch(directory, server, None, seconds)
    with running(*joined(directory), softapu("programs", "apu_check"), "hold",
                 first="holding") as program:
        eventually_at_rest(directory)
        yield "idle, with a queue", watch(directory, server, program.pid, seconds)


def eventually_at_rest(directory):
    """What the start of the program did to the sensors is over."""
    deadline = time.monotonic() + 60
    while not stat(directory)["readings_rest"]:
        if time.monotonic() > deadline:
            raise stage.BrokenRun("the readings do not come to rest")
        time.sleep(0.05)


def loaded(directory, server, seconds):
    for name, rate, kernels in LOADS:
        command = (*joined(directory), softapu("programs", "decode_loop"), "--rate", str(rate),
                   "--kernels-per-token", str(kernels), "--kernel", "noop")
        with running(*command, first="{") as program:
            yield name, watch(directory, server, program.pid, seconds)


def floors(seconds):
    for kind in FLOORS:
        done = subprocess.run([stage.program("wake_floor"), kind, str(seconds)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise stage.BrokenRun(done.stderr)
        yield f"floor: 1000 wake-ups/s by a {kind}", json.loads(done.stdout)


def measure(directory, server, chosen):
    """Name -> the figures of each repetition."""
    seen = {}
    for _ in range(chosen.repetitions):
        for name, figures in (*idle(directory, server, chosen.seconds),
                              *loaded(directory, server, chosen.seconds), *floors(chosen.seconds)):
            seen.setdefault(name, []).append(figures)
    return seen


def rows(seen):
    goals = {"idle, no program": 0.0, "idle, with a queue": 0.0,
             **{load[0]: GOAL_PERCENT for load in LOADS}}
    for name, all_figures in seen.items():
        figures = {key: statistics.median(one[key] for one in all_figures)
                   for key in all_figures[0]}
        if name not in goals:
            yield stage.row(name, figures)
            continue
        apu = statistics.median(one["threads_percent"] + one["supervisor_percent"]
                                for one in all_figures)
        yield stage.row(name, figures, goals[name], apu, " %")


def main():
    chosen = stage.arguments(__doc__.splitlines()[0], seconds=10, repetitions=3)
    with tempfile.TemporaryDirectory(prefix="softapu-bench-") as directory, running(
            softapu("softapu-run"), "--session", directory, "--serve", "--model", MODEL,
            first="ready") as server:
        seen = measure(directory, server.pid, chosen)
    title = f"{MODEL}, {chosen.repetitions} times {chosen.seconds} s each, percent of a core"
    stage.report("softapu", {title: list(rows(seen))}, chosen.json)


if __name__ == "__main__":
    stage.run(main)
