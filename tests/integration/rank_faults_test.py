# SPDX-License-Identifier: Apache-2.0
"""Ranks that hang, die, or are stopped at a bad moment: who is named, what is said, and with which code all end."""
import errno
import os
import signal
import unittest

from tests.integration.ranks_case import (HELD_BEFORE_THEY_MEET, ONE_CORE, RanksCase, children, has_variable,
                                          rank_variables)
from tests.integration.run_case import BINARY, held_at, without_command, without_privileges

TWO = "--launch=local:2"
ENDLESS = "config.OPTIMIZER.num_epochs=100000"
SYNC_BN = "config.MODEL.SYNC_BN_CONFIG.CONVERT_BN_TO_SYNC_BN=True"
SHARDED = "config.TRAINER.TASK_NAME=self_supervision_fsdp_task"
IN_USE = "run directory run cannot be used: lock run/.lock: is held by process "
TIMEOUT = "config.DISTRIBUTED.TIMEOUT_SECONDS=30"  # more than ranks of a busy machine are apart


class WithinAStepTest(RanksCase):
    """The others wait within forward or backward, where a Status has to pass through LibTorch as an exception."""

    def hang(self, *arguments, run):
        """The world, and the process of its rank that hangs."""
        world = self.world(TWO, ENDLESS, TIMEOUT, *arguments, run=run)
        self.assertTrue(world.wait_for("step 5/"), world.output)
        pid = world.rank(1)
        os.kill(pid, signal.SIGSTOP)
        return world, pid

    def assert_named(self, world, pid, run):
        self.assertEqual(world.end(), 7, world.output)
        self.assertIn(f"rank 1 (pid {pid}) does not answer rank 0: killing it", world.output)
        self.assertIn(f"the first failure: rank 1 (pid {pid}) did not answer the others", world.output)
        self.assertNotIn("[ssl/", world.output)
        report = self.failure(run=run)
        self.assertEqual((report["rank"], report["code"], report["exit_code"]), (1, "DEADLINE_EXCEEDED", 7))
        self.assertIn("no answer from rank 1", report["message"])

    def test_a_rank_that_hangs_is_killed_and_named(self):
        hanging = {"normalised": self.hang(SYNC_BN, run="normalised"), "sharded": self.hang(SHARDED, run="sharded")}
        for run, (world, pid) in hanging.items():
            self.assert_named(world, pid, run)

    def test_a_rank_that_dies_is_named_without_internals(self):
        world = self.world(TWO, ENDLESS, SYNC_BN)
        self.assertTrue(world.wait_for("step 5/"), world.output)
        pid = world.rank(1)
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(world.end(), 128 + signal.SIGKILL, world.output)
        self.assertRegex(world.output, rf"rank 1 \(process {pid} on .*\) ended: all-.* lost a connection \(Gloo: ")
        self.assertNotIn("[ssl/", world.output)
        self.assertNotIn("UNAVAILABLE: ", world.output, "a message, not a status")


class EarlyStopTest(RanksCase):

    def loading(self, world, rank):
        """The process of a rank that is just being started: its variables are there once its program is."""
        while True:
            for child in children(world.process.pid):
                if has_variable(child, f"RANK={rank}"):
                    return child
            self.assertIsNone(world.process.poll(), world.output)

    def test_a_stop_while_ranks_load_is_a_stop(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2):
            world = self.world(TWO, ENDLESS, variables=HELD_BEFORE_THEY_MEET)
            self.assertTrue(world.wait_for("this command starts 2 ranks"), world.output)
            world.process.send_signal(number)
            self.assertEqual(world.end(), 75, world.output)
            self.assertIn("stopped before the first step", world.output)
            self.assertFalse((self.folder / "run").exists())

    def test_a_stop_reaches_a_rank_that_stands_still_while_it_loads(self):
        world = self.world(TWO, ENDLESS, "config.DISTRIBUTED.CONNECT_SECONDS=60")
        self.assertTrue(world.wait_for("this command starts 2 ranks"), world.output)
        os.kill(self.loading(world, 1), signal.SIGSTOP)
        self.assertTrue(world.wait_for("; ranks meet at "), world.output)
        for number in (signal.SIGTERM, signal.SIGINT):
            world.process.send_signal(number)
        self.assertEqual(world.end(), 75, world.output)
        self.assertFalse((self.folder / "run").exists())

    def test_a_stop_while_ranks_load_again_is_a_stop(self):
        world = self.world(TWO, ENDLESS, "--restarts=3", variables=HELD_BEFORE_THEY_MEET)
        self.assertTrue(world.wait_for("; ranks meet at "), world.output)
        world.go_on()
        self.assertTrue(world.wait_for("step 5/"), world.output)
        os.kill(world.rank(1), signal.SIGKILL)
        self.assertTrue(world.wait_for("restart 1 of at most 3"), world.output)
        world.process.send_signal(signal.SIGTERM)
        self.assertEqual(world.end(), 75, world.output)
        report = self.failure()
        self.assertEqual((report["rank"], report["signal"], report["restarts"]), (1, 9, 0), "of the start before")

    def test_a_stop_of_one_rank_that_loads_is_a_stop_of_all(self):
        world = self.world("--launch=local:3", ENDLESS, "config.DISTRIBUTED.CONNECT_SECONDS=60",
                           variables=HELD_BEFORE_THEY_MEET)
        self.assertTrue(world.wait_for("this command starts 3 ranks"), world.output)
        os.kill(self.loading(world, 2), signal.SIGTERM)
        self.assertEqual(world.end(), 75, world.output)
        self.assertNotIn("did not come", world.output, "the others hear of it before that")
        self.assertEqual(world.output.count("stopped before the first step"), 1, world.output)

    def test_a_second_signal_after_the_save_changes_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            world = self.world(TWO, ENDLESS, run=f"run{number}")
            self.assertTrue(world.wait_for("step 5/"), world.output)
            world.process.send_signal(number)
            self.assertTrue(world.wait_for("stopped at iteration"), world.output)
            world.process.send_signal(number)
            self.assertEqual(world.end(), 75, world.output)
            self.assertNotIn("failure.json", self.files(f"run{number}"))

    def test_a_second_signal_before_the_save_leaves_a_report(self):
        """As in one process."""
        world = self.world(TWO, ENDLESS)
        self.wait_for_checkpoint(world)
        pids = [world.rank(rank) for rank in range(2)]
        first = os.pidfd_open(pids[0])
        os.kill(pids[1], signal.SIGSTOP)  # so that they cannot agree on a step at which to save
        for number in (signal.SIGINT, signal.SIGTERM):  # two of a kind may arrive as one
            world.process.send_signal(number)
        self.assert_gone(first)  # and the other goes on, to end as well
        # Where both wait, the kernel runs the handler of the later one first: launcher and rank may count otherwise.
        codes = (128 + signal.SIGINT, 128 + signal.SIGTERM)
        self.assertIn(world.end(), codes, world.output)
        report = self.failure()
        self.assertEqual((report["rank"], report["pid"]), (0, pids[0]))
        self.assertIn(report["exit_code"], codes)
        self.assertEqual(report["message"], "stopped by a second signal before the state was saved")
        self.assertEqual((report["phase"], report["restarts"], report["world_size"]), ("training", 0, 2))
        self.assertGreaterEqual(report["step"], 3)
        again = self.world(TWO, ENDLESS)
        self.assertTrue(again.wait_for("| step "), again.output)
        self.assertIn("resuming at iteration", again.output)
        self.assertEqual({name for name in self.files() if "failure" in name}, set(), "it was of the start before")

    def test_a_stop_of_one_rank_while_it_is_built_is_a_stop_of_all(self):
        world = self.world("--launch=local:3", ENDLESS, "--restarts=3")
        self.assertTrue(world.wait_for("run directory: "), world.output)
        os.kill(world.rank(2), signal.SIGTERM)
        self.assertEqual(world.end(), 75, world.output)
        self.assertNotIn(" E ", world.output)
        self.assertNotIn("restart", without_command(world.output))
        self.assertNotIn("failure.json", self.files())


class BeforeTheStartTest(RanksCase):

    def free_place(self):
        return f"config.DISTRIBUTED.RUN_ID=127.0.0.1:{self.free_port()}"

    def stop(self, world):
        world.process.send_signal(signal.SIGTERM)
        self.assertEqual(world.end(), 75, world.output)

    def limited(self, limit, *arguments):
        """One call under limits of ulimit."""
        return self.tiny("engine_name=train", *arguments, prefix=["sh", "-c", f'{limit}; exec "$@"', "-"])

    def test_too_few_file_descriptors_are_named_by_each_rank(self):
        for count in (20, 22, 24, 30):
            result = self.limited(f"ulimit -n {count}", TWO)
            self.assert_refused(result, 5, f"may have {count} file descriptors", "more are needed")
            self.assertNotIn("stopped before the first step", result.stderr)

    def test_more_ranks_than_can_be_had_are_refused(self):
        result = self.limited("ulimit -n 64", "--launch=local:25")
        self.assert_refused(result, 2, "25 ranks on this host", "which may have 64 and needs 16 itself")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_world_that_does_not_fit_the_data_is_refused_before_a_rank_starts(self):
        result = self.tiny("engine_name=train", "--launch=local:20")
        self.assert_refused(result, 2, "BATCHSIZE_PER_REPLICA")
        self.assertNotIn("this command starts", result.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_the_file_of_ranks_that_have_ended_is_removed(self):
        place = ("config.DISTRIBUTED.INIT_METHOD=file", f"config.DISTRIBUTED.RUN_ID={self.folder}/store")
        world = self.world(TWO, ENDLESS, *place)
        self.wait_for_checkpoint(world)
        os.kill(world.rank(1), signal.SIGKILL)
        self.assertEqual(world.end(), 128 + signal.SIGKILL, world.output)
        with open(self.folder / "store", "ab") as store:
            store.write(b"abc")  # as if it had been written to at that moment
        again = self.world(TWO, ENDLESS, *place, "--restarts=1")
        self.assertTrue(again.wait_for("resuming at iteration"), again.output)
        self.assertIn("/store, at which ranks met that have ended", again.output)
        self.assertTrue(again.wait_for("| step "), again.output)
        os.kill(again.rank(1), signal.SIGKILL)
        self.assertTrue(again.wait_for("resuming at iteration"), again.output)
        again.process.send_signal(signal.SIGTERM)
        self.assertEqual(again.end(), 75, again.output)
        self.assertFalse((self.folder / "store").exists(), "its ranks of two starts have ended")

    def test_a_second_start_is_refused_for_the_first_whatever_else_is_wrong(self):
        meets = self.free_place()
        port = int(meets.rsplit(":", 1)[1])
        first = self.world(TWO, ENDLESS, meets)
        self.assertTrue(first.wait_for("step 5/"), first.output)
        before = self.read(".lock")
        starts = [self.world(TWO, ENDLESS, meets)]  # its port
        starts += [self.world(ENDLESS, variables=rank_variables(rank, 2, port)) for rank in range(2)]
        # Ranks that take turns are looked at before they are started: these are too many for the checkpoints.
        starts.append(self.world("--launch=local:3", ENDLESS, command=(*ONE_CORE, BINARY)))
        for start in starts:
            self.assertEqual(start.end(), 5, start.output)
            self.assertIn(IN_USE, start.output)
        self.assertEqual(self.read(".lock"), before)
        self.assertEqual(self.tiny(TWO, ENDLESS, meets, "engine_name=knn").returncode, 2, "an evaluation may go beside it")
        self.stop(first)

    def test_looking_at_a_run_that_is_up_says_so(self):
        """Whatever a start would be refused for: here its port."""
        meets = self.free_place()
        first = self.world(TWO, ENDLESS, meets)
        self.assertTrue(first.wait_for("step 5/"), first.output)
        for look in ("--check_config", "--dry_run"):
            result = self.tiny("engine_name=train", TWO, ENDLESS, meets, look)
            self.assertEqual(result.returncode, 5, result.stdout + result.stderr)
            self.assertIn(IN_USE, result.stdout + result.stderr)
        self.stop(first)

    def assert_sweep_starts_once(self, *place):
        sweep = (TWO, ENDLESS, "config.SEED_VALUE=1,2", *place)
        first = self.world(*sweep)
        self.assertTrue(first.wait_for("step 5/"), first.output)
        for more in ((), ("--check_config",)):
            result = self.tiny("engine_name=train", *sweep, *more)
            self.assertEqual(result.returncode, 5, result.stdout + result.stderr)
            self.assertIn("run directory run/sweep_0 cannot be used: lock ", result.stdout + result.stderr)
        return first

    def test_a_sweep_that_is_up_is_not_started_again(self):
        """Its later runs are not taken from it either. What is wrong with one of them is no better when it has ended."""
        first = self.assert_sweep_starts_once()
        result = self.tiny("engine_name=train", TWO, ENDLESS, "config.SEED_VALUE=1,x")
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertIn("run directory run/sweep_0 cannot be used: lock ", result.stderr)
        self.assertIn("sweep 2 of 2 (config.SEED_VALUE=x): ", result.stderr)
        self.stop(first)

    def test_a_sweep_that_is_up_is_not_started_again_at_its_port(self):
        self.stop(self.assert_sweep_starts_once(self.free_place()))

    def test_a_run_that_is_up_is_not_tried_again(self):
        first = self.world(TWO, ENDLESS)
        self.assertTrue(first.wait_for("step 5/"), first.output)
        second = self.world(TWO, ENDLESS, "--restarts=3")
        self.assertEqual(second.end(), 5, second.output)
        self.assertIn(f"no restart: {IN_USE}", second.output)
        self.assertNotIn("restart 1 of", second.output)
        self.stop(first)

    def test_a_directory_that_is_removed_or_replaced_is_not_begun_anew(self):
        for run in ("removed", "replaced"):
            world = self.world(TWO, ENDLESS, "--restarts=3", run=run)
            self.assertTrue(world.wait_for("step 5/"), world.output)
            (self.folder / run).rename(self.folder / f"{run}_before")
            if run == "replaced":
                (self.folder / run).mkdir()
            self.assertEqual(world.end(), 5, world.output)
            self.assertIn(f"no restart: run directory {run} is not that of these ranks", world.output)
            self.assertNotIn("no checkpoint", world.output, "where these were, who knows")
            self.assertFalse((self.folder / run / "checkpoints").exists())

    def test_a_directory_that_goes_between_two_saves_is_not_begun_anew(self):
        for rank, run in ((0, "first"), (1, "second")):
            world = self.world(TWO, ENDLESS, "--restarts=3", "config.CHECKPOINT.CHECKPOINT_FREQUENCY=-1",
                               "config.CHECKPOINT.CHECKPOINT_ITER_FREQUENCY=-1", run=run)
            self.assertTrue(world.wait_for("| step "), world.output)
            (self.folder / run).rename(self.folder / f"{run}_before")
            os.kill(world.rank(rank), signal.SIGKILL)
            self.assertEqual(world.end(), 128 + signal.SIGKILL, world.output)
            self.assertIn(f"no restart: run directory {run} is not that of these ranks", world.output)
            self.assertNotIn("no checkpoint", world.output, "where these were, who knows")
            self.assertFalse((self.folder / run).exists())

    def test_a_directory_that_is_locked_up_under_a_run_is_not_tried_again(self):
        world = self.world(TWO, ENDLESS, "--restarts=3", command=(*without_privileges(), BINARY))
        self.assertTrue(world.wait_for("step 5/"), world.output)
        folders = (self.folder / "run/checkpoints", self.folder / "run")
        for folder in folders:
            folder.chmod(0o555)
        code = world.end()
        for folder in folders:
            folder.chmod(0o755)
        self.assertEqual(code, 5, world.output)
        self.assertIn("; no restart: run directory run cannot be used: file run: writing into the directory", world.output)

    def test_a_mistake_that_all_ranks_find_is_said_once(self):
        world = self.world(TWO, "config.MODEL.TRUNK.RESNETS.WIDTH_MULTIPLIER=0.5")
        self.assertEqual(world.end(), 2, world.output)
        self.assertEqual(world.output.count("the trunk gives 256"), 1, world.output)

    def refused_by_hand(self, *arguments, **options):
        """The codes of two ranks that nobody has started together, and what the one that speaks says."""
        port = self.free_port()
        ranks = [self.world(*arguments, variables=rank_variables(rank, 2, port), **options) for rank in range(2)]
        codes = [rank.end() for rank in ranks]
        return codes, self.said_once([rank.output for rank in ranks])

    def test_contradicting_settings_are_said_once(self):
        cases = (("moco_tiny", (SHARDED,), "command line:4: config.TRAINER.TASK_NAME is self_supervision_fsdp_task"),
                 ("swav_tiny", (SHARDED, "config.DISTRIBUTED.GRADIENT_COMPRESSION=fp16"),
                  "command line:5: config.DISTRIBUTED.GRADIENT_COMPRESSION is fp16"),
                 ("swav_tiny", ("config.OPTIMIZER.use_larc=True", "config.OPTIMIZER.name=lars"),
                  "command line:4: config.OPTIMIZER.use_larc is true"))
        for config, arguments, says in cases:
            for question in ((), ("--check_config",)):
                world = self.world(TWO, *arguments, *question, config=config)
                self.assertEqual(world.end(), 2, world.output)
                self.assertEqual(world.output.count(says), 1, world.output)
            codes, said = self.refused_by_hand(*arguments, config=config)
            self.assertEqual(codes, [2, 2], said)
            self.assertEqual(said.count(says), 1, said)

    def test_what_the_run_that_is_there_refuses_is_said_once(self):
        short = "config.OPTIMIZER.num_epochs=1"
        self.finished(TWO, short)
        for argument, says in (("config.SEED_VALUE=7", "SEED_VALUE: 0 in the checkpoint, 7 now"),
                               ("--resume_from=8", "config.CHECKPOINT.RESUME_FROM is 8")):
            world = self.world(TWO, short, argument)
            self.assertEqual(world.end(), 2, world.output)
            self.assertEqual(world.output.count(says), 1, world.output)
            codes, said = self.refused_by_hand(short, argument)
            self.assertEqual(codes[0], 2, said)
            self.assertIn(says, said)

    def test_missing_data_are_said_once(self):
        folder = ("config.DATA.TRAIN.DATA_SOURCES=[disk_folder]", "config.DATA.TRAIN.DATA_PATHS=[/no/such/folder]")
        world = self.world(TWO, *folder)
        self.assertEqual(world.end(), 2, world.output)
        self.assertEqual(world.output.count("there is no folder /no/such/folder, "), 1, world.output)
        if "this command starts 2 ranks" in world.output:  # with a core for each
            self.assertRegex(world.output, r"rank 0 of 2 \(on \S+\): .*config.DATA.TRAIN.DATA_PATHS: ")


class ReportTest(RanksCase):

    def test_damaged_checkpoints_are_not_tried_again_nor_named(self):
        self.finished(TWO, "config.OPTIMIZER.num_epochs=1")
        for part in (self.folder / "run/checkpoints").glob("step_*/state_rank1.safetensors"):
            part.unlink()
        world = self.world(TWO, "config.OPTIMIZER.num_epochs=1", "--restarts=2")
        self.assertEqual(world.end(), 4, world.output)
        self.assertIn("no restart: damaged files", world.output)
        self.assertNotIn("restart 1 of", world.output)
        self.assertNotIn("last_checkpoint", self.failure())

    def test_files_for_which_there_is_no_room_are_not_tried_again(self):
        world = self.world(TWO, "config.OPTIMIZER.num_epochs=1", "--restarts=3",
                           command=("prlimit", "--fsize=150000", BINARY))
        self.assertEqual(world.end(), 5, world.output)
        self.assertIn("no restart: there is no room for what the run saves in run: File too large", world.output)
        self.assertNotIn("restart 1 of", world.output)
        self.assertEqual(self.failure()["errno"], errno.EFBIG)

    def test_an_evaluation_that_crashes_says_where_its_training_ended(self):
        when = "evaluating the network with: checkpoint of iteration 5"
        world = self.world(TWO, "config.OPTIMIZER.num_epochs=1", "engine_name=[train,knn]", variables=held_at(when))
        self.assertTrue(world.wait_for(when), world.output)
        os.kill(world.rank(1), signal.SIGSEGV)
        world.go_on()
        self.assertEqual(world.end(), 128 + signal.SIGSEGV, world.output)
        report = self.failure()
        self.assertEqual((report["step"], report["epoch"], report["last_checkpoint"]["step"]), (5, 0, 5))


if __name__ == "__main__":
    unittest.main(verbosity=2)
