# SPDX-License-Identifier: MIT
"""A private machine for one test: bus, mocked systemd, software APU and the real apuschedd.

Nothing here sleeps for a fixed time: everything waits for a condition and fails with what was
seen last. The daemon's log is printed when a test fails."""

import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import dbus
import dbus.bus

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.environ["APUSCHED_BUILD_DIR"]
DAEMON = os.path.join(BUILD, "daemon", "apuschedd")
CTL = os.path.join(BUILD, "client", "ctl", "apuschedctl")
# The helper runs below LD_PRELOAD, which AddressSanitizer does not allow: a build with sanitizers
# names a plain one for it (and for the software APU, which is plain anyway).
PLAIN = os.environ.get("APUSCHED_PLAIN_BUILD_DIR", BUILD)
HELPER = os.path.join(PLAIN, "daemon", "gpu_helper", "apusched-gpu-helper")
WRITER = os.path.join(BUILD, "daemon", "gpu_helper", "apusched-gpu-write")
SOFTAPU = os.path.join(PLAIN, "tests", "softapu", "softapu-run")
SOFTAPU_CTL = os.path.join(PLAIN, "tests", "softapu", "softapu-ctl")
DECODE = os.path.join(PLAIN, "tests", "softapu", "programs", "decode_loop")
PYTHON = "/usr/bin/python3"
NAME = "org.apusched1"
DEADLINE_S = 30
NOBODY = 65534

OPEN_POLICY = """<policy context="default"><allow user="*"/><allow own="*"/>
<allow send_type="method_call"/><allow send_type="signal"/><allow send_requested_reply="true"/>
<allow receive_type="method_call"/><allow receive_type="method_return"/>
<allow receive_type="error"/><allow receive_type="signal"/></policy>"""

# What a system bus does before any service's policy file is read.
SYSTEM_POLICY = """<policy context="default"><allow user="*"/><deny own="*"/>
<deny send_type="method_call"/><allow send_type="signal"/>
<allow send_requested_reply="true" send_type="method_return"/>
<allow send_requested_reply="true" send_type="error"/>
<allow receive_type="method_call"/><allow receive_type="method_return"/>
<allow receive_type="error"/><allow receive_type="signal"/>
<allow send_destination="org.freedesktop.DBus"/></policy>"""

CONFIG = """gpu:
  helper_user: nobody
  helper_deadline_ms: 2000
limits:
  scan_interval_ms: 200
access:
  group: games
profiles:
  llm-interactive:
    class: critical
    nice: -10
    autogroup_nice: -10
    cpu_weight: 1000
    io_weight: 500
    performance_level: high
  background:
    class: background
    nice: 10
"""


def rocr_major():
    """Of the runtime below the helper and the workloads."""
    version = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${source:Upstream-Version}", "libhsa-runtime64-1"],
        capture_output=True, text=True, check=True,
    ).stdout
    return int(version.split(".")[0])


def eventually(condition, what, deadline=DEADLINE_S):
    """Waits until `condition` returns something true, and returns that."""
    end = time.monotonic() + deadline
    while True:
        seen = condition()
        if seen:
            return seen
        if time.monotonic() > end:
            raise AssertionError(f"waited {deadline} s in vain for: {what}; last seen: {seen!r}")
        time.sleep(0.02)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


def alive(pid):
    try:
        return read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def nices(pid):
    """Nice value of every thread."""
    result = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            result[int(tid)] = os.getpriority(os.PRIO_PROCESS, int(tid))
        except ProcessLookupError:
            pass
    return result


class Machine:
    """Everything started is ended by close(), in reverse order."""

    def __init__(self, policy=OPEN_POLICY, with_systemd=True, with_gpu=True, model="rembrandt",
                 apu_options=()):
        self.dir = tempfile.mkdtemp(prefix="apusched-it-")
        os.chmod(self.dir, 0o755)
        self.started = []
        self.daemon = None
        self.address = f"unix:path={self.dir}/bus"
        self.control_dir = f"{self.dir}/control"
        os.mkdir(self.control_dir)
        self.config = self.write("apuschedd.yaml", CONFIG)
        self.log = f"{self.dir}/daemon.log"
        self.cpu_latency = f"{self.dir}/cpu_dma_latency"
        self._start_bus(policy)
        if with_systemd:
            self._start_systemd()
        self.apu = f"{self.dir}/apu"
        self.sysfs = f"{self.apu}/sys"
        if with_gpu:
            self._start_apu(model, apu_options)
        else:
            os.makedirs(self.sysfs)
        self.helper = self.write(
            "gpu-helper", f'#!/bin/sh\nexec {SOFTAPU} --join {self.apu} -- {HELPER} "$@"\n'
        )
        os.chmod(self.helper, 0o755)
        self.writer = WRITER
        self.before_daemon = []  # a command that starts the daemon with exec
        self._connection = None

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def script(self, name, text):
        path = self.write(name, text)
        os.chmod(path, 0o755)
        return path

    def spawn(self, command, **options):
        process = subprocess.Popen(command, start_new_session=True, **options)
        self.started.append(process)
        return process

    def _start_bus(self, policy):
        config = self.write(
            "bus.conf",
            '<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" '
            '"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">'
            f"<busconfig><type>system</type><listen>{self.address}</listen>"
            f"<auth>EXTERNAL</auth>{policy}</busconfig>",
        )
        self.spawn(
            ["dbus-daemon", f"--config-file={config}", "--nofork"], stderr=subprocess.DEVNULL
        )
        eventually(self._bus_listens, "the bus")

    def _bus_listens(self):
        # The socket's file is there before anybody listens on it.
        try:
            dbus.bus.BusConnection(self.address).close()
            return True
        except dbus.exceptions.DBusException:
            return False

    def _start_systemd(self):
        template = os.path.join(SOURCE, "tests", "integration", "systemd1_template.py")
        self.spawn(
            [PYTHON, "-m", "dbusmock", "--system", "--template", template, "--parameters",
             json.dumps({"control_dir": self.control_dir})],
            env=dict(os.environ, DBUS_SYSTEM_BUS_ADDRESS=self.address),
            stdout=subprocess.DEVNULL,
        )
        connection = dbus.bus.BusConnection(self.address)
        eventually(lambda: connection.name_has_owner("org.freedesktop.systemd1"), "mock systemd")

    def _start_apu(self, model, options=()):
        self.spawn(
            [SOFTAPU, "--session", self.apu, "--serve", "--model", model,
             *options],
            stdout=subprocess.DEVNULL,
        )
        eventually(lambda: os.path.exists(f"{self.apu}/ready"), "the software APU")

    # --- the daemon ---------------------------------------------------------------------------

    def daemon_command(self, *extra):
        return [
            DAEMON, "--config", self.config, f"--bus={self.address}", "--sysfs-root", self.sysfs,
            "--cpu-latency-device", self.cpu_latency,
            "--runtime-dir", f"{self.dir}/run", "--gpu-helper", self.helper, "--gpu-write",
            self.writer, "--systemd-control-dir", self.control_dir, "--log-level", "debug", *extra,
        ]

    def start_daemon(self, *extra):
        with open(self.log, "a", encoding="utf-8") as log:
            self.daemon = self.spawn([*self.before_daemon, *self.daemon_command(*extra)],
                                     stderr=log)
        bus = self.connection()
        eventually(
            lambda: bus.name_has_owner(NAME) or self.daemon.poll() is not None, "the daemon"
        )
        if self.daemon.poll() is not None:
            raise AssertionError(f"apuschedd ended with {self.daemon.returncode}: {self.log_text()}")
        return self

    def run_daemon(self, *extra, **options):
        """Runs apuschedd to its end: for --restore, --check-config and start-up errors."""
        return subprocess.run(
            self.daemon_command(*extra), capture_output=True, text=True, timeout=60, check=False,
            **options,
        )

    def kill_daemon(self):
        self.daemon.kill()
        self.daemon.wait()

    def stop_daemon(self):
        self.daemon.terminate()
        return self.daemon.wait(timeout=DEADLINE_S)

    def log_text(self):
        return read(self.log) if os.path.exists(self.log) else ""

    # --- talking to it ------------------------------------------------------------------------

    def connection(self):
        if self._connection is None:
            self._connection = dbus.bus.BusConnection(self.address)
        return self._connection

    def object(self, path="/org/apusched1"):
        return self.connection().get_object(NAME, path, introspect=False)

    def call(self, method, *arguments, path="/org/apusched1", interface="org.apusched1.Manager"):
        return self.object(path).get_dbus_method(method, interface)(*arguments)

    def register(self, pid, profile="llm-interactive", **options):
        named = {key.replace("_", "-"): value for key, value in options.items()}
        return self.call(
            "RegisterPid", dbus.UInt32(pid), profile, dbus.Dictionary(named, signature="sv")
        )

    def unregister(self, path):
        self.call("Unregister", dbus.ObjectPath(path))

    def property(self, path, interface, name):
        return self.call(
            "Get", f"org.apusched1.{interface}", name, path=path,
            interface="org.freedesktop.DBus.Properties",
        )

    def lever(self, path, kind):
        """(outcome, target, value, detail), or None."""
        applied = self.property(path, "Process", "Applied")
        return tuple(str(part) for part in applied[kind]) if kind in applied else None

    def outcome(self, path, kind):
        lever = self.lever(path, kind)
        return lever[0] if lever else None

    def processes(self):
        return [str(path) for path in self.call("ListProcesses")]

    # GPUs are counted from 0 in the order of their KFD nodes, as the model has them.

    def gpu(self, name, number=0):
        return self.property(f"/org/apusched1/gpu/{number}", "Gpu", name)

    def samples(self, source="queue", gpu=0):
        latency = self.gpu("DispatchLatency", gpu)
        return int(latency[source][0]) if source in latency else 0

    def ctl(self, *arguments, **options):
        return subprocess.run(
            [CTL, f"--bus={self.address}", *arguments], capture_output=True, text=True,
            timeout=60, check=False, **options,
        )

    def weights(self):
        """CPUWeight and IOWeight as the mocked systemd holds them; None is "not set"."""
        unit = self.connection().get_object(
            "org.freedesktop.systemd1", "/org/freedesktop/systemd1/unit/llama_2eservice",
            introspect=False,
        )
        get = unit.get_dbus_method("Get", "org.freedesktop.DBus.Properties")
        values = (
            int(get("org.freedesktop.systemd1.Service", name)) for name in ("CPUWeight", "IOWeight")
        )
        return tuple(None if value == 2**64 - 1 else value for value in values)

    # --- the software APU ---------------------------------------------------------------------

    def level(self, address="0000:*"):
        name = f"bus/pci/drivers/amdgpu/{address}/power_dpm_force_performance_level"
        return read(glob.glob(f"{self.sysfs}/{name}")[0])

    def queues(self, pid):
        try:
            return os.listdir(f"{self.sysfs}/class/kfd/kfd/proc/{pid}/queues")
        except FileNotFoundError:
            return []

    def helper_pid(self):
        found = subprocess.run(
            ["pgrep", "-f", f"^{HELPER} .*"], capture_output=True, text=True, check=False
        ).stdout.split()
        mine = [int(pid) for pid in found if self.apu in self._environment(int(pid))]
        return mine[0] if mine else None

    @staticmethod
    def _environment(pid):
        try:
            return read(f"/proc/{pid}/environ")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return ""

    def fault(self, *words):
        """softapu-ctl fault; returns once every program sees it."""
        done = subprocess.run(
            [SOFTAPU_CTL, "--session", self.apu, "fault", *words],
            capture_output=True, text=True, timeout=60, check=False,
        )
        if done.returncode != 0:
            raise AssertionError(f"softapu-ctl fault {words}: {done.stderr}")

    def let_the_writer_see_faults(self):
        """It writes plain files otherwise, which never fail. Below LD_PRELOAD, hence the plain one."""
        plain = os.path.join(PLAIN, "daemon", "gpu_helper", "apusched-gpu-write")
        self.writer = self.script(
            "gpu-write", f'#!/bin/sh\nexec {SOFTAPU} --join {self.apu} -- {plain} "$@"\n'
        )

    def workload(self, *extra, environment=()):
        """A real HSA program that dispatches; returns once it has its queue. `environment`:
        NAME=value."""
        process = self.spawn(
            ["env", *environment, SOFTAPU, "--join", self.apu, "--", DECODE, "--rate", "50",
             *extra],
            stdout=subprocess.PIPE, text=True,
        )
        ready = json.loads(process.stdout.readline())
        if ready["event"] != "ready" or ready["pid"] != process.pid:
            raise AssertionError(f"unexpected first line of the workload: {ready}")
        eventually(lambda: self.queues(process.pid), "the workload's KFD queue")
        return process

    def close(self):
        for process in reversed(self.started):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
                try:
                    process.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            if process.stdout:
                process.stdout.close()
        report = self.log_text()
        subprocess.run(["rm", "-rf", self.dir], check=False)
        if "Sanitizer" in report or "runtime error:" in report:
            raise AssertionError(f"a sanitizer spoke:\n{report}")


class MachineTest(unittest.TestCase):
    """Base of the tests: `self.machine(...)` is closed, and the log shown on a failure."""

    def machine(self, **options):
        machine = Machine(**options)
        self.addCleanup(machine.close)
        self.addCleanup(self._show_log, machine)
        return machine

    def _show_log(self, machine):
        outcome = self._outcome.result if hasattr(self._outcome, "result") else None
        failed = outcome and any(test is self for test, _ in outcome.failures + outcome.errors)
        if failed:
            sys.stderr.write(f"--- log of apuschedd ---\n{machine.log_text()}\n---\n")

    def assert_bus_error(self, name, words, call, *arguments, **options):
        with self.assertRaises(dbus.exceptions.DBusException) as caught:
            call(*arguments, **options)
        self.assertEqual(caught.exception.get_dbus_name(), f"org.apusched1.Error.{name}")
        for word in words:
            self.assertIn(word, caught.exception.get_dbus_message())
