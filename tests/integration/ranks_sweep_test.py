# SPDX-License-Identifier: Apache-2.0
"""Sweeps whose runs have several ranks each."""
import os
import pathlib
import shutil
import signal
import unittest

from tests.integration.ranks_case import HELD_BEFORE_THEY_MEET, ONE_CORE, RanksCase, rank_variables
from tests.integration.run_case import BINARY, held_at

TWO = "--launch=local:2"
ENDLESS = "config.OPTIMIZER.num_epochs=100000"


class RanksSweepTest(RanksCase):

    def test_each_run_of_a_sweep_has_its_ranks(self):
        done = self.world(TWO, "config.OPTIMIZER.num_epochs=1", "config.SEED_VALUE=0,1")
        self.assertEqual(done.end(), 0, done.output)
        for number in (0, 1):
            self.assertRegex(done.output, rf"(?m)^sweep_{number}   finished  config.SEED_VALUE={number}")
            self.assertIn(f"sweep_{number}/checkpoints/step_5/state_rank1.safetensors", self.files())
        self.finished(TWO, "config.OPTIMIZER.num_epochs=1", "config.SEED_VALUE=1", run="alone")
        self.assertEqual(self.weights(5, run="run/sweep_1"), self.weights(5, run="alone"))

    def test_a_stop_ends_a_sweep_of_ranks_and_the_same_command_goes_on(self):
        arguments = (TWO, "config.OPTIMIZER.num_epochs=2", "config.SEED_VALUE=0,1")
        world = self.stopped_at(3, *arguments)
        self.assertIn("1 runs were not started", world.output)
        again = self.finished(*arguments)
        self.assertIn("resuming at iteration", again.output)
        self.assertIn("sweep_1   finished", again.output)

    def test_two_stops_end_a_sweep_of_ranks(self):
        world = self.world(TWO, ENDLESS, "config.SEED_VALUE=0,1,2")
        self.assertTrue(world.wait_for("step 3/"), world.output)
        for number in (signal.SIGINT, signal.SIGTERM):  # two of a kind may arrive as one
            world.process.send_signal(number)
        self.assertEqual(world.end(), 75, world.output)
        self.assertNotIn("sweep 2 of 3", world.output)
        self.assertRegex(world.output, "(?m)^sweep_0   stopped ")
        self.assertIn("2 runs were not started", world.output)

    def test_a_stop_while_a_run_ends_is_not_lost(self):
        world = self.world(TWO, "config.OPTIMIZER.num_epochs=1", "config.SEED_VALUE=0,1,2",
                           variables=HELD_BEFORE_THEY_MEET)
        self.assertTrue(world.wait_for("; ranks meet at "), world.output)
        world.go_on()
        self.assertTrue(world.wait_for("finished at iteration"), world.output)
        world.process.send_signal(signal.SIGINT)
        self.assertEqual(world.end(), 75, world.output)
        self.assertNotIn("sweep 3 of 3", world.output)

    def test_a_stop_before_the_ranks_come_starts_none(self):
        """Ranks that take turns are looked at before they are started."""
        world = self.world(TWO, ENDLESS, "config.SEED_VALUE=0,1", command=(*ONE_CORE, BINARY),
                           variables=held_at("they take turns", until=signal.SIGTERM))
        self.assertTrue(world.wait_for("they take turns"), world.output)
        world.process.send_signal(signal.SIGTERM)
        self.assertEqual(world.end(), 75, world.output)
        self.assertRegex(world.output, "(?m)^sweep_0   stopped ")
        self.assertIn("1 runs were not started", world.output)

    def test_a_run_that_stops_by_itself_stops_no_other(self):
        for run, ranks in (("one", ()), ("two", (TWO,))):
            world = self.world(*ranks, "config.PROFILING.RUNTIME_PROFILING.USE_PROFILER=True",
                               "config.PROFILING.STOP_TRAINING_AFTER_PROFILING=True",
                               "config.PROFILING.NUM_ITERATIONS=1", "config.SEED_VALUE=0,1", run=run)
            self.assertEqual(world.end(), 75, world.output)
            for number in (0, 1):
                self.assertRegex(world.output, f"(?m)^sweep_{number}   stopped ")

    def test_a_stop_is_heard_behind_a_run_that_stopped_by_itself(self):
        world = self.world("config.PROFILING.RUNTIME_PROFILING.USE_PROFILER=True", "config.PROFILING.NUM_ITERATIONS=1",
                           "config.PROFILING.STOP_TRAINING_AFTER_PROFILING=True,False", "config.OPTIMIZER.num_epochs=10000")
        self.assertTrue(world.wait_for("sweep 2 of 2"), world.output)
        self.assertTrue(world.wait_for("step 5/"), world.output)
        world.process.send_signal(signal.SIGTERM)
        self.assertTrue(world.wait_for("stopped at iteration"), world.output)
        self.assertEqual(world.end(), 75, world.output)
        self.assertRegex(world.output, "(?m)^sweep_1   stopped ")

    def test_a_sweep_is_up_between_its_runs_too(self):
        sweep = (TWO, "config.OPTIMIZER.num_epochs=1,100000")
        world = self.world(*sweep)
        self.assertTrue(world.wait_for("sweep 2 of 2"), world.output)
        for look in ((), ("--check_config",)):
            second = self.tiny("engine_name=train", *sweep, *look)
            self.assertEqual(second.returncode, 5, second.stdout + second.stderr)
            self.assertIn("run/sweep_0 cannot be used: lock run/sweep_0/.sweep.lock: is held by process ",
                          second.stdout + second.stderr)
        world.process.send_signal(signal.SIGTERM)
        self.assertEqual(world.end(), 75, world.output)

    def test_the_directory_of_a_sweep_may_have_any_name(self):
        name = 'a, "b": [c]'
        self.finished(TWO, "config.OPTIMIZER.num_epochs=1", "config.SEED_VALUE=0,1", run=f"'{name}'")
        for number in (0, 1):
            self.assertIn(f"sweep_{number}/checkpoints/step_5/model.safetensors", self.files(run=name))

    def test_a_sweep_of_a_host_without_room_is_refused_whole(self):
        small = ("config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=2", "config.DATA.TRAIN.DATA_LIMIT=200",
                 "config.SEED_VALUE=0,1")
        for question in ((), ("--check_config",)):
            limited = self.tiny("engine_name=train", "--launch=local:25", *small, *question,
                                prefix=["sh", "-c", 'ulimit -n 64; exec "$@"', "-"])
            self.assertEqual(limited.returncode, 2, limited.stdout + limited.stderr)
            self.assertEqual((limited.stdout + limited.stderr).count("25 ranks on this host"), 1)
            self.assertNotIn("would run here", limited.stdout)
        mixed = self.tiny("engine_name=train", "config.DISTRIBUTED.NUM_PROC_PER_NODE=1,2", "--check_config")
        self.assertEqual(mixed.returncode, 2, mixed.stdout + mixed.stderr)
        self.assertRegex(mixed.stdout, "^as a sweep they would not start: of the 2 runs of this sweep 1 have several ranks")
        self.assertNotIn("would run here", mixed.stdout)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_sweep_of_a_rank_is_refused_once(self):
        rank = self.world("config.SEED_VALUE=0,1", variables=rank_variables(1, 2, 29500))
        self.assertEqual(rank.end(), 2, rank.output)
        self.assertEqual(rank.output.count("start each of its runs by itself"), 1, rank.output)
        self.assertNotIn("sweep 1 of 2", rank.output)

    def test_a_sweep_goes_on_with_the_program_that_began_it(self):
        built = BINARY.resolve()
        program = self.folder / "ssl/tools/ssl_main"
        program.parent.mkdir(parents=True)
        shutil.copy(built, program)
        for link, target in (("_solib_k8", built.parents[2] / "_solib_k8"),
                             ("ssl/tools/ssl_main.runfiles", os.environ.get("RUNFILES_DIR") or f"{built}.runfiles")):
            (self.folder / link).symlink_to(pathlib.Path(target).absolute())
        world = self.world(TWO, "config.OPTIMIZER.num_epochs=1", "config.SEED_VALUE=0,1", command=(program,),
                           variables={"RUNFILES_DIR": ""})
        self.assertTrue(world.wait_for("step 3/"), world.output)
        program.unlink()
        self.assertEqual(world.end(), 0, world.output)
        self.assertIn("sweep_1   finished", world.output)

    def test_a_run_that_fails_says_which_rank_did(self):
        world = self.world(TWO, ENDLESS, "config.SEED_VALUE=0,1")
        self.assertTrue(world.wait_for("step 3/"), world.output)
        os.kill(world.rank(1), signal.SIGKILL)
        self.assertTrue(world.wait_for("sweep 2 of 2"), world.output)
        world.process.send_signal(signal.SIGTERM)
        self.assertEqual(world.end(), 75, world.output)
        self.assertRegex(world.output, r"(?m)^sweep_0   failed .*rank 1 \(pid \d+\) was ended by SIGKILL")


if __name__ == "__main__":
    unittest.main(verbosity=2)
