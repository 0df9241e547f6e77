# SPDX-License-Identifier: Apache-2.0
"""Calls of ssl_main, for tests of whole processes. The program is the first argument of the test."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

BINARY = pathlib.Path(sys.argv.pop(1)).absolute()
STEPS = 20
HOLD_AT_TEXT = pathlib.Path(__file__).absolute().with_name("libhold_at_text.so")


def environment():
    # One compute thread: the machine may be busy, and the results do not depend on it.
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def without_command(log):
    """The lines of a log but that of the command, which holds paths and flags of the test itself."""
    return "\n".join(line for line in log.splitlines() if " command: " not in line)


def held_at(text, until=signal.SIGCONT):
    """Variables of a process that stays where it prints `text` until the signal `until` has come to it: whoever reads
    the text has as much time as he takes. Other signals are handled meanwhile. Each process that it starts does the
    same; of ranks, those that print the text."""
    return {"LD_PRELOAD": str(HOLD_AT_TEXT), "HOLD_AT": text, "HOLD_UNTIL": str(int(until))}


def without_privileges():
    """A command prefix under which file modes hold for root, too."""
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []


class RunCase(unittest.TestCase):

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self._folder.name)

    def tearDown(self):
        self._folder.cleanup()

    def call(self, *arguments, prefix=(), **options):
        return subprocess.run([*prefix, BINARY, *arguments], cwd=self.folder, capture_output=True, text=True,
                              env=environment(), **options)

    def tiny(self, *arguments, run="run", **options):
        return self.call("--config=test/swav_tiny", f"config.CHECKPOINT.DIR={run}", *arguments, **options)

    def finish(self, *arguments, **options):
        result = self.tiny(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def signalled(self, *arguments, number=None, when=None):
        """Runs one process, with signal `number` where its log first holds `when`; (exit code, log)."""
        variables = {} if when is None else held_at(when, until=number)
        process = subprocess.Popen([BINARY, *arguments], cwd=self.folder, stderr=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, text=True, env={**environment(), **variables})
        lines = []
        for line in process.stderr:
            lines.append(line)
            if when is not None and when in line:
                process.send_signal(number)
                when = None
        process.stderr.close()
        return process.wait(), "".join(lines)

    def start(self, step, *arguments, run="run", until=signal.SIGCONT, **options):
        """Starts training and returns the process, held at the progress line of `step`."""
        when = f"step {step}/"
        process = subprocess.Popen(
            [BINARY, "--config=test/swav_tiny", f"config.CHECKPOINT.DIR={run}", "engine_name=train", *arguments],
            cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env={**environment(), **held_at(when, until)}, **options)
        self.addCleanup(process.kill)
        for line in process.stderr:
            if when in line:
                return process
        self.fail(f"step {step} was not reached")

    def end(self, process):
        """The exit code, and the rest of the log."""
        text = process.stderr.read()
        process.stderr.close()
        return process.wait(), text

    def failure(self, name="failure.json", run="run"):
        return json.loads((self.folder / run / name).read_text())

    def assert_refused(self, result, code, *parts):
        self.assertEqual(result.returncode, code, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)
