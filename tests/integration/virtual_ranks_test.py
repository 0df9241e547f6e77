# SPDX-License-Identifier: Apache-2.0
"""Virtual ranks: a run that is the same, bit by bit, on 1, 2 and 4 processes."""
import json
import os
import signal
import unittest

from tests.integration.ranks_case import RanksCase, rank_variables

VIRTUAL = "config.DISTRIBUTED.VIRTUAL_RANKS=4"
EPOCHS = "config.OPTIMIZER.num_epochs="
# Of four ranks, each with 8 of 80 samples in a step.
STEPS_OF_AN_EPOCH = 2
# Assignments, queue and batch norm over ranks; an average of the weights; evaluations in the course of the run.
SWAV = ("config.LOSS.swav_loss.queue.queue_length=64", "config.LOSS.swav_loss.queue.start_iter=2",
        "config.MODEL.SYNC_BN_CONFIG.CONVERT_BN_TO_SYNC_BN=True", "config.MODEL.SYNC_BN_CONFIG.GROUP_SIZE=2",
        "config.HOOKS.EMA_MODEL.SAVE_EMA_MODEL=True", "config.HOOKS.EVAL.ONLINE_EVALUATION=True",
        "config.HOOKS.EVAL.LINEAR=False", "config.HOOKS.EVAL.LOSS=True", "config.HOOKS.EVAL.ITER_FREQUENCY=3")
OF_PROCESSES = ("DISTRIBUTED.NUM_PROC_PER_NODE", "CHECKPOINT.DIR")


def launched(processes):
    """Arguments of a command that runs on so many; one of them needs no launcher."""
    return [] if processes == 1 else [f"--launch=local:{processes}"]


class VirtualRanksTest(RanksCase):

    def steps(self, run):
        folder = self.folder / run / "checkpoints"
        return sorted(int(path.name[len("step_"):]) for path in folder.glob("step_*"))

    def step(self, number, run):
        """The files of a checkpoint."""
        folder = self.folder / run / f"checkpoints/step_{number}"
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    def assert_same_checkpoint(self, number, run, expected_run):
        """All bytes, but for what says where the run took place."""
        found, expected = self.step(number, run), self.step(number, expected_run)
        self.assertEqual(set(found), set(expected))
        self.assertEqual({f"state_rank{rank}.safetensors" for rank in range(4)} - set(found), set())
        manifests = [json.loads(files.pop("MANIFEST.json")) for files in (found, expected)]
        identities = [json.loads(files.pop("config.json")) for files in (found, expected)]
        for name, content in found.items():
            self.assertEqual(content, expected[name], f"{name} of {run} is another one than of {expected_run}")
        for manifest, identity in zip(manifests, identities):
            self.assertEqual(manifest["world_size"], 4)
            del manifest["config_hash"], manifest["manifest_crc32c"]
            manifest["files"] = [file for file in manifest["files"] if file["file"] != "config.json"]
            for key in OF_PROCESSES:
                del identity["settings"][key]
        self.assertEqual(*manifests)
        self.assertEqual(*identities)

    def measured(self, run):
        lines = [json.loads(line) for line in self.read("metrics.jsonl", run=run).splitlines()]
        return [(key, value) for line in lines for key, value in line.items()
                if key.startswith("Evaluation/") or key == "Training/Loss"]

    def run_on(self, processes, *arguments, run, **options):
        return self.finished(*launched(processes), VIRTUAL, *arguments, run=run, **options)

    def check_same(self, config, *arguments, epochs=2):
        runs = {processes: f"run{processes}" for processes in (1, 2, 4)}
        for processes, run in runs.items():
            # One process alone would compute with other numbers of threads than each of several.
            threads = {"OMP_NUM_THREADS": "2"} if processes == 1 else {}
            self.run_on(processes, f"{EPOCHS}{epochs}", *arguments, run=run, config=config, variables=threads)
        steps = self.steps(runs[1])
        self.assertGreater(len(steps), 1)
        self.assertEqual(steps[-1], epochs * STEPS_OF_AN_EPOCH)
        for run in (runs[2], runs[4]):
            self.assertEqual(self.measured(run), self.measured(runs[1]))
            self.assertEqual(self.steps(run), steps)
            for step in steps:
                self.assert_same_checkpoint(step, run, runs[1])
        for run in runs.values():
            self.assertNotIn("failure.json", self.files(run=run))

    def test_swav(self):
        self.check_same("swav_tiny", *SWAV, epochs=4)
        self.assertIn("Evaluation/loss_mean", dict(self.measured("run4")))

    def test_moco(self):
        self.check_same("moco_tiny")

    def test_simclr(self):
        self.check_same("simclr_tiny")

    def test_barlow_twins(self):
        self.check_same("barlow_twins_tiny")

    def test_a_transformer_that_draws_what_it_drops(self):
        self.check_same("vision_transformer_tiny")

    def test_supervised(self):
        self.check_same("supervised_tiny")

    def test_compressed_gradients(self):
        self.check_same("supervised_tiny", "config.DISTRIBUTED.GRADIENT_COMPRESSION=bf16")
        self.run_on(2, f"{EPOCHS}2", run="plain", config="supervised_tiny")
        self.assertNotEqual(self.weights(2 * STEPS_OF_AN_EPOCH, run="plain"), self.weights(2 * STEPS_OF_AN_EPOCH, run="run2"))

    def test_goes_on_with_other_numbers_of_processes(self):
        steps = 12 * STEPS_OF_AN_EPOCH
        arguments = (VIRTUAL, f"{EPOCHS}12", *SWAV)
        for processes, step in ((4, 3), (1, 9)):
            self.stopped_at(step, *launched(processes), *arguments)
            self.assertNotIn("failure.json", self.files())
        last = self.finished(*launched(2), *arguments)
        self.assertIn("resuming at iteration ", last.output)
        self.run_on(1, *arguments, run="whole")
        self.assert_same_checkpoint(steps, "run", "whole")

    def test_engines_say_what_they_say_on_one_process(self):
        tables = []
        for processes in (1, 2):
            run = f"run{processes}"
            self.run_on(processes, f"{EPOCHS}1", "engine_name=[train,knn,linear_eval]", run=run)
            results = json.loads(self.read("results.json", run=run))
            tables.append({name: results[name] for name in ("knn", "linear_eval")})
        self.assertEqual(*tables)

    def test_engines_leave_the_files_that_they_leave_on_one_process(self):
        for config, engines in (("extract_tiny", "train,extract_features"), ("full_tune_tiny", "train,full_tune")):
            files = {}
            for processes in (1, 2):
                run = f"{config}{processes}"
                self.run_on(processes, f"{EPOCHS}1", f"engine_name=[{engines}]", run=run, config=config)
                files[processes] = {name: (self.folder / run / name).read_bytes() for name in self.files(run=run)
                                    if name.endswith((".npy", ".safetensors"))}
            self.assertGreater(len(files[1]), 8)
            self.assertEqual(set(files[1]), set(files[2]))
            self.assertEqual([name for name in files[1] if files[1][name] != files[2][name]], [])

    def test_one_process_reports_once(self):
        world = self.run_on(1, f"{EPOCHS}1", run="run")
        for text in ("4 virtual ranks on 1 process, 0 to 3 here: process ", "step 2/2", "finished at iteration"):
            self.assertEqual(world.output.count(text), 1, world.output)
        self.assertEqual([name for name in self.files() if name.startswith("logs/")], [])

    def test_ranks_of_another_launcher(self):
        port = self.free_port()
        ranks = [self.world(VIRTUAL, f"{EPOCHS}1", run="by_hand", variables=rank_variables(rank, 2, port))
                 for rank in range(2)]
        for rank in ranks:
            self.assertEqual(rank.end(), 0, rank.output)
        self.assertIn("4 virtual ranks on 2 processes, 0 to 1 here: process ", ranks[0].output)
        self.assertIn("4 virtual ranks on 2 processes, 2 to 3 here: process ", self.read("logs/rank1.txt", run="by_hand"))
        self.run_on(1, f"{EPOCHS}1", run="alone")
        self.assertEqual(self.weights(2, run="by_hand"), self.weights(2, run="alone"))
        self.run_on(1, f"{EPOCHS}1", run="by_hand")
        self.assertNotIn("logs/rank1.txt", self.files(run="by_hand"), "of a process that this start does not have")

    def test_a_request_to_save_and_a_lock(self):
        world = self.world(VIRTUAL, f"{EPOCHS}1000", "config.CHECKPOINT.CHECKPOINT_FREQUENCY=-1",
                           "config.CHECKPOINT.CHECKPOINT_ITER_FREQUENCY=-1")
        self.assertTrue(world.wait_for("step 2/"), world.output)
        second = self.tiny(VIRTUAL)
        self.assert_refused(second, 5, "is held by process")
        world.process.send_signal(signal.SIGUSR1)
        self.assertTrue(world.wait_for("snapshot asked for at iteration "), world.output)
        world.process.send_signal(signal.SIGTERM)
        self.assertEqual(world.end(), 75, world.output)

    def test_a_killed_process_is_named(self):
        world = self.world(*launched(2), VIRTUAL, f"{EPOCHS}1000")
        self.assertTrue(world.wait_for("step 4/"), world.output)
        pid = world.rank(1)
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(world.end(), 128 + signal.SIGKILL, world.output)
        self.assertIn(f"rank 1 (pid {pid}) was ended by SIGKILL", world.output)
        self.assertEqual(self.failure()["pid"], pid)

    def test_another_number_of_virtual_ranks_is_another_run(self):
        self.run_on(1, f"{EPOCHS}1", run="run")
        two, plain = "config.DISTRIBUTED.VIRTUAL_RANKS=2", "config.DISTRIBUTED.NUM_PROC_PER_NODE=4"
        as_many_samples = "config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=16"
        for other, message in (((two,), "DISTRIBUTED.VIRTUAL_RANKS: 4 in the checkpoint, 2 now"),
                               ((two, as_many_samples), "DISTRIBUTED.VIRTUAL_RANKS: 4 in the checkpoint, 2 now"),
                               ((plain,), "DISTRIBUTED.VIRTUAL_RANKS: 4 in the checkpoint, 0 now")):
            for mode in ((), ("--check_config",), ("--dry_run",)):
                refused = self.tiny(*other, f"{EPOCHS}1", "engine_name=train", *mode)
                self.assertEqual(refused.returncode, 2, refused.stderr)
                self.assertIn(message, refused.stdout + refused.stderr)

    def test_processes_that_do_not_divide_are_refused(self):
        message = "config.DISTRIBUTED.VIRTUAL_RANKS is 4, which 3 processes do not divide; start one of 1, 2, 4"
        three = "config.DISTRIBUTED.NUM_PROC_PER_NODE=3"
        for arguments in (("--launch=local:3",), (three,), (three, "--check_config"), (three, "--print_config"),
                          (three, "--dry_run")):
            refused = self.tiny(VIRTUAL, *arguments)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn(message, refused.stdout + refused.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_dry_run_tells_both(self):
        dry = self.tiny(*launched(2), VIRTUAL, f"{EPOCHS}1", "--dry_run")
        self.assertEqual(dry.returncode, 0, dry.stderr)
        self.assertIn("ranks: this command starts 2 ranks, 0 to 1 of 2; they meet at a free port of this host\n"
                      "       4 virtual ranks on 2 processes\n", dry.stdout)
        self.assertIn("1 epochs of 2 updates", dry.stdout)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_settings_follow_the_virtual_ranks(self):
        printed = [self.call("--config=test/simclr_tiny", "--print_config", VIRTUAL, *launched(processes)).stdout
                   for processes in (1, 2)]
        for text in printed:
            self.assertIn("world_size: 4\n", text)
        self.assertEqual(printed[0], printed[1].replace("NUM_PROC_PER_NODE: 2", "NUM_PROC_PER_NODE: 1"))

    def test_a_sweep_of_runs_with_virtual_ranks(self):
        done = self.finish("engine_name=train", "config.DISTRIBUTED.VIRTUAL_RANKS=2,4", f"{EPOCHS}1")
        self.assertIn("sweep_1   finished", done.stdout)
        self.run_on(1, f"{EPOCHS}1", run="alone")
        self.assertEqual(self.weights(2, run="run/sweep_1"), self.weights(2, run="alone"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
