# SPDX-License-Identifier: Apache-2.0
"""Runs of several ranks on this host: started, connected, trained, interrupted, killed, started again."""
import json
import os
import re
import signal
import struct
import unittest
import zlib

from tests.integration.ranks_case import RanksCase, bound_socket, rank_variables
from tests.integration.run_case import held_at

EPOCHS = 6
STEPS = 5 * EPOCHS  # of two ranks, each with 8 of 80 samples in a step
LONG = f"config.OPTIMIZER.num_epochs={EPOCHS}"
TWO = "--launch=local:2"


def png(side, grey):
    """A square of one shade, as an 8-bit grey PNG."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    rows = (b"\0" + bytes([grey]) * side) * side
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class RanksTest(RanksCase):

    _whole = []  # the weights at the end of an uninterrupted run, once it was needed

    def whole(self):
        if not self._whole:
            self.finished(TWO, LONG, run="whole")
            self._whole.append(self.weights(STEPS, run="whole"))
        return self._whole[0]

    def check_run(self, config, ranks, run):
        world = self.finished(f"--launch=local:{ranks}", "config.OPTIMIZER.num_epochs=1", config=config, run=run)
        self.assertIn(f"this command starts {ranks} ranks, 0 to {ranks - 1} of {ranks}", world.output)
        self.assertEqual([line for line in world.lines if line.startswith(f"[{ranks - 1}]")], [], "only rank 0 prints")
        steps = 80 // (8 * ranks)
        files = self.files(run=run)
        for name in ("log.txt", "train_config.yaml", "results.json", "metrics.jsonl"):
            self.assertIn(name, files)
        for rank in range(ranks):
            self.assertIn(f"checkpoints/step_{steps}/state_rank{rank}.safetensors", files)
            self.assertEqual(f"logs/rank{rank}.txt" in files, rank > 0)
        self.assertNotIn("failure.json", files)
        self.assertIn(f"NUM_PROC_PER_NODE: {ranks}\n", self.read("train_config.yaml", run=run))

    def check_runs(self, config):
        for ranks in (2, 4):
            with self.subTest(ranks=ranks):
                self.check_run(config, ranks, run=f"run{ranks}")

    def test_swav(self):
        self.check_runs("swav_tiny")

    def test_moco(self):
        self.check_runs("moco_tiny")

    def test_simclr(self):
        self.check_runs("simclr_tiny")
        for ranks in (2, 4):
            self.assertIn(f"world_size: {ranks}\n", self.read("train_config.yaml", run=f"run{ranks}"))

    def test_barlow_twins(self):
        self.check_runs("barlow_twins_tiny")

    def test_supervised(self):
        self.check_runs("supervised_tiny")

    def test_keys_start_ranks_and_the_run_goes_on_by_its_own_configuration(self):
        self.finished("config.DISTRIBUTED.NUM_PROC_PER_NODE=2", "config.OPTIMIZER.num_epochs=1")
        again = self.call("--config=run/train_config.yaml")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("this command starts 2 ranks", again.stderr)
        self.assertIn("resuming at iteration 5 of 5", again.stderr)

    def test_ranks_meet_in_a_file(self):
        self.finished(TWO, "config.OPTIMIZER.num_epochs=1", "config.DISTRIBUTED.INIT_METHOD=file",
                      f"config.DISTRIBUTED.RUN_ID={self.folder}/store")

    def test_an_evaluation_is_reported_once_and_says_what_one_process_says(self):
        world = self.world(TWO, "config.OPTIMIZER.num_epochs=1", "engine_name=[train,knn,linear_eval]")
        self.assertEqual(world.end(), 0, world.output)
        self.assertEqual(world.output.count("finished at iteration 5 of 5"), 1)
        self.assertNotIn("[0] \n", world.output, "no empty lines")
        self.assertEqual(world.output.count("(cosine kNN, "), 1, world.output)
        of_two = json.loads(self.read("results.json"))
        self.finish_alone("engine_name=[knn,linear_eval]")
        of_one = json.loads(self.read("results.json"))
        self.assertEqual(of_two["knn"], of_one["knn"])
        self.assertEqual(of_two["linear_eval"], of_one["linear_eval"])

    def finish_alone(self, *arguments):
        result = self.tiny("config.OPTIMIZER.num_epochs=1", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_killed_rank_ends_the_world_and_is_named(self):
        for rank, run in ((0, "first"), (1, "second")):
            with self.subTest(rank=rank):
                world = self.world(TWO, "config.OPTIMIZER.num_epochs=1000", run=run)
                self.wait_for_checkpoint(world, run)
                pid = world.rank(rank)
                os.kill(pid, signal.SIGKILL)
                self.assertEqual(world.end(), 128 + signal.SIGKILL, world.output)
                self.assertIn(f"rank {rank} (pid {pid}) was ended by SIGKILL", world.output)
                self.assertIn(f"rank {rank} (process {pid} on ", world.output, "the other rank says who has gone")
                self.assertNotIn("frame #", world.output)
                report = self.failure(run=run)
                self.assertEqual((report["rank"], report["pid"], report["world_size"]), (rank, pid, 2))
                self.assertEqual((report["signal"], report["exit_code"]), (9, 137))
                self.assertGreaterEqual(report["last_checkpoint"]["step"], 3)
                self.assertGreaterEqual(report["step"], report["last_checkpoint"]["step"])
                self.assertTrue(os.path.isdir(self.folder / report["last_checkpoint"]["directory"]))

    def test_restarts_end_with_the_weights_of_an_uninterrupted_run(self):
        world = self.world(TWO, LONG, "--restarts=2", variables=held_at("step 8/"))
        self.assertTrue(world.wait_for("step 8/"), world.output)
        os.kill(world.rank(1), signal.SIGKILL)
        world.go_on()
        self.assertTrue(world.wait_for("restart 1 of at most 2"), world.output)
        self.assertTrue(world.wait_for("step 8/"), world.output)
        world.go_on()
        self.assertEqual(world.end(), 0, world.output)
        self.assertIn("resuming at iteration ", world.output)
        self.assertEqual(self.weights(STEPS), self.whole())
        self.assertNotIn("failure.json", self.files())

    def test_a_stop_of_the_command_saves_and_the_same_command_goes_on(self):
        self.stopped_at(5, TWO, LONG)
        self.assertNotIn("failure.json", self.files())
        self.finished(TWO, LONG)
        self.assertEqual(self.weights(STEPS), self.whole())

    def test_ranks_that_share_out_parameters_go_on_and_one_process_evaluates(self):
        sharded = "config.TRAINER.TASK_NAME=self_supervision_fsdp_task"
        self.finished(TWO, LONG, sharded, run="uninterrupted")
        self.stopped_at(5, TWO, LONG, sharded)
        self.finished(TWO, LONG, sharded)
        self.assertEqual(self.weights(STEPS), self.weights(STEPS, run="uninterrupted"))
        evaluated = self.tiny(LONG, "engine_name=[knn,extract_features]")
        self.assertEqual(evaluated.returncode, 0, evaluated.stderr)
        self.assertEqual(json.loads(self.read("results.json"))["knn"]["iteration"], STEPS)

    def test_a_request_to_save_reaches_all_ranks(self):
        world = self.world(TWO, LONG, "config.CHECKPOINT.CHECKPOINT_FREQUENCY=-1",
                           "config.CHECKPOINT.CHECKPOINT_ITER_FREQUENCY=-1",
                           variables=held_at("step 5/", until=signal.SIGUSR1))
        self.assertTrue(world.wait_for("step 5/"), world.output)
        world.process.send_signal(signal.SIGUSR1)
        self.assertEqual(world.end(), 0, world.output)
        saved = re.search(r"snapshot asked for at iteration (\d+): saving", world.output)
        self.assertIsNotNone(saved, world.output)
        self.assertIn(f"checkpoints/step_{saved.group(1)}/MANIFEST.json", self.files())

    def test_a_trace_shows_the_reductions_beside_backward(self):
        self.finished(TWO, LONG, "config.PROFILING.RUNTIME_PROFILING.USE_PROFILER=True",
                      "config.PROFILING.START_ITERATION=2", "config.PROFILING.NUM_ITERATIONS=3")
        for rank in range(2):
            trace = json.loads(self.read(f"profile/rank{rank}_iterations_3-5.json"))
            ranges = [event for event in trace["traceEvents"] if event["ph"] == "X"]
            backwards = [event for event in ranges if event["name"] == "backward"]
            waits = [event for event in ranges if event["name"] == "waiting for reduced gradients"]
            reductions = [event for event in ranges if event["name"].startswith("all-reduce (mean) of Float [")
                          and event["tid"] != backwards[0]["tid"]]
            self.assertEqual((len(backwards), len(waits), len(reductions)), (3, 3, 3), "one small bucket in each step")
            for backward, wait, reduction in zip(backwards, waits, reductions):
                for part in (wait, reduction):
                    self.assertLess(backward["ts"], part["ts"])
                    self.assertLess(part["ts"] + part["dur"], backward["ts"] + backward["dur"])

    def test_no_rank_outlives_its_launcher(self):
        world = self.world(TWO, "config.OPTIMIZER.num_epochs=100000")
        self.assertTrue(world.wait_for("step 2/"), world.output)
        ranks = [os.pidfd_open(world.rank(rank)) for rank in range(2)]
        world.process.kill()
        for rank in ranks:
            self.assert_gone(rank)

    def test_a_second_run_in_the_directory_is_refused(self):
        first = self.world(TWO, "config.OPTIMIZER.num_epochs=100000")
        self.assertTrue(first.wait_for("step 2/"), first.output)
        second = self.world(TWO)
        self.assertEqual(second.end(), 5, second.output)
        self.assertIn("is held by process", second.output)
        self.assertNotIn("failure.json", self.files())
        first.process.send_signal(signal.SIGTERM)
        self.assertEqual(first.end(), 75, first.output)

    def test_one_rank_goes_on_for_two_with_the_samples_of_both(self):
        self.finished(TWO, "config.OPTIMIZER.num_epochs=1")
        for arguments in ((), ("--check_config",), ("--dry_run",)):
            refused = self.tiny("engine_name=train", "config.OPTIMIZER.num_epochs=1", *arguments)
            self.assert_refused(refused, 2)
            said = refused.stdout + refused.stderr
            self.assertIn("was saved by 2 ranks that take 16 samples in an update, and would go on with 1 that takes 8", said)
            self.assertIn("set config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=16", said)
        self.finish_alone("engine_name=train", "config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=16")

    def losses(self, run):
        lines = [json.loads(line) for line in self.read("metrics.jsonl", run=run).splitlines()]
        return {line["iteration"]: line["Training/Loss"] for line in lines if "Training/Loss" in line}

    def test_four_ranks_then_two_one_and_four_learn_what_four_learn(self):
        settings = (LONG, "config.MODEL.SYNC_BN_CONFIG.CONVERT_BN_TO_SYNC_BN=True", "config.OPTIMIZER.use_zero=True",
                    "config.LOSS.swav_loss.queue.queue_length=32", "config.OPTIMIZER.param_schedulers.lr.start_value=0.01")
        batch = "config.DATA.TRAIN.BATCHSIZE_PER_REPLICA="
        self.finished("--launch=local:4", f"{batch}4", *settings, run="whole")
        for ranks, until in ((4, 4), (2, 6), (1, 8)):
            self.stopped_at(until, f"--launch=local:{ranks}", f"{batch}{16 // ranks}", *settings)
        last = self.finished("--launch=local:4", f"{batch}4", *settings)
        self.assertIn("saved by 1 rank, and goes on with 4: ", last.output)
        expected, found = self.losses("whole"), self.losses("run")
        self.assertEqual(list(found), list(expected))
        # A rank with another batch rounds otherwise. On some processors that grows to 1e-3 within 16 iterations, in which
        # nobody could see a fault: these ten have the losses of each number of ranks.
        for iteration in range(1, 11):
            loss = expected[iteration]
            self.assertLess(abs(found[iteration] - loss), 1e-5 * loss, f"iteration {iteration}")

    def test_compressed_gradients_go_on_bit_for_bit(self):
        for kind in ("bf16", "fp16"):
            compression = f"config.DISTRIBUTED.GRADIENT_COMPRESSION={kind}"
            self.finished(TWO, LONG, compression, run=f"{kind}_uninterrupted")
            self.assertNotEqual(self.weights(STEPS, run=f"{kind}_uninterrupted"), self.whole())
            self.stopped_at(5, TWO, LONG, compression, run=kind)
            refused = self.tiny(TWO, LONG, "engine_name=train", run=kind)
            self.assert_refused(refused, 2, f"DISTRIBUTED.GRADIENT_COMPRESSION: {kind} in the checkpoint, none now")
            self.finished(TWO, LONG, compression, run=kind)
            self.assertEqual(self.weights(STEPS, run=kind), self.weights(STEPS, run=f"{kind}_uninterrupted"))

    def test_compressed_gradients_of_parameters_that_are_shared_out_are_refused(self):
        for mode in ((), ("--check_config",), ("--dry_run",)):
            refused = self.tiny(TWO, "config.DISTRIBUTED.GRADIENT_COMPRESSION=bf16", *mode,
                                "config.TRAINER.TASK_NAME=self_supervision_fsdp_task")
            self.assertEqual(refused.returncode, 2, refused.stdout + refused.stderr)
            self.assertIn("config.DISTRIBUTED.GRADIENT_COMPRESSION is bf16, and config.TRAINER.TASK_NAME is "
                          "self_supervision_fsdp_task", refused.stdout + refused.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_zero_trains_what_is_trained_without_it(self):
        self.finished(TWO, LONG, "config.OPTIMIZER.use_zero=True")
        self.assertEqual(self.weights(STEPS), self.whole())

    def test_a_dry_run_tells_the_ranks_and_their_steps(self):
        dry = self.tiny(TWO, "--dry_run", "engine_name=train")
        self.assertEqual(dry.returncode, 0, dry.stderr)
        self.assertIn("ranks: this command starts 2 ranks, 0 to 1 of 2; they meet at a free port of this host\n", dry.stdout)
        self.assertIn("2 epochs of 5 updates, 10 in all", dry.stdout)
        self.assertEqual(list(self.folder.iterdir()), [])
        alone = self.tiny("--dry_run", "engine_name=train")
        self.assertIn("ranks: one process\n", alone.stdout)


class MistakesTest(RanksCase):

    def by_hand(self, rank, port, *arguments, size=2, **options):
        return self.world(*arguments, variables=rank_variables(rank, size, port), **options)

    def test_ranks_by_hand_train(self):
        port = self.free_port()
        ranks = [self.by_hand(rank, port, "config.OPTIMIZER.num_epochs=1") for rank in range(2)]
        for rank in ranks:
            self.assertEqual(rank.end(), 0, rank.output)
        self.assertIn("rank 0 of 2 (RANK and WORLD_SIZE)", ranks[0].output)
        self.assertIn(f"ranks meet at 127.0.0.1:{port}", ranks[0].output)
        self.assertEqual(ranks[1].output, "")
        self.assertIn("NUM_NODES: 2\n", self.read("train_config.yaml"))

    def test_unequal_configurations_are_refused_on_all_ranks(self):
        port = self.free_port()
        ranks = [self.by_hand(rank, port, f"config.OPTIMIZER.num_epochs={1 + rank}") for rank in range(2)]
        self.assertEqual([rank.end() for rank in ranks], [2, 2])
        output = self.said_once([rank.output for rank in ranks])
        self.assertRegex(output, r" rank \d of 2 \(on \S+\): rank 1 \(on ")
        self.assertIn("config.OPTIMIZER.num_epochs is '2' (command line:4), on rank 0 '1'", output)
        self.assertFalse((self.folder / "run").exists())

    def on_two_hosts(self, *arguments, **options):
        """Two ranks, each with a working directory of its own: "host0", "host1"."""
        port = self.free_port()
        ranks = [self.by_hand(rank, port, *arguments, folder=f"host{rank}", **options) for rank in range(2)]
        return [(rank.end(), rank.output) for rank in ranks]

    PHOTOS = ("config.DATA.TRAIN.DATA_SOURCES=[disk_folder]", "config.DATA.TRAIN.DATA_PATHS=[photos]",
              "config.DATA.TRAIN.DATA_LIMIT=-1")

    def write_photos(self, host, images):
        """Their paths."""
        paths = []
        for number in range(images):
            paths.append(self.folder / host / f"photos/{'ant' if number % 2 else 'bee'}/{number:02}.png")
            paths[-1].parent.mkdir(parents=True, exist_ok=True)
            paths[-1].write_bytes(png(28, number))
        return paths

    def test_an_error_of_one_rank_ends_all_and_each_names_it(self):
        for culprit in range(2):
            with self.subTest(culprit=culprit):
                paths = [self.write_photos(f"host{host}", 80) for host in range(2)]
                for path in paths[culprit][40:]:
                    path.write_bytes(b"no image")  # of the epoch's first samples in whatever order: some
                run = f"run{culprit}"
                ends = self.on_two_hosts(*self.PHOTOS, "config.DATA.TRAIN.MAX_BROKEN_FRACTION=0",
                                         "config.OPTIMIZER.num_epochs=100", run=f"{self.folder}/{run}")
                (code, _), (other_code, other_output) = ends[culprit], ends[1 - culprit]
                self.assertEqual((code, other_code), (4, 7), ends)
                logs = {0: self.read("log.txt", run=run), 1: self.read("logs/rank1.txt", run=run)}
                self.assertIn("image is neither JPEG, PNG nor WebP; it starts with 'no image'", logs[culprit])
                for text in (other_output, logs[1 - culprit]):
                    self.assertRegex(text, rf"rank {culprit} \(process \d+ on .*"
                                           rf" on rank {1 - culprit} of 2 lost a connection")
                self.assertNotIn("did not finish within", other_output, "nobody waits for the timeout")

    def test_run_directories_of_each_hosts_own_are_refused_on_all_ranks(self):
        ends = self.on_two_hosts()
        self.assertEqual([code for code, _ in ends], [7, 5], ends)
        for _, output in ends:
            self.assertIn("run directory run of rank 1 (on ", output)
            self.assertIn("config.CHECKPOINT.DIR has to be on a file system that all hosts reach", output)
        self.assertLessEqual(self.files("host0/run"), {".lock"})
        self.assertFalse((self.folder / "host1/run").exists())

    def test_a_copy_of_the_data_that_lacks_a_file_is_refused_on_all_ranks(self):
        for host, images in (("host0", 20), ("host1", 19)):
            self.write_photos(host, images)
        ends = self.on_two_hosts(*self.PHOTOS, run=f"{self.folder}/run")
        self.assertEqual([code for code, _ in ends], [2, 2], ends)
        self.assertRegex(self.said_once([output for _, output in ends]),
                         r"config.DATA.TRAIN is not the same data set on all ranks: rank 1 \(on \S+\) has 19 "
                         r"samples, .*and rank 0 \(on \S+\) has 20 samples")
        self.assertFalse((self.folder / "run/checkpoints").exists())

    def test_a_taken_port_is_named(self):
        with bound_socket() as other:
            other.listen()
            port = other.getsockname()[1]
            world = self.world(TWO, f"config.DISTRIBUTED.RUN_ID=127.0.0.1:{port}",
                               "config.DISTRIBUTED.CONNECT_SECONDS=60")
            self.assertEqual(world.end(), 2, world.output)
            self.assertIn(f"port {port}, at which rank 0 is to listen, cannot be had", world.output)
            self.assertNotIn("this command starts", world.output)
            by_hand = self.by_hand(0, port)
            self.assertEqual(by_hand.end(), 2, by_hand.output)
        self.assertIn(f"port {port}, at which rank 0 is to listen, is taken by another process", by_hand.output)

    def test_a_master_that_is_not_there_is_named(self):
        port = self.free_port()
        rank = self.by_hand(1, port, "config.DISTRIBUTED.CONNECT_SECONDS=1")
        self.assertEqual(rank.end(), 7, rank.output)
        self.assertIn(f"rank 1 did not reach rank 0 at 127.0.0.1:{port} within 1s", rank.output)

    def test_a_rank_that_does_not_come_is_named(self):
        rank = self.by_hand(0, self.free_port(), "config.DISTRIBUTED.CONNECT_SECONDS=5")
        self.assertEqual(rank.end(), 7, rank.output)
        self.assertRegex(rank.output, r"E .*rank 0 of 2 \(on [^)]*\): waited 5s at .*, rank 1 did not come: see the "
                         "output of rank 1, or raise config.DISTRIBUTED.CONNECT_SECONDS")

    def test_missing_weights_are_said_once(self):
        world = self.world(TWO, "engine_name=knn")
        self.assertEqual(world.end(), 2, world.output)
        self.assertEqual(world.output.count("no trained weights: "), 1, world.output)
        self.assertIn("the first failure: rank 0 ", world.output)

    def test_a_mistake_is_said_once_and_starts_nothing(self):
        world = self.world(TWO, "config.LOSS.name=swav_los", "--restarts=3")
        self.assertEqual(world.end(), 2, world.output)
        self.assertEqual(world.output.count("config.LOSS.name is 'swav_los'"), 1, world.output)
        self.assertNotIn("restart", world.output)
        self.assertFalse((self.folder / "run").exists())

    def test_flags_that_cannot_be_are_refused(self):
        for arguments, part in ((("--launch=mpi:2",), "expected local:N"),
                                (("--restarts=1",), "--launch=local:1"),
                                (("--restarts=x",), "--restarts is 'x', expected an integer"),
                                ((TWO, "config.DISTRIBUTED.NUM_NODES=2"), "--launch=local:2 asks for 1"),
                                (("config.DISTRIBUTED.NUM_NODES=2",), "config.DISTRIBUTED.RUN_ID (not set) is \"auto\"")):
            self.assert_refused(self.tiny(*arguments), 2, part)
        contradiction = self.by_hand(0, 29500, TWO)
        self.assertEqual(contradiction.end(), 2, contradiction.output)
        self.assertIn("leave out one of the two", contradiction.output)


if __name__ == "__main__":
    unittest.main(verbosity=2)
