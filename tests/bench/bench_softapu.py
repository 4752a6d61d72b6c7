#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""CPU time that the software APU costs: idle, and beside a program that dispatches.

Its share is what its threads in the program ("softapu-...") and its supervisor use; the rest of the
program is the program's and ROCr's own."""

import contextlib
import json
import os
import subprocess
import tempfile
import time

import stage

MODEL = "rembrandt"
GOAL_PERCENT = 5.0
# name, tokens a second, kernels each
LOADS = (("1000 dispatches/s, one by one", 1000, 1), ("1000 dispatches/s, in tens", 100, 10))


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


def dispatched(directory):
    out = subprocess.run([softapu("softapu-stat"), directory], capture_output=True, text=True,
                         check=True).stdout
    return sum(queue["dispatches"] for queue in json.loads(out)["queues"])


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
    rate = round((dispatched(directory) - count) * 1e9 / took)
    return used, {**used, "dispatches_per_s": rate}


def of_the_apu(used):
    return used["threads_percent"] + used["supervisor_percent"]


def measure(directory, server, seconds):
    used, figures = watch(directory, server, None, seconds)
    yield stage.row("idle, no program", figures, 0.0, of_the_apu(used), " %")
    joined = (softapu("softapu-run"), "--join", directory, "--")
    with running(*joined, softapu("programs", "apu_check"), "hold", first="holding") as program:
        used, figures = watch(directory, server, program.pid, seconds)
        yield stage.row("idle, with a queue", figures)  # its sensors are refreshed
    for name, rate, kernels in LOADS:
        command = (*joined, softapu("programs", "decode_loop"), "--rate", str(rate),
                   "--kernels-per-token", str(kernels), "--kernel", "noop")
        with running(*command, first="{") as program:
            used, figures = watch(directory, server, program.pid, seconds)
            yield stage.row(name, figures, GOAL_PERCENT, of_the_apu(used), " %")


def main():
    chosen = stage.arguments(__doc__.splitlines()[0], seconds=10)
    with tempfile.TemporaryDirectory(prefix="softapu-bench-") as directory, running(
            softapu("softapu-run"), "--session", directory, "--serve", "--model", MODEL,
            first="ready") as server:
        rows = list(measure(directory, server.pid, chosen.seconds))
    stage.report("softapu", {f"{MODEL}, {chosen.seconds} s each, percent of a core": rows},
                 chosen.json)


if __name__ == "__main__":
    stage.run(main)
