# SPDX-License-Identifier: Apache-2.0
"""Signals that come while ssl_main loads: sent by a library that is preloaded, so that each comes before main."""
import pathlib
import signal
import subprocess
import sys
import unittest

from tests.integration.run_case import BINARY, RunCase, environment

SIGNALS_AT_LOAD = pathlib.Path(sys.argv.pop(1)).absolute()


class EarlySignalsTest(RunCase):

    def signalled_at_load(self, number, *arguments, **options):
        variables = {**environment(), "LD_PRELOAD": str(SIGNALS_AT_LOAD), "SIGNAL_AT_LOAD": str(int(number))}
        return subprocess.run([BINARY, *(arguments or ["--list=engines"])], cwd=self.folder, capture_output=True,
                              text=True, env=variables, **options)

    def test_stop_ends_the_process_as_one_that_comes_later(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2, signal.SIGXCPU, signal.SIGHUP):
            result = self.signalled_at_load(number)
            self.assertEqual(result.returncode, 75, (number, result.stderr))
            self.assertEqual(result.stderr, "stopped before the first step\n")

    def test_stop_of_a_launcher_is_a_stop(self):
        result = self.signalled_at_load(signal.SIGTERM, "--config=test/swav_tiny", "engine_name=train", "--launch=local:2",
                                        "config.CHECKPOINT.DIR=run")
        self.assertEqual(result.returncode, 75, result.stderr)
        self.assertFalse((self.folder / "run").exists())

    def test_request_to_save_ends_nothing(self):
        result = self.signalled_at_load(signal.SIGUSR1)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("train", result.stdout)

    def test_signals_that_were_ignored_stay_so(self):
        for number in (signal.SIGHUP, signal.SIGUSR1):
            result = self.signalled_at_load(number, preexec_fn=lambda: signal.signal(number, signal.SIG_IGN))
            self.assertEqual(result.returncode, 0, (number, result.stderr))

    def test_other_signals_do_what_they_do(self):
        self.assertEqual(self.signalled_at_load(signal.SIGQUIT).returncode, -signal.SIGQUIT)


if __name__ == "__main__":
    unittest.main()
