# SPDX-License-Identifier: MIT
"""Debian's llama.cpp on the software APU, through the real HIP and ROCr: kernels cost time and have
no effect, so the words mean nothing; processes, threads, queues and dispatches are the engine's."""

import json
import os
import socket
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

from harness import PLAIN, SOFTAPU, MachineTest, eventually, nices  # noqa: E402

STAT = os.path.join(PLAIN, "tests", "softapu", "softapu-stat")
PATIENCE_S = 180
# Debian builds neither the backend nor rocBLAS for gfx1151: what its users say to ROCr.
ENVIRONMENT = {"HSA_OVERRIDE_GFX_VERSION": "11.0.0"}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Engine(MachineTest):
    def prepared(self):
        m = self.machine(model="strix_halo").start_daemon()
        self.model = f"{m.dir}/random.gguf"
        subprocess.run([sys.executable, f"{HERE}/random_gguf.py", self.model], check=True)
        return m

    def on_the_apu(self, m, *command):
        return [SOFTAPU, "--join", m.apu, "--", *command]

    def server(self, m):
        self.url = f"http://127.0.0.1:{free_port()}"
        log = open(f"{m.dir}/server.log", "w", encoding="utf-8")
        with log:
            process = m.spawn(
                self.on_the_apu(m, "llama-server", "-m", self.model, "-ngl", "99", "-c", "512",
                                "-np", "1", "--host", "127.0.0.1",
                                "--port", self.url.rsplit(":", 1)[1]),
                env={**os.environ, **ENVIRONMENT}, stdout=log, stderr=log)
        eventually(lambda: self.is_healthy(process), "the server ready", PATIENCE_S)
        return process

    def is_healthy(self, process):
        self.assertIsNone(process.poll(), "the server lives")
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as answer:
                return answer.status == 200
        except urllib.error.HTTPError as loading:
            loading.close()
        except OSError:
            pass
        return False

    def complete(self, tokens):
        request = urllib.request.Request(
            f"{self.url}/completion",
            json.dumps({"prompt": "w1 w2 w3", "n_predict": tokens, "ignore_eos": True}).encode(),
            {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def dispatches(self, m, pid):
        out = subprocess.run([STAT, m.apu], capture_output=True, text=True, check=True).stdout
        return sum(queue["dispatches"] for queue in json.loads(out)["queues"]
                   if queue["pid"] == pid)

    def test_the_daemon_serves_a_server_that_generates(self):
        m = self.prepared()
        server = self.server(m)
        self.assertTrue(m.queues(server.pid))
        path = m.register(server.pid)
        eventually(lambda: m.outcome(path, "performance_level") == "applied", "the level")
        eventually(lambda: m.level() == "high", "the level in force")
        self.assertEqual(set(nices(server.pid).values()), {-10})

        before, samples = self.dispatches(m, server.pid), m.samples()
        self.assertEqual(self.complete(16)["tokens_predicted"], 16)
        self.assertGreater(self.dispatches(m, server.pid) - before, 16, "each token has several")
        eventually(lambda: m.samples() > samples, "samples beside the engine")

        status = m.ctl("status").stdout
        for words in ("llama-server", str(server.pid), "queues on 0000:c5:00.0"):
            self.assertIn(words, status)
        m.unregister(path)
        eventually(lambda: m.level() == "auto", "the level restored")
        self.assertEqual(set(nices(server.pid).values()), {0})

    def test_a_server_that_ends_is_released(self):
        m = self.prepared()
        server = self.server(m)
        path = m.register(server.pid)
        server.terminate()
        self.assertEqual(server.wait(PATIENCE_S), 0)
        eventually(lambda: path not in m.processes(), "the registration gone")
        self.assertEqual(m.queues(server.pid), [])

    def test_its_benchmark_runs_on_the_gpu(self):
        m = self.prepared()
        done = subprocess.run(
            self.on_the_apu(m, "llama-bench", "-m", self.model, "-ngl", "99", "-p", "16", "-n",
                            "8", "-r", "1", "-o", "json"),
            env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True,
            timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        for result in json.loads(done.stdout):
            self.assertIn("ROCm", result["backends"])
            self.assertGreater(result["avg_ts"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
