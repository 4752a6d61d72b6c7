# SPDX-License-Identifier: MIT
"""Processes come, fork and are killed while they are registered and released in any order: at the
end whoever lives has its own nice value, and every session its autogroup's, again.

The seed is printed and can be given as APUSCHED_SEED."""

import os
import random
import signal
import time
import unittest

import dbus

from harness import MachineTest, eventually, nices, read

STEPS = 250
# Two branches in one session, each forking at moments nobody knows.
FAMILY = "(sleep 300 & sleep 0.1; sleep 300 & wait) & (sleep 300 & wait) & wait"


def descendants(pid):
    found, waiting = [], [pid]
    while waiting:
        current = waiting.pop()
        found.append(current)
        try:
            text = read(f"/proc/{current}/task/{current}/children")
        except (FileNotFoundError, ProcessLookupError):
            continue
        waiting += [int(child) for child in text.split()]
    return found


def autogroup(pid):
    """The nice value of its session, or nothing: the kernel prints an empty text for a process that
    nobody has called setsid(2) for since boot, as the main process of a container often is."""
    words = read(f"/proc/{pid}/autogroup").split()
    return int(words[-1]) if words else None


def boosted(pid):
    """Every descendant with another nice value than it was started with."""
    found = {}
    for process in descendants(pid):
        try:
            found.update({tid: nice for tid, nice in nices(process).items() if nice != 0})
        except FileNotFoundError:
            pass
    return found


class Churn(MachineTest):
    def end_family(self, family):
        os.killpg(family.pid, signal.SIGKILL)
        family.wait()

    def step(self, m, dice, families, registered):
        kind = dice.choice(["start", "register", "register", "unregister", "kill"])
        if kind == "start" and len(families) < 6:
            families.append(m.spawn(["sh", "-c", FAMILY]))
        elif kind == "kill" and families and dice.random() < 0.3:
            self.end_family(families.pop(dice.randrange(len(families))))
        elif kind == "register" and families:
            pid = dice.choice(descendants(dice.choice(families).pid))
            profile = dice.choice(["llm-interactive", "background"])
            try:
                registered.append(m.register(pid, profile))
            except dbus.DBusException:
                pass  # gone, or registered already
        elif kind == "unregister" and registered:
            try:
                m.unregister(registered.pop(dice.randrange(len(registered))))
            except dbus.DBusException:
                pass  # ended meanwhile

    def test_everything_is_back_after_any_order_of_events(self):
        seed = int(os.environ.get("APUSCHED_SEED", random.SystemRandom().randrange(2**32)))
        print(f"APUSCHED_SEED={seed}", flush=True)
        dice = random.Random(seed)
        own = autogroup(os.getpid())
        m = self.machine(with_gpu=False).start_daemon()
        families, registered = [], []
        for _ in range(STEPS):
            self.step(m, dice, families, registered)
        for path in m.processes():
            try:
                m.unregister(path)
            except dbus.DBusException:
                pass
        self.assertEqual(m.processes(), [])
        for family in families:
            eventually(lambda family=family: autogroup(family.pid) == 0,
                       f"the autogroup of {family.pid} restored")
            # not at once: a clone under way is in nobody's list of children
            end = time.monotonic() + 2
            while boosted(family.pid) and time.monotonic() < end:
                time.sleep(0.02)
            self.assertEqual(boosted(family.pid), {}, f"seed {seed}")
            self.end_family(family)
        self.assertEqual(autogroup(os.getpid()), own, "the session nobody registered")


if __name__ == "__main__":
    unittest.main()
