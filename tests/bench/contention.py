# SPDX-License-Identifier: MIT
"""A critical loop with CPU hogs beside it, in sessions and, by hand, in units' cgroups (v1 only)."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time

import dbus

import stage

HOGS = 2 * os.cpu_count()
SESSIONS = ("another session", "each its own session", "same session")
SLICES = "units in different slices"
UNITS = ("two units", SLICES)
CPU_ROOT = "/sys/fs/cgroup/cpu"
PERIOD_US, WORK_US = 2000, 100
# At most: managed ÷ by hand, managed ÷ unmanaged, what renice may take away of unmanaged where nice
# does not act, CPU that hogs lose, lever writes per second.
ORACLE_GOAL, CUT_GOAL, FAIL_GOAL, LOSS_GOAL, WRITES_GOAL = 1.1, 0.17, 0.7, 0.05, 2
# Each stops itself and waits for start().
HOG = "kill -STOP $$; while :; do :; done"
# The closed loop and nothing else: no lever is held before it asks for one. The loop waits 6 µs on
# average alone, and 20 to 50 beside hogs: a few of a hundred waits are of milliseconds.
LOOP_ONLY = """profiles:
  loop-only:
    class: critical
    nice: 0
    autogroup_nice: 0
    cpu_weight: 100
    target_wait_us: 20
"""


class Beside:
    """The loop, and hogs that stand still until start(); none without a tree. close() ends all."""

    def __init__(self, tree):
        self.started, self.hogs = [], []
        command = self.loop_command()
        if tree == "same session":
            script = f"(exec sh -c '{HOG}') & echo $!\n" * HOGS + 'exec "$@"'
            command = ["/bin/sh", "-c", script, "loop", *command]
        elif tree == "another session" or tree in UNITS:
            script = f"(exec sh -c '{HOG}') & echo $!\n" * HOGS + "wait"
            session = self._spawn(["/bin/sh", "-c", script])
            self.hogs = [int(session.stdout.readline()) for _ in range(HOGS)]
        elif tree == "each its own session":
            self.hogs = [self._spawn(["/bin/sh", "-c", HOG]).pid for _ in range(HOGS)]
        elif tree is not None:
            raise stage.BrokenRun(f"there is no tree {tree}")
        self.loop = self._spawn(command, stdin=subprocess.PIPE)
        self.pid = self.loop.pid
        if tree == "same session":
            self.hogs = [int(self.loop.stdout.readline()) for _ in range(HOGS)]
        self.await_ready()
        for pid in self.hogs:
            wait_until_stopped(pid)

    def loop_command(self):
        return [stage.program("bench_dispatch_loop"), str(PERIOD_US), str(WORK_US)]

    def await_ready(self):
        if self.loop.stdout.readline() != "ready\n":
            raise stage.BrokenRun("the dispatch loop did not start")

    def _spawn(self, command, **options):
        process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE,
                                   text=True, **options)
        self.started.append(process)
        return process

    def command(self, word):
        try:
            self.loop.stdin.write(word + "\n")
            self.loop.stdin.flush()
            return json.loads(self.loop.stdout.readline()) if word != "begin" else None
        except (BrokenPipeError, json.JSONDecodeError) as error:
            raise stage.BrokenRun(f"the loop ended with {self.loop.wait()}") from error

    def threads(self):
        return [int(tid) for tid in os.listdir(f"/proc/{self.pid}/task")]

    def start(self):
        for pid in self.hogs:
            os.kill(pid, signal.SIGCONT)
        return time.monotonic()

    def stop(self):
        for pid in self.hogs:
            os.kill(pid, signal.SIGSTOP)
        return time.monotonic()

    def close(self):
        for pid in self.hogs:
            os.kill(pid, signal.SIGKILL)
        for process in self.started:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()


class ApuLoop(Beside):
    """tests/workloads/decode on the software APU, through the real HSA runtime: 100 rounds of four
    kernels a second. It measures what comes after `skip` seconds, until `seconds` later."""

    def __init__(self, tree, machine, skip, seconds):
        self.machine, self.skip, self.seconds = machine, skip, seconds
        super().__init__(tree)

    def loop_command(self):
        decode = os.path.join(os.environ["APUSCHED_BUILD_DIR"], "tests", "softapu", "workloads",
                              "decode")
        return [os.path.join(os.path.dirname(os.path.dirname(decode)), "softapu-run"), "--join",
                self.machine.apu, "--", decode, "--rate", "100", "--kernels", "4", "--skip",
                str(self.skip), "--duration", str(self.skip + self.seconds)]

    def await_ready(self):
        if json.loads(self.loop.stdout.readline()).get("event") != "ready":
            raise stage.BrokenRun("the decode loop did not start")

    def command(self, word):
        if word != "end":
            return None
        final = json.loads(self.loop.stdout.readline())
        return {"rounds": final["rounds"], "missed": final["missed_periods"],
                **final["dispatch_latency_us"]}


class Units:
    """Groups as systemd makes them for a unit of the loop and one of the hogs, below one group. It
    weighs more than other work, but not so much that the kernel's own threads, which are beside it,
    get nothing: with the greatest weight the machine stalled."""

    def __init__(self, tree, control_dir):
        self.top = f"{CPU_ROOT}/apusched-bench-{os.getpid()}"
        apart = tree == SLICES
        self.system = f"{self.top}/system.slice"
        self.loop, self.hogs = (self.top + (f"/{slice_}.slice" if apart else "") + f"/{name}.service"
                                for slice_, name in (("left", "loop"), ("right", "hogs")))
        for path in (self.system, self.loop, self.hogs):
            os.makedirs(path)
        write(f"{self.top}/cpu.shares", 4096)
        write(f"{control_dir}/cpu-group", self.loop)
        # What decides between the two: siblings are compared.
        self.decides = os.path.dirname(self.loop) if apart else self.loop

    def put(self, beside):
        for pid, group in [(beside.pid, self.loop), *((pid, self.hogs) for pid in beside.hogs)]:
            write(f"{group}/cgroup.procs", pid)

    def put_system(self, machine):
        """The daemon, the bus and systemd's double."""
        for process in machine.started:
            write(f"{self.system}/cgroup.procs", process.pid)

    def close(self):
        for path in (self.system, self.loop, self.hogs):
            remove(path)
            if os.path.dirname(path) not in (self.top, CPU_ROOT):
                remove(os.path.dirname(path))
        remove(self.top)


def remove(group):
    """Its processes are dead, but may not be gone yet."""
    deadline = time.monotonic() + 10
    while os.path.isdir(group):
        try:
            os.rmdir(group)
        except OSError as error:
            if time.monotonic() > deadline:
                raise stage.BrokenRun(f"{group} stays: {error}") from error
            time.sleep(0.02)


class Scene:
    """A tree, and a machine of its own with the daemon running."""

    def __init__(self, tree, with_gpu=False):
        in_units = tree in UNITS
        self.tree, self.units, self.gamemode = tree, None, None
        self.machine = stage.make_stage(LOOP_ONLY, with_gpu=with_gpu, with_systemd=in_units)
        try:
            if in_units:
                self.units = Units(tree, self.machine.control_dir)
            self.machine.start_daemon()
            if in_units:
                self.units.put_system(self.machine)
        except BaseException:
            self.close()
            raise

    def start_gamemoded(self):
        """False where it is not installed."""
        if not shutil.which("gamemoded"):
            return False
        self.machine.start_gamemoded()
        name = "com.feralinteractive.GameMode"
        self.gamemode = dbus.Interface(self.machine.connection().get_object(
            name, "/com/feralinteractive/GameMode", introspect=False), name)
        return True

    def register_game(self, beside):
        if self.gamemode.RegisterGame(dbus.Int32(beside.pid)) != 0:
            raise stage.BrokenRun("gamemoded refused the loop")

    def hold_by_hand(self, beside):
        """The best static lever: who knows what decides in this tree sets it."""
        renice_all(beside, -20)
        if self.units:
            write(f"{self.units.decides}/cpu.shares", 102400)
        else:
            write_autogroup(beside.pid, -20)

    def let_go_by_hand(self):
        if self.units:
            write(f"{self.units.decides}/cpu.shares", 1024)

    def beside(self):
        return self.put(Beside(self.tree))

    def put(self, beside):
        if self.units:
            self.units.put(beside)
        return beside

    def close(self):
        self.machine.close()
        if self.units:
            self.units.close()


def refusal(tree):
    """Why this machine cannot have that tree; empty where it can."""
    if tree in UNITS and not os.access(f"{CPU_ROOT}/cpu.shares", os.W_OK):
        return f"the groups are made in cgroup v1, and {CPU_ROOT} is none that can be written"
    return ""


def why_not_managed(tree):
    """Why the daemon cannot act in that tree on this machine; empty where it can."""
    return "slices are raised in cgroup v2 only, and these groups are of v1" if tree == SLICES else ""


def trees():
    return tuple(tree for tree in SESSIONS + UNITS if not refusal(tree))


def renice_all(beside, nice):
    for tid in beside.threads():
        os.setpriority(os.PRIO_PROCESS, tid, nice)


def quietest(once, most_foreign, attempts=3):
    """The run with the least foreign CPU, of a few; the first that has no more than is bearable."""
    best = None
    for _ in range(attempts):
        made = once()
        if best is None or made["foreign"] < best["foreign"]:
            best = made
        if best["foreign"] <= most_foreign:
            break
    return best


def spread(values):
    values = list(values)
    return f"{round(min(values))}–{round(max(values))}"


def cut_row(name, ratio, by_hand):
    """That the managed loop is far below the unmanaged one; no goal where by hand is not."""
    if by_hand <= CUT_GOAL:
        return stage.row(name, {}, CUT_GOAL, ratio)
    return {"name": name, "skipped": f"{ratio:.2f}, and {by_hand:.2f} by hand"}


def fail_row(tree, way, what, ratio):
    """The negative control: unmanaged ÷ a way that must not help."""
    return stage.row(f"{tree}: unmanaged ÷ {way}, {what} (it must fail)", {}, 1 / FAIL_GOAL, ratio)


def write(path, value):
    with open(path, "w", encoding="utf-8") as file:
        file.write(str(value))


def wait_until_stopped(pid):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            if file.read().rsplit(")", 1)[1].split()[0] == "T":
                return
        time.sleep(0.01)
    raise stage.BrokenRun(f"the hog {pid} does not stop")


def cpu_s(pids):
    """Of all threads, since they began."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def machine_s():
    """(busy, all) CPU seconds of the machine; what a hypervisor took counts as busy."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(field) for field in file.readline().split()[1:9]]
    per_second = os.sysconf("SC_CLK_TCK")
    return (sum(ticks) - ticks[3] - ticks[4]) / per_second, sum(ticks) / per_second


def waits(pid):
    """(waited for a CPU, in µs; times that one was given), all threads since they began."""
    waited = given = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as file:
            fields = file.read().split()
        waited += int(fields[1]) / 1000
        given += int(fields[2])
    return waited, given


class Usage:
    """What the hogs got, what share of the machine went to neither them nor the loop, and how long
    its threads waited for a CPU on average: of that, one run says more than of a p99."""

    def __init__(self, beside):
        self.beside = beside
        self.hogs, self.own = cpu_s(beside.hogs), cpu_s([beside.pid])
        self.busy, self.all = machine_s()
        self.waited, self.given = waits(beside.pid)

    def end(self):
        hogs = cpu_s(self.beside.hogs) - self.hogs
        own = cpu_s([self.beside.pid]) - self.own
        busy, everything = machine_s()
        span = everything - self.all
        foreign = (busy - self.busy - hogs - own) / span if span > 0 else 0
        waited, given = waits(self.beside.pid)
        return {"wait": (waited - self.waited) / max(1, given - self.given),
                "hogs": hogs * os.cpu_count() / span if span > 0 else 0,
                "foreign": max(0.0, foreign)}


def write_autogroup(pid, nice):
    write(f"/proc/{pid}/autogroup", nice)


def history_lines(machine, pid):
    out = machine.ctl("history", "-n", "512", "--json")
    return [line for line in json.loads(out.stdout)["lines"] if line["pid"] == pid]


def history(machine, pid):
    """What the closed loop did for that process: (when on the monotonic clock, what, lever)."""
    lines, now = history_lines(machine, pid), time.monotonic()
    return [(now - line["seconds_ago"], line["what"], line["lever"]) for line in lines]


def told(machine, pid, since):
    """The same in words, with the figures that decided; seconds on the monotonic clock after
    `since`."""
    lines, now = history_lines(machine, pid), time.monotonic()
    words = []
    for line in lines:
        at = now - line["seconds_ago"] - since
        why = line["text"]
        if line["what"] in ("kept", "undone", "confirmed", "inconclusive"):
            why += f" ({line['before_us']:.0f} → {line['after_us']:.0f} µs)"
        words.append(f"{at:.1f} s {line['lever'] or ''} {line['what']}: {why}".replace("  ", " "))
    return words


def writes(lines, since, until):
    """Changes of a lever: each `tried`, `undone` and `released` is one write."""
    return [line for line in lines
            if line[1] in ("tried", "undone", "released") and since <= line[0] < until]
