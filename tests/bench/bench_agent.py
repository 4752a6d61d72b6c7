#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the agent costs a program that submits kernels, below the software APU.

Five ways to start one program, in turns: without anything, with the agent (attached to a daemon that
asks for nothing, and sampling at 100 Hz), with the runtime's own intercept queues and a handler that
does nothing, and with the agent's serial mode. Submissions are timed on the submitting thread, in
batches; what counts is the difference of their 10th percentiles, which other work on the machine
moves least, medians over the repetitions. --count-instructions runs callgrind."""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(SOURCE, "tests", "doubles"))

import agent_daemon  # noqa: E402

BUILD = os.path.abspath(os.environ["APUSCHED_BUILD_DIR"])
SOFTAPU = os.path.join(BUILD, "tests", "softapu", "softapu-run")
PROGRAM = os.path.join(BUILD, "tests", "bench", "agent_dispatches")
AGENT = os.path.join(BUILD, "client", "agent", "libapusched-agent.so")
INTERCEPT = os.path.join(BUILD, "tests", "bench", "libintercept_tool.so")
PERIOD_NS = 50_000  # of 20,000 dispatches per second
LOSS_GOAL, SERIAL_GOAL_NS = 0.005, 150
WAYS = ("bare", "idle", "sampling", "intercept", "serial")


def environment_of(way, socket):
    tools = {"bare": "", "intercept": INTERCEPT}.get(way, AGENT)
    result = [f"HSA_TOOLS_LIB={tools}", f"APUSCHED_AGENT_SOCKET={socket}"] if tools else []
    return result + (["APUSCHED_SERIAL=1"] if way == "serial" else [])


def settings_of(way):
    return {"sampling": {"sample_hz": 100}, "serial": {"serial": 1}}.get(way, {})


def run(way, arguments, before=()):
    directory = tempfile.mkdtemp(prefix="apusched-bench-")
    socket = f"{directory}/agent.sock"
    daemon = agent_daemon.FakeDaemon(
        socket, prepare=lambda peer: peer.set(wake=False, **settings_of(way)))
    try:
        out = subprocess.run(
            [SOFTAPU, "--", "/usr/bin/env", *environment_of(way, socket), *before, PROGRAM,
             *arguments], capture_output=True, text=True, check=False)
        if out.returncode != 0:
            raise SystemExit(f"{way}: {out.stderr}")
        return out
    finally:
        daemon.end()
        shutil.rmtree(directory)


def instructions(way, count):
    """Per reservation of a packet, of all that happens in it."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise SystemExit("valgrind is not installed")
    with tempfile.TemporaryDirectory() as directory:
        out = run(way, ["--reserve-only", str(count)],
                  ["SOFTAPU_NO_USERFAULTFD=1", valgrind, "--tool=callgrind",
                   f"--callgrind-out-file={directory}/out", "--toggle-collect=*reserve*"])
    collected = re.search(r"Collected : (\d+)", out.stderr)
    return int(collected.group(1)) / count


def goal(value, limit):
    return {"value": value, "at_most": limit, "met": value <= limit}


def summary(results):
    median = {way: {key: statistics.median(one[key] for one in results[way])
                    for key in results[way][0]} for way in WAYS}

    def more(way, than):
        return median[way]["submit_ns_p10"] - median[than]["submit_ns_p10"]
    return {"ways": median,
            "loss_idle": goal(more("idle", "bare") / PERIOD_NS, LOSS_GOAL),
            "loss_sampling": goal(more("sampling", "bare") / PERIOD_NS, LOSS_GOAL),
            "serial_over_intercept_ns": goal(more("serial", "intercept"), SERIAL_GOAL_NS)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--batches", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=20000)
    parser.add_argument("--count-instructions", action="store_true")
    options = parser.parse_args()
    results = {way: [] for way in WAYS}
    for _ in range(options.repetitions):
        for way in WAYS:
            out = run(way, ["--batches", str(options.batches), "--rounds", str(options.rounds)])
            results[way].append(json.loads(out.stdout))
    result = summary(results)
    if options.count_instructions:
        result["instructions_per_reservation"] = {
            way: instructions(way, 10000) for way in ("bare", "idle", "sampling")}
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
