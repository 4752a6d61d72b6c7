# SPDX-License-Identifier: MIT
"""Everyone may read; root and members of the group may write; checked by bus and daemon."""

import os
import subprocess
import unittest

from harness import CTL, NOBODY, SOURCE, SYSTEM_POLICY, MachineTest, eventually, nices


class Access(MachineTest):
    def as_user(self, m, *arguments, groups=()):
        """apuschedctl as nobody, with further groups."""
        extra = ["--groups", ",".join(map(str, groups))] if groups else ["--clear-groups"]
        return subprocess.run(
            ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", *extra, CTL,
             f"--bus={m.address}", *arguments],
            capture_output=True, text=True, timeout=60, check=False,
        )

    def victim(self, m):
        return m.spawn(["sleep", "600"])

    def test_nobody_may_read(self):
        m = self.machine(with_gpu=False).start_daemon()
        m.register(self.victim(m).pid)
        for command in ("status", "list", "gpu", "probe"):
            done = self.as_user(m, command, "--json")
            self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")

    def test_the_daemon_denies_nobody_by_itself(self):
        m = self.machine(with_gpu=False).start_daemon()
        victim = self.victim(m)
        done = self.as_user(m, "register", str(victim.pid), "--profile", "background")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("games", done.stderr)
        self.assertEqual(set(nices(victim.pid).values()), {0})
        m.register(victim.pid, "background")
        done = self.as_user(m, "unregister", str(victim.pid))
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(len(m.processes()), 1)
        self.assertEqual(set(nices(victim.pid).values()), {10})

    def test_a_member_of_the_group_may_write(self):
        import grp

        m = self.machine(with_gpu=False).start_daemon()
        victim = self.victim(m)
        group = grp.getgrnam("games").gr_gid
        done = self.as_user(m, "register", str(victim.pid), "--profile", "background",
                            groups=[group])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(set(nices(victim.pid).values()), {10})

    def test_the_projects_bus_policy_denies_nobody_before_the_daemon_is_asked(self):
        policy = os.path.join(SOURCE, "dbus", "org.apusched1.conf")
        m = self.machine(with_gpu=False, with_systemd=False,
                         policy=f"{SYSTEM_POLICY}<include>{policy}</include>").start_daemon()
        victim = self.victim(m)
        # It owns its name before it says that it is ready.
        eventually(lambda: "is ready" in m.log_text(), "the daemon's first lines")
        before = m.log_text()
        done = self.as_user(m, "register", str(victim.pid), "--profile", "background")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(m.log_text(), before)
        for command in (["status"], ["history"], ["explain", str(victim.pid)]):
            done = self.as_user(m, *command)
            self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")
        # It may ask for the environment, but not register.
        self.assertEqual(self.as_user(m, "run", "--", "/bin/true").returncode, 4)
        m.register(victim.pid, "background")
        self.assertEqual(set(nices(victim.pid).values()), {10})

    def test_nobody_may_not_own_the_name(self):
        policy = os.path.join(SOURCE, "dbus", "org.apusched1.conf")
        m = self.machine(with_gpu=False, with_systemd=False,
                         policy=f"{SYSTEM_POLICY}<include>{policy}</include>")
        folder = f"{m.dir}/nobody"
        os.mkdir(folder, 0o700)
        os.chown(folder, NOBODY, NOBODY)
        command = [part.replace(f"{m.dir}/run", f"{folder}/run") for part in m.daemon_command()]
        done = subprocess.run(
            ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command],
            capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("org.apusched1", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
