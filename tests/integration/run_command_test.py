# SPDX-License-Identifier: Apache-2.0
"""What ssl_main does around a run, as whole processes: flags, the run directory and its lock, signals, reports of
failures, sweeps. A process is caught at a known point by its log or by a pipe it waits for, never by time."""
import ctypes
import errno
import json
import os
import re
import signal
import socket
import subprocess
import unittest

from tests.integration.run_case import BINARY, STEPS, RunCase, environment, held_at, without_privileges


class RunCommandTest(RunCase):

    # Flags and configurations.

    def test_unknown_flag_is_a_mistake_of_the_command_line(self):
        self.assert_refused(self.call("--chek_config", "--config=test/swav_tiny"), 2, "unknown flag '--chek_config'",
                            "did you mean '--check_config'?")
        self.assert_refused(self.call("--check_config=perhaps"), 2, "--check_config is 'perhaps', expected")
        self.assert_refused(self.call("--config"), 2, "--config lacks its value")

    def test_help_is_printed_wherever_it_is_asked_for(self):
        for flag in ("-h", "--help"):
            result = self.call("--config=test/swav_tiny", flag)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("--help_config[=PREFIX]", result.stdout)

    def test_what_cannot_be_printed_is_a_failure(self):
        for flags in (["--help"], ["--list=hooks"], ["--help_config=LOSS"], ["--config=test/swav_tiny", "--print_config"],
                      ["--config=test/swav_tiny", "--check_config"]):
            with open("/dev/full", "w") as full:
                result = subprocess.run([BINARY, *flags], cwd=self.folder, stdout=full, stderr=subprocess.PIPE, text=True,
                                        env=environment())
            self.assertEqual(result.returncode, 5, (flags, result.stderr))
            self.assertIn("standard output cannot be written", result.stderr)

    def test_help_of_no_key_is_a_mistake(self):
        self.assert_refused(self.call("--help_config=foo"), 2, "no option begins with 'config.foo'")

    def test_engines_that_are_not_here_are_not_offered(self):
        result = self.tiny("engine_name=cluster")
        self.assert_refused(result, 2, "which is no engine", "known: check_data, estimate, evaluate, export, ")
        self.assertNotIn("extract_cluster", result.stderr)

    # An evaluation after a training.

    def test_mistake_of_an_evaluation_is_found_before_the_training(self):
        for token, part in (("config.NEAREST_NEIGHBOR.LAYERS=[res9]", "res9"),
                            ("config.NEAREST_NEIGHBOR.TOPK=100000", "TOPK is 100000, expected at most"),
                            ("config.DATA.TEST.RANDOM_SYNTHETIC_LABELS=9", "config.DATA.TEST")):
            self.assert_refused(self.tiny("engine_name=[train,knn]", token), 2, part)
            self.assertFalse((self.folder / "run/checkpoints").exists(), token)
            self.assertEqual(self.failure()["engine"], "knn")

    def test_test_phase_of_fewer_views_is_found_before_the_training(self):
        self.assert_refused(self.tiny("engine_name=train", "config.TEST_MODEL=True"), 2, "config.TEST_MODEL is true")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_evaluation_with_another_network_or_step_says_so(self):
        self.finish("engine_name=train")
        result = self.finish("engine_name=knn", "config.MODEL.TRUNK.RESNETS.MAXPOOL=False")
        self.assertIn("config.MODEL.TRUNK.RESNETS.MAXPOOL: ", result.stderr)
        result = self.finish("engine_name=knn", f"--resume_from={STEPS}")
        self.assertIn(f"evaluating the network with: checkpoint of iteration {STEPS}", result.stderr)
        self.assertNotIn("not with the settings", result.stderr)
        self.assert_refused(self.tiny("engine_name=knn", "--resume_from=3"), 2, "RESUME_FROM is 3", f"checkpoints: ")

    def test_no_configuration_is_refused(self):
        self.assert_refused(self.call("--config="), 2, "--config is ''")
        self.assert_refused(self.call("config="), 2, "the name of the config file is empty")
        self.assert_refused(self.call("engine_name=train"), 2, "no configuration is named", "--config=quickstart")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_folder_is_no_configuration(self):
        self.assert_refused(self.call("--config=test"), 2, "config file 'test' is a directory", "test/barlow_twins_tiny")

    def test_broken_keys_and_values_are_named(self):
        self.assert_refused(self.tiny("config..SEED_VALUE=1"), 2, "'config..SEED_VALUE' has an empty part",
                            "expected 'config.SEED_VALUE'")
        self.assert_refused(self.tiny("config.OPTIMIZER.num_epochs=0"), 2, "is '0', expected an integer between 1 and 100000 (epochs)")

    # The run directory.

    def own_configuration(self):
        printed = self.call("--config=test/swav_tiny", "--print_config", "engine_name=train").stdout
        (self.folder / "mine.yaml").write_text(re.sub(r"\n    DIR: .*", "", printed))

    def test_run_without_a_directory_gets_one_named_after_its_configuration(self):
        self.own_configuration()
        result = self.call("--config=mine.yaml")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("run directory: runs/mine (config.CHECKPOINT.DIR is not set)", result.stderr)
        self.assertTrue((self.folder / "runs/mine/checkpoints/LATEST").is_file())
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["mine.yaml", "runs"])

    def test_file_in_the_place_of_the_checkpoints_is_a_matter_of_storage(self):
        (self.folder / "run").mkdir()
        (self.folder / "run/checkpoints").write_text("")
        self.assert_refused(self.tiny("engine_name=train"), 5, "run/checkpoints", "is in the way")
        self.assertEqual(self.failure()["exit_code"], 5)
        self.assertEqual(self.failure()["errno"], errno.ENOTDIR)

    def test_folder_in_the_place_of_the_metrics_is_a_mistake_told_at_the_start(self):
        (self.folder / "run/metrics.jsonl").mkdir(parents=True)
        self.assert_refused(self.tiny("engine_name=train"), 2, "run/metrics.jsonl", "move it away")
        self.assertEqual(self.failure()["exit_code"], 2)

    def test_second_training_changes_nothing_and_names_the_first(self):
        first = self.start(3)
        config = (self.folder / "run/train_config.yaml").read_bytes()
        second = self.tiny("engine_name=train", "config.SEED_VALUE=7")
        self.assert_refused(second, 5, "run directory run cannot be used", f"process {first.pid} on host {socket.gethostname()}")
        self.assertEqual((self.folder / "run/train_config.yaml").read_bytes(), config)
        self.assertFalse((self.folder / "run/failure.json").exists())
        # The lock of a dead process is nobody's.
        first.kill()
        self.end(first)
        self.finish("engine_name=train")

    def test_warnings_about_the_configuration_stand_in_the_log(self):
        (self.folder / "mine.yaml").write_text("# @package _global_\nconfig:\n  SEED_VALUE: 2\n  OPTIMIZER:\n    betas: [0.5, 0.9]\n")
        result = self.finish("+config=mine.yaml", "engine_name=train")
        warnings = [line for line in result.stderr.splitlines() if "mine.yaml:5" in line]
        self.assertEqual(len(warnings), 1, result.stderr)
        self.assertIn(warnings[0].split(" ", 3)[3], (self.folder / "run/log.txt").read_text())

    def test_evaluation_has_files_of_its_own(self):
        self.finish("engine_name=train")
        config = (self.folder / "run/train_config.yaml").read_bytes()
        self.finish("engine_name=knn")
        self.assertEqual((self.folder / "run/train_config.yaml").read_bytes(), config)
        self.assertIn("engine_name: knn", (self.folder / "run/knn_config.yaml").read_text())
        results = json.loads((self.folder / "run/results.json").read_text())
        self.assertIn("trained", results["knn"])
        self.assertGreater(results["train_seconds"], 0)

    def test_failed_evaluation_says_nothing_of_the_training(self):
        self.finish("engine_name=train")
        result = self.tiny("engine_name=knn", "config.DATA.TEST.DATA_SOURCES=[disk_folder]",
                           "config.DATA.TEST.DATA_PATHS=[gone]")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertFalse((self.folder / "run/failure.json").exists())
        failure = self.failure("knn_failure.json")
        self.assertEqual((failure["engine"], failure["phase"], failure["exit_code"]), ("knn", "evaluating", 2))
        self.finish("engine_name=knn")
        self.assertFalse((self.folder / "run/knn_failure.json").exists())

    def test_evaluation_beside_a_training_in_progress(self):
        first = self.start(12)
        result = self.tiny("engine_name=knn")
        first.send_signal(signal.SIGCONT)
        self.assertEqual(self.end(first)[0], 0)
        self.assertEqual(result.returncode, 0, result.stderr)
        results = json.loads((self.folder / "run/results.json").read_text())
        self.assertIn("trained", results["knn"])
        self.assertIn("train_seconds", results)

    def test_read_only_run_is_evaluated(self):
        self.finish("engine_name=train")
        folders = [self.folder / "run", *(path for path in (self.folder / "run").rglob("*") if path.is_dir())]
        before = sorted((self.folder / "run").rglob("*"))
        for folder in folders:
            folder.chmod(0o555)
        try:
            result = self.tiny("engine_name=knn", prefix=without_privileges())
            sheet = self.tiny("engine_name=neighbors", prefix=without_privileges())
        finally:
            for folder in folders:
                folder.chmod(0o755)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("trained network", result.stdout)
        self.assertIn("run directory run cannot be written", result.stderr)
        # What is only for a file is refused before it is computed.
        self.assertEqual(sheet.returncode, 5, sheet.stderr)
        self.assertRegex(sheet.stderr, "run directory run cannot be used: .*; config.CHECKPOINT.DIR chooses another")
        self.assertNotIn("features of", sheet.stderr)
        self.assertEqual(sorted((self.folder / "run").rglob("*")), before)

    # Reports of failures.

    def test_failure_report_says_where_the_run_stood(self):
        # A schedule that jumps: some steps are good, a later one is not a number.
        jump = "{name: multistep, values: [0.1, 1.0e+38], milestones: [1], update_interval: epoch}"
        result = self.tiny("engine_name=train", f"config.OPTIMIZER.param_schedulers.lr={jump}")
        self.assertNotIn(result.returncode, (0, 75), result.stderr)
        failure = self.failure()
        self.assertEqual(failure["exit_code"], result.returncode)
        self.assertEqual((failure["engine"], failure["rank"], failure["world_size"]), ("train", 0, 1))
        self.assertEqual(failure["host"], socket.gethostname())
        self.assertGreaterEqual(failure["step"], 10)
        self.assertLessEqual(failure["last_checkpoint"]["step"], failure["step"])
        self.assertTrue((self.folder / failure["last_checkpoint"]["directory"]).is_dir())
        for key in ("code", "message", "time", "phase", "pid"):
            self.assertIn(key, failure)

    def test_failure_report_of_a_fine_tuning_says_where_that_stood(self):
        def tune(*arguments):
            return ["--config=test/full_tune_tiny", "config.CHECKPOINT.DIR=run", "engine_name=full_tune",
                    "config.CHECKPOINT.CHECKPOINT_ITER_FREQUENCY=1", *arguments]

        def check(**fields):
            failure = self.failure("full_tune_failure.json")
            self.assertEqual({name: failure[name] for name in fields}, fields)
            self.assertGreaterEqual(failure["step"], 1)
            self.assertEqual(failure["epoch"], 0)
            directory = failure["last_checkpoint"]["directory"]
            self.assertEqual(directory, f"run/full_tune/checkpoints/step_{failure['last_checkpoint']['step']}")
            self.assertTrue((self.folder / directory).is_dir())
            return failure

        self.assertEqual(self.call("--config=test/full_tune_tiny", "config.CHECKPOINT.DIR=run", "engine_name=train").returncode, 0)
        result = self.call(*tune("config.FULL_TUNE.LEARNING_RATE=1e20"))
        self.assertEqual(result.returncode, 1, result.stderr)
        check(engine="full_tune", phase="training", exit_code=1)
        process = subprocess.Popen([BINARY, *tune("config.CHECKPOINT.OVERWRITE_EXISTING=True", "config.FULL_TUNE.NUM_EPOCHS=50")],
                                   cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                   env={**environment(), **held_at("step 5/")})
        self.assertTrue(any("step 5/" in line for line in process.stderr))
        process.send_signal(signal.SIGSEGV)
        self.end(process)
        self.assertGreaterEqual(check(engine="full_tune", phase="training", signal=signal.SIGSEGV)["step"], 4)

    def test_stopped_fine_tuning_says_so(self):
        self.assertEqual(self.call("--config=test/full_tune_tiny", "config.CHECKPOINT.DIR=run", "engine_name=train").returncode, 0)
        process = subprocess.Popen([BINARY, "--config=test/full_tune_tiny", "config.CHECKPOINT.DIR=run", "engine_name=full_tune",
                                    "config.FULL_TUNE.NUM_EPOCHS=50"],
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**environment(), **held_at("step 5/", until=signal.SIGTERM)})
        self.assertTrue(any("step 5/" in line for line in process.stderr))
        process.send_signal(signal.SIGTERM)
        output, log = process.communicate()
        self.assertEqual(process.returncode, 75, log)
        self.assertRegex(output, r"fine-tuning of 4 classes in run/full_tune, stopped: this command goes on")

    def test_exhausted_memory_before_the_first_step(self):
        result = self.tiny("engine_name=train",
                           "config.MODEL.HEAD.PARAMS=[[swav_head, {dims: [32, 10000000000000, 16], num_clusters: [8]}]]")
        self.assertEqual(result.returncode, 6, result.stderr)
        failure = self.failure()
        self.assertEqual((failure["exit_code"], failure["phase"]), (6, "building"))
        self.assertIn("Error", failure["exception"])

    def test_fatal_signal_leaves_a_report(self):
        for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS):
            with self.subTest(number):
                run = f"run{number.value}"
                process = self.start(7, run=run)
                process.send_signal(number)
                self.assertEqual(self.end(process)[0], -number)
                failure = self.failure(run=run)
                self.assertEqual((failure["signal"], failure["exit_code"]), (number, 128 + number))
                self.assertEqual((failure["engine"], failure["pid"], failure["rank"]), ("train", process.pid, 0))
                self.assertGreaterEqual(failure["step"], 6)
                self.assertEqual(failure["phase"], "training")
                self.assertTrue((self.folder / failure["last_checkpoint"]["directory"]).is_dir())

    def test_threads_that_crash_together_leave_a_report(self):
        kill_thread = 234  # tgkill of x86-64
        for attempt in range(3):
            with self.subTest(attempt):
                run = f"run{attempt}"
                process = self.start(7, run=run)
                for thread in sorted(map(int, os.listdir(f"/proc/{process.pid}/task"))):
                    ctypes.CDLL(None).syscall(kill_thread, process.pid, thread, signal.SIGSEGV)
                self.assertEqual(self.end(process)[0], -signal.SIGSEGV)
                self.assertEqual(self.failure(run=run)["signal"], signal.SIGSEGV)
                self.assertEqual(list((self.folder / run).glob("failure.json.tmp*")), [])

    # Signals.

    def test_hangup_saves_as_other_stop_signals(self):
        process = self.start(7, until=signal.SIGHUP)
        process.send_signal(signal.SIGHUP)
        self.assertEqual(self.end(process)[0], 75)
        steps = [int(path.name[5:]) for path in (self.folder / "run/checkpoints").glob("step_*")]
        self.assertEqual(max(steps), 7)
        log = (self.folder / "run/log.txt").read_text()
        self.assertIn(f"command: {BINARY} --config=test/swav_tiny config.CHECKPOINT.DIR=run engine_name=train", log)
        self.assertIn("stopped by SIGHUP with exit code 75: the newest checkpoint is step 7; the same command goes on",
                      log.splitlines()[-1])

    def test_hangup_that_was_ignored_stays_ignored(self):
        process = self.start(3, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(self.end(process)[0], 0)

    def test_second_signal_ends_at_once_with_a_report(self):
        process = self.start(7)
        process.send_signal(signal.SIGSTOP)
        # Both wait until the process goes on, and arrive together.
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        code, log = self.end(process)
        self.assertIn(code, (-signal.SIGTERM, -signal.SIGINT), log)
        failure = self.failure()
        self.assertIn("second signal", failure["message"])
        self.assertEqual(failure["signal"], -code)

    def test_closed_output_does_not_end_a_training(self):
        process = self.start(3)
        process.stderr.close()
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(), 0)
        self.assertIn(f"step {STEPS}/{STEPS}", (self.folder / "run/log.txt").read_text())

    def test_closed_standard_descriptors_keep_the_log_out_of_other_files(self):
        code = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", BINARY, "--config=test/swav_tiny",
                               "config.CHECKPOINT.DIR=run", "engine_name=train"], cwd=self.folder, env=environment()).returncode
        self.assertEqual(code, 0)
        lines = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([line["iteration"] for line in lines if "Training/Loss" in line], list(range(1, STEPS + 1)))

    def test_stop_before_the_run_ends_at_once(self):
        pipe = self.folder / "pipe.yaml"
        os.mkfifo(pipe)
        process = subprocess.Popen([BINARY, "--config=pipe.yaml"], cwd=self.folder, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env=environment())
        with open(pipe, "w"):  # returns when the process has opened the other end, and waits for bytes
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(), 75)

    # Sweeps.

    def test_sweep_with_other_values_is_not_mixed_with_the_first(self):
        base = ("engine_name=train", "config.OPTIMIZER.num_epochs=1")
        self.finish(*base, "config.SEED_VALUE=0,1", run="swept")
        models = {path: path.read_bytes() for path in (self.folder / "swept").rglob("model.safetensors")}
        other = self.tiny(*base, "config.SEED_VALUE=2,3", run="swept")
        self.assert_refused(other, 2, "swept/sweep_0 is the run of config.SEED_VALUE=0 of another sweep",
                            "expected config.SEED_VALUE=2", "another config.CHECKPOINT.DIR")
        self.assertEqual({path: path.read_bytes() for path in (self.folder / "swept").rglob("model.safetensors")}, models)
        longer = self.finish(*base, "config.SEED_VALUE=0,1,2", run="swept")
        self.assertEqual(len([line for line in longer.stdout.splitlines() if line.startswith("sweep_")]), 3)

    def test_directories_that_the_choices_name_are_one_for_each_run(self):
        self.finish("engine_name=train", "config.OPTIMIZER.num_epochs=1", "config.SEED_VALUE=0,1", run="a,b")
        folders = sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("sweep_*") if path.is_dir())
        self.assertEqual(folders, ["a/sweep_0", "a/sweep_1", "b/sweep_2", "b/sweep_3"])

    def test_wrong_value_of_a_sweep_is_found_before_its_first_run(self):
        result = self.tiny("engine_name=train", "config.OPTIMIZER.name=sgd,no_such_optimizer", run="swept")
        self.assert_refused(result, 2, "sweep 2 of 2 (config.OPTIMIZER.name=no_such_optimizer): command line:",
                            "which is no optimizer")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_table_of_a_sweep_has_the_result_that_matters(self):
        result = self.finish("engine_name=[train, knn]", "config.OPTIMIZER.num_epochs=1", "config.SEED_VALUE=0,1")
        rows = re.split("(?m)^sweep_", result.stdout)[1:]
        self.assertEqual(len(rows), 2)
        for number, row in enumerate(rows):
            knn = json.loads((self.folder / f"run/sweep_{number}/results.json").read_text())["knn"]
            self.assertIn(f"knn.trained={knn['trained']:.6g}", row)
            self.assertIn(" loss=", row)


if __name__ == "__main__":
    unittest.main(verbosity=2)
