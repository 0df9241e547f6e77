# SPDX-License-Identifier: Apache-2.0
"""What the reliability harnesses share: lives of the real ssl_main, events to wait for, and what a run left on disk.

A harness kills and stops at random times, because that is what it is about; everything else waits for an event: a line
of the output, a name that appears in a folder, the end of a process.
"""
import argparse
import ctypes
import hashlib
import json
import os
import pathlib
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import time

HANG_SECONDS = 300  # a process that takes longer than this hangs; the machine may be busy
STOPPED = 75


def environment():
    # One compute thread: harnesses share the machine with builds, and equal bits are promised for equal threads.
    return {**os.environ, "OMP_NUM_THREADS": "1"}


class Life:
    """One process of the command. A thread collects its output, so that `wait_for` blocks on lines and not on time."""

    def __init__(self, command, variables=(), **popen):
        self.lines = []
        self._read_lines = 0  # by wait_for_next
        self._changed = threading.Condition()
        self._ended = False
        self.started = time.monotonic()
        self._process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True, errors="replace",
                                         env={**environment(), **dict(variables)}, **popen)
        self.pid = self._process.pid
        self._pidfd = os.pidfd_open(self.pid)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_for(self, pattern):
        """The first line that matches the regular expression; None when the output ended without one."""
        return self._wait_for(pattern, 0)[0]

    def wait_for_next(self, pattern):
        """The same, of the lines behind the last one that this has returned."""
        line, self._read_lines = self._wait_for(pattern, self._read_lines)
        return line

    def _wait_for(self, pattern, seen):
        """(the line, how many there are up to it)"""
        expression = re.compile(pattern)
        with self._changed:
            while True:
                while seen < len(self.lines):
                    seen += 1
                    if expression.search(self.lines[seen - 1]):
                        return self.lines[seen - 1], seen
                if self._ended:
                    return None, seen
                if not self._changed.wait(HANG_SECONDS):
                    self._fail_hung()

    def ends_within(self, seconds):
        """Waits for the end, at most that long."""
        return bool(select.select([self._pidfd], [], [], max(seconds, 0))[0])

    def signal(self, number):
        if not self.ends_within(0):
            self._process.send_signal(number)

    def wait(self):
        """The exit code; negative: the signal that ended the process."""
        if not self.ends_within(HANG_SECONDS):
            self._fail_hung()
        code = self._process.wait()
        self.seconds = time.monotonic() - self.started
        self._reader.join()
        self._process.stdout.close()
        os.close(self._pidfd)
        return code

    def kill(self):
        """Ends a process that may have ended already, without a look at how."""
        self._process.kill()  # does nothing once its end was waited for
        self._process.wait()

    def _fail_hung(self):
        self._process.kill()
        raise AssertionError(f"process hangs; its last lines: {self.lines[-5:]}")

    def wait_for_name(self, watch, pattern):
        """The first name in the watched folder that matches; None when the process ended without one."""
        expression = re.compile(pattern)
        while True:
            ready = select.select([watch.fd, self._pidfd], [], [], HANG_SECONDS)[0]
            if not ready:
                self._fail_hung()
            if watch.fd not in ready:
                return None
            for name in watch.names():
                if expression.fullmatch(name):
                    return name

    @property
    def output(self):
        return "\n".join(self.lines)


class FolderWatch:
    """Names that appear in a folder, from inotify: what lets a kill hit a save while it runs."""

    _CREATED_OR_MOVED_HERE = 0x100 | 0x80
    _EVENT = struct.Struct("iIII")

    def __init__(self, folder):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_CLOEXEC)
        if self.fd < 0 or libc.inotify_add_watch(self.fd, os.fsencode(folder), self._CREATED_OR_MOVED_HERE) < 0:
            raise OSError(ctypes.get_errno(), f"inotify on {folder}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)

    def names(self):
        data, names = os.read(self.fd, 1 << 16), []
        while data:
            length = self._EVENT.unpack_from(data)[3]
            names.append(data[self._EVENT.size:self._EVENT.size + length].rstrip(b"\0").decode())
            data = data[self._EVENT.size + length:]
        return names


class Run:
    """One run directory and the command that trains in it: the same one for its start and for each resume."""

    def __init__(self, binary, directory, arguments):
        self.directory = pathlib.Path(directory)
        self.binary = binary
        self.arguments = list(arguments)

    @property
    def checkpoints(self):
        return self.directory / "checkpoints"

    def start(self, *more, **popen):
        return Life([self.binary, *self.arguments, f"config.CHECKPOINT.DIR={self.directory}", *more], **popen)

    def finish(self, *more):
        """Runs to the end, which has to be a good one; returns the life."""
        life = self.start(*more)
        code = life.wait()
        assert code == 0, f"{self.directory}: exit code {code}, expected 0; output:\n{life.output}"
        return life

    def steps(self):
        """Iterations of the complete checkpoints, oldest first."""
        return sorted(int(path.name[5:]) for path in self.checkpoints.glob("step_*") if path.name[5:].isdigit())

    def step_directory(self, step):
        return self.checkpoints / f"step_{step}"

    def unfinished_save(self):
        """Whether a save was cut: its directory has no final name yet, or LATEST does not name it yet."""
        if any(self.checkpoints.glob("step_*.tmp*")):
            return True
        latest = self.checkpoints / "LATEST"
        newest = self.steps()[-1:]
        return bool(newest) and (not latest.exists() or latest.read_text().strip() != f"step_{newest[0]}")

    def final_hash(self):
        return state_hash(self.step_directory(self.steps()[-1]))

    def failure(self):
        """What failure.json says; None when there is none."""
        path = self.directory / "failure.json"
        return json.loads(path.read_text()) if path.exists() else None


def read_safetensors(path):
    """[(name, dtype, shape, bytes)] in the order of the names."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    body = data[8 + size:]
    return [(name, entry["dtype"], entry["shape"], body[slice(*entry["data_offsets"])])
            for name, entry in sorted(header.items())]


def state_hash(step_directory):
    """SHA-256 over the raw bytes of every record of a checkpoint, in the order of files and names: no tolerance, nothing
    left out. No record holds a time of day."""
    digest, records = hashlib.sha256(), 0
    for path in sorted(pathlib.Path(step_directory).glob("*.safetensors")):
        for name, dtype, shape, content in read_safetensors(path):
            digest.update(f"{path.name}/{name} {dtype} {shape} {len(content)}\n".encode())
            digest.update(content)
            records += 1
    assert records > 0, f"{step_directory}: no state"
    return digest.hexdigest()


# What a clock and the machine say; all other values of metrics.jsonl follow from the configuration.
_MEASURED = ("Speed/", "Memory/")


def metric_lines(path):
    """(lines of metrics.jsonl without measured values, half a line at its end)."""
    *lines, tail = path.read_text().split("\n") if path.exists() else [""]
    reports = [json.loads(line) for line in lines]
    return [{key: value for key, value in report.items() if not key.startswith(_MEASURED)} for report in reports], tail


def check_metrics(run, whole, finished):
    """The lines of a run are those of the uninterrupted one: none twice, none missing, every value equal. An unfinished
    run has the first ones, and may end with half a line."""
    lines, tail = metric_lines(run.directory / "metrics.jsonl")
    expected, _ = metric_lines(whole.directory / "metrics.jsonl")
    if not finished:
        expected = expected[:len(lines)]
    iterations = [line["iteration"] for line in lines]
    assert lines == expected, f"{run.directory}: metrics.jsonl differs from {whole.directory}; iterations {iterations}"
    assert not (finished and tail), f"{run.directory}: metrics.jsonl of a finished run ends with half a line: {tail!r}"


class Scratch:
    """A folder that is removed after success and kept, and named, after a failure."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="reliability_", dir=os.environ.get("TEST_TMPDIR")))
        return self.path

    def __exit__(self, kind, *_):
        if kind is None:
            shutil.rmtree(self.path)
        else:
            print(f"files are kept in {self.path}", flush=True)


def parse_arguments(description, programs=(), **counts):
    """Command line of a harness: the binary, other `programs` that it needs, --seed, and a whole number for each of
    `counts` (name=default)."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("binary", type=lambda text: pathlib.Path(text).absolute(), help="ssl_main")
    for name in programs:
        parser.add_argument(name, type=lambda text: pathlib.Path(text).absolute())
    parser.add_argument("--seed", type=int, default=None, help="that of an earlier run; default: a new one")
    for name, value in counts.items():
        parser.add_argument(f"--{name}", type=int, default=value, help=f"default {value}")
    arguments = parser.parse_args()
    if arguments.seed is None:
        arguments.seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {arguments.seed} (--seed={arguments.seed} repeats the choices)", flush=True)
    arguments.random = random.Random(arguments.seed)
    return arguments


def ranks_of(life):
    """The processes of the ranks that a launcher has started, by number."""
    found = {}
    for child in pathlib.Path(f"/proc/{life.pid}/task/{life.pid}/children").read_text().split():
        for entry in pathlib.Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
            if entry.startswith(b"RANK="):
                found[int(entry[5:])] = int(child)
    return found


def signal_name(code):
    return signal.Signals(-code).name if code < 0 else str(code)
