#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The part of packaging/demo that runs: see there.

Two inference-like workloads and CPU load, each in a session of its own as if started by different
users; one workload is registered. The figures are the workloads' own."""

import ctypes
import json
import os
import queue
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

REPORT_S = 3  # seconds of one report of a workload
REPORTS = 3  # each line of the table is the median of so many
RATE = 50  # tokens per second of each workload
PATIENCE_S = 30

BUS_CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>{address}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow eavesdrop="false"/>
<allow own="*"/><allow user="root"/></policy></busconfig>
"""


class DemoError(Exception):
    """A sentence for the user."""


def die_with_parent():
    """Whatever happens to the demo, its processes end."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def wait_for(condition, what, process=None):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if process is not None and process.poll() is not None:
            raise DemoError(f"{what}: the process ended with {process.returncode}")
        if time.monotonic() > end:
            raise DemoError(f"{what}: not there after {PATIENCE_S} s")
        time.sleep(0.05)


class Workload:
    """One decode_loop; its reports arrive on a queue."""

    def __init__(self, name, process):
        self.name = name
        self.process = process
        self.reports = queue.Queue()
        self.last_delay_ns = None
        threading.Thread(target=self._read, daemon=True).start()
        if self._next()["event"] != "ready":
            raise DemoError(f"{name} did not get ready")

    def _read(self):
        for line in self.process.stdout:
            self.reports.put(json.loads(line))
        self.reports.put(None)

    def _next(self):
        report = self.reports.get(timeout=PATIENCE_S)
        if report is None:
            raise DemoError(f"{self.name} ended early")
        self._note_delay(report)
        return report

    def _note_delay(self, report):
        total = sum(t["run_delay_ns"] for t in report["threads"])
        self.delay_ms = 0 if self.last_delay_ns is None else (total - self.last_delay_ns) / 1e6
        self.last_delay_ns = total

    def fresh_report(self):
        """p50, p99 (µs) and run_delay (ms per second), medians of reports after the call."""
        while not self.reports.empty():
            self._next()
        self._next()  # began before
        rows = []
        for _ in range(REPORTS):
            latency = self._next()["dispatch_latency_us"]
            rows.append((latency["p50"], latency["p99"], max(self.delay_ms, 0) / REPORT_S))
        return tuple(statistics.median(column) for column in zip(*rows))


class Demo:
    """Owns every process and file of the demo; close() ends and removes them."""

    def __init__(self, build, real):
        self.build = os.path.abspath(build)
        self.real = real
        self.dir = tempfile.mkdtemp(prefix="apusched-demo-")
        os.chmod(self.dir, 0o755)  # the GPU helper is another user
        self.address = f"unix:path={self.dir}/bus"
        self.started = []
        self.log = None  # of the bus and of the daemon

    def program(self, *parts):
        return os.path.join(self.build, *parts)

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def start(self, command, **options):
        process = subprocess.Popen(
            command, start_new_session=True, preexec_fn=die_with_parent, **options
        )
        self.started.append(process)
        return process

    def on_gpu(self, *command):
        if self.real:
            return list(command)
        run = self.program("tests", "softapu", "softapu-run")
        return [run, "--join", f"{self.dir}/apu", "--", *command]

    def start_bus(self):
        config = self.write("bus.conf", BUS_CONFIG.format(address=self.address))
        self.log = open(f"{self.dir}/log", "w+", encoding="utf-8")
        bus = self.start(["dbus-daemon", "--nofork", f"--config-file={config}"], stderr=self.log)
        wait_for(lambda: os.path.exists(f"{self.dir}/bus"), "the private bus", bus)

    def start_gpu(self):
        if self.real:
            if not os.path.exists("/dev/kfd"):
                raise DemoError("--real needs /dev/kfd: an AMD GPU with the amdgpu driver")
            return
        run = self.program("tests", "softapu", "softapu-run")
        apu = self.start([run, "--session", f"{self.dir}/apu", "--serve", "--model", "rembrandt"],
                         stdout=subprocess.DEVNULL)
        wait_for(lambda: os.path.exists(f"{self.dir}/apu/ready"), "the software APU", apu)

    def start_daemon(self):
        helper = self.program("daemon", "gpu_helper", "apusched-gpu-helper")
        words = " ".join(self.on_gpu(helper))
        wrapper = self.write("gpu-helper", f'#!/bin/sh\nexec {words} "$@"\n', 0o755)
        config = self.write("apuschedd.yaml", "gpu: {helper_user: nobody}\n")
        sysfs = "/sys" if self.real else f"{self.dir}/apu/sys"
        daemon = self.start(
            [self.program("daemon", "apuschedd"), "--config", config, f"--bus={self.address}",
             "--sysfs-root", sysfs, "--runtime-dir", f"{self.dir}/run", "--gpu-helper", wrapper,
             "--gpu-write", self.program("daemon", "gpu_helper", "apusched-gpu-write")],
            stderr=self.log)
        wait_for(lambda: self.ctl("list", quiet=True) == 0, "apuschedd", daemon)

    def start_workload(self, name):
        loop = self.program("tests", "softapu", "programs", "decode_loop")
        command = self.on_gpu(loop, "--rate", str(RATE), "--report", str(REPORT_S))
        return Workload(name, self.start(command, stdout=subprocess.PIPE, text=True))

    def start_load(self):
        for _ in range(2 * (os.cpu_count() or 1)):
            self.start(["sh", "-c", "while :; do :; done"])

    def ctl(self, *arguments, quiet=False):
        sink = subprocess.DEVNULL if quiet else None
        sys.stdout.flush()
        return subprocess.run(
            [self.program("client", "ctl", "apuschedctl"), f"--bus={self.address}", *arguments],
            stdout=sink, stderr=sink, check=False, timeout=PATIENCE_S).returncode

    def close(self):
        for process in reversed(self.started):  # one by one: a workload needs its GPU to the end
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


class Results:
    """The table of what the workloads measured."""

    def __init__(self):
        self.rows = []

    def measure(self, situation, workloads):
        print(f"demo: measuring: {situation}", flush=True)
        reports = [None] * len(workloads)

        def take(index, workload):
            try:
                reports[index] = workload.fresh_report()
            except (DemoError, queue.Empty) as error:
                reports[index] = error

        # daemons: a demo that is interrupted does not wait for them
        threads = [threading.Thread(target=take, args=pair, daemon=True)
                   for pair in enumerate(workloads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for workload, report in zip(workloads, reports):
            if isinstance(report, Exception):
                raise report
            self.rows.append((situation, workload.name, *report))

    def show(self):
        print(f"\n{'':34} {'workload':<10} {'dispatch p50':>12} {'p99':>11} {'run_delay':>12}")
        for situation, name, p50, p99, delay in self.rows:
            print(f"{situation:<34} {name:<10} {p50:>9.0f} µs {p99:>8.0f} µs {delay:>7.1f} ms/s")
        before, after = self.rows[2], self.rows[4]
        print(f"\n{before[1]}: p99 {before[3]:.0f} µs before, {after[3]:.0f} µs after it was "
              f"registered; waiting for a CPU {before[4]:.1f} ms/s before, {after[4]:.1f} after.")


def run(demo):
    if not demo.real:
        print("\nThe GPU of this demo is a software model below AMD's real HSA runtime: it runs on "
              "the\nworkloads' own threads. Nothing here is a figure of real silicon.\n")
    demo.start_bus()
    demo.start_gpu()
    demo.start_daemon()
    results = Results()
    both = [demo.start_workload("assistant"), demo.start_workload("other")]
    results.measure("no load", both)
    demo.start_load()
    results.measure("CPU load, nobody registered", both)
    pid = str(both[0].process.pid)
    print(f"demo: apuschedctl register {pid} --profile llm-interactive\n")
    if demo.ctl("register", pid, "--profile", "llm-interactive", quiet=True) != 0:
        raise DemoError("the assistant could not be registered")
    results.measure("CPU load, assistant registered", both)
    print("\ndemo: apuschedctl status\n")
    if demo.ctl("status") != 0:
        raise DemoError("status failed")
    results.show()
    print(f"\ndemo: apuschedctl unregister {pid}")
    if demo.ctl("unregister", pid) != 0:
        raise DemoError("the assistant could not be released")


def stop(_signal, _frame):
    raise KeyboardInterrupt


def main():
    signal.signal(signal.SIGTERM, stop)
    begun = time.monotonic()
    demo = Demo(sys.argv[1], "--real" in sys.argv[2:])
    try:
        run(demo)
        return 0
    except KeyboardInterrupt:
        print("\ndemo: interrupted, cleaning up", file=sys.stderr)
        return 130
    except (DemoError, queue.Empty, subprocess.TimeoutExpired) as error:
        print(f"demo: {error}", file=sys.stderr)
        if demo.log:
            demo.log.seek(0)
            print(f"log of the bus and of apuschedd:\n{demo.log.read()}", file=sys.stderr)
        return 1
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        demo.close()
        print(f"demo: ran and cleaned up in {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
