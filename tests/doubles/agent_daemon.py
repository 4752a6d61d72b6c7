# SPDX-License-Identifier: MIT
"""The daemon's end of the agent's socket, as much of it as a test wants to be told.

Layouts: client/agent/abi.hpp."""

import array
import ctypes
import fcntl
import mmap
import os
import socket
import struct
import threading
import time

MAGIC, VERSION = 0x41505553, 1
MAX_GPUS, MAX_MASK_WORDS, MAX_QUEUES, WAITS = 8, 32, 128, 64
F_ADD_SEALS, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_FUTURE_WRITE = 1033, 2, 4, 16
LEAVE, LOW, NORMAL, HIGH = range(4)
NOTHING, APPLIED, FAILED, CONFLICT, UNSUPPORTED = range(5)
U32, U64 = ctypes.c_uint32, ctypes.c_uint64


class HelloGpu(ctypes.Structure):
    _fields_ = [("domain", U32), ("bdf", U32), ("compute_units", U32), ("isa", ctypes.c_char * 20)]


class Hello(ctypes.Structure):
    _fields_ = [("magic", U32), ("version", U32), ("size", U32), ("features", U32),
                ("runtime_version", U64), ("core_table_bytes", U32), ("amd_table_bytes", U32),
                ("queues_before", U32), ("gpu_count", U32), ("gpus", HelloGpu * MAX_GPUS)]


class GpuControl(ctypes.Structure):
    _fields_ = [("mask_bits", U32), ("mask", U32 * MAX_MASK_WORDS)]


class Control(ctypes.Structure):
    _fields_ = [("magic", U32), ("version", U32), ("size", U32), ("sequence", U32),
                ("sample_hz", U32), ("priority", U32), ("serial", U32), ("queue_limit", U32),
                ("memory_limit_bytes", U64), ("gate_closed_until_ns", U64),
                ("gpus", GpuControl * MAX_GPUS)]


class Setting(ctypes.Structure):
    _fields_ = [("applied", U32), ("detail", U32)]


class QueueReport(ctypes.Structure):
    _fields_ = [("id", U64), ("submitted", U64), ("taken", U64), ("gpu", U32), ("flags", U32)]


class Telemetry(ctypes.Structure):
    _fields_ = [("magic", U32), ("version", U32), ("size", U32), ("sequence", U32),
                ("written_ns", U64), ("control_sequence", U32), ("queue_count", U32),
                ("reported_queues", U32), ("next_wait", U32), ("mask", Setting * MAX_GPUS),
                ("priority", Setting), ("serial", Setting), ("submitted", U64), ("taken", U64),
                ("memory_bytes", U64), ("refused_queues", U64), ("refused_allocations", U64),
                ("gate_waits", U64), ("gate_wait_ns", U64), ("samples", U64),
                ("busy_samples", U64), ("backlog_sum", U64), ("wait_count", U64),
                ("waits_ns", U64 * WAITS), ("queues", QueueReport * MAX_QUEUES)]


def sealed(size, seals):
    fd = os.memfd_create("apusched", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, F_ADD_SEALS, seals)
    return fd


class Peer:
    """One agent that has said hello and was welcomed."""

    def __init__(self, connection):
        self.connection = connection
        self.hello = Hello.from_buffer_copy(connection.recv(4096))
        self.pid = struct.unpack("3i", connection.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        self.control_fd = sealed(ctypes.sizeof(Control), F_SEAL_SHRINK | F_SEAL_GROW)
        self.telemetry_fd = sealed(ctypes.sizeof(Telemetry), F_SEAL_SHRINK | F_SEAL_GROW)
        self.page = mmap.mmap(self.control_fd, ctypes.sizeof(Control))
        self.control = Control.from_buffer(self.page)
        self.control.magic, self.control.version = MAGIC, VERSION
        self.control.size = ctypes.sizeof(Control)
        # A seal on writing would take this mapping along if it came first.
        fcntl.fcntl(self.control_fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE)
        self._telemetry = mmap.mmap(self.telemetry_fd, ctypes.sizeof(Telemetry))

    def welcome(self, refusal=0, descriptors=None):
        fds = [self.control_fd, self.telemetry_fd] if descriptors is None else descriptors
        message = struct.pack("4I", MAGIC, VERSION, 16, refusal)
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.connection.sendmsg([message], ancillary)

    def set(self, wake=True, **values):
        """Changes fields of the control page; masks={gpu: (bits, [words])}."""
        masks = values.pop("masks", {})
        self.control.sequence += 1
        for name, value in values.items():
            setattr(self.control, name, value)
        for gpu, (bits, words) in masks.items():
            self.control.gpus[gpu].mask_bits = bits
            for index, word in enumerate(words):
                self.control.gpus[gpu].mask[index] = word
        self.control.sequence += 1
        if wake:
            self.connection.send(struct.pack("2I", MAGIC, self.control.sequence))

    def telemetry(self):
        """A copy that was not being written, or None."""
        for _ in range(1000):
            copy = Telemetry.from_buffer_copy(self._telemetry)
            again = struct.unpack_from("I", self._telemetry, 12)[0]
            if copy.sequence % 2 == 0 and copy.sequence == again and copy.magic == MAGIC:
                return copy
        return None

    def settled(self):
        """The agent's report, once it has done what the control page says."""
        seen = self.telemetry()
        return seen if seen and seen.control_sequence == self.control.sequence else None

    def ended(self):
        """The agent has closed its end."""
        try:
            return self.connection.recv(16, socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except ConnectionResetError:
            return True

    def close(self):
        self.connection.close()


class FakeDaemon:
    """Listens; agents are taken by a thread, so that a program's first queue gets its answer."""

    def __init__(self, path, answer=None, prepare=None):
        self.path = path
        self.peers = []
        self.answer = answer or (lambda peer: peer.welcome())
        self.prepare = prepare or (lambda peer: None)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        self.listener.listen(8)
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            try:
                peer = Peer(connection)
                self.prepare(peer)
                self.answer(peer)
            except (OSError, ValueError):
                connection.close()  # gone already
                continue
            self.peers.append(peer)

    def peer(self, number=0, deadline=30):
        """The agent that came as `number`, once it is there."""
        end = time.monotonic() + deadline
        while len(self.peers) <= number:
            if time.monotonic() > end:
                raise AssertionError(f"no agent number {number} came in {deadline} s")
            time.sleep(0.01)
        return self.peers[number]

    def stop(self):
        """As a daemon that is killed, but for its socket file, which one that ends removes."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        for peer in self.peers:
            peer.close()

    def end(self):
        self.stop()
        os.unlink(self.path)
