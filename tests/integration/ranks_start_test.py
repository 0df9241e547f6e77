# SPDX-License-Identifier: Apache-2.0
"""What is said of ranks before they train: by --check_config, without any, and by one that waits for others."""
import re
import unittest

from tests.integration.ranks_case import ONE_CORE, RanksCase, bound_socket, rank_variables
from tests.integration.run_case import without_privileges

TWO = "--launch=local:2"


class RanksStartTest(RanksCase):

    def test_a_rank_that_waits_says_for_whom(self):
        with bound_socket() as free:
            port = free.getsockname()[1]
        first = self.world("config.OPTIMIZER.num_epochs=1", variables=rank_variables(0, 2, port))
        waits = f"rank 0 of 2 waits at 127.0.0.1:{port} for rank 1 (gives up after 5m)"
        self.assertTrue(first.wait_for(waits), first.output)
        second = self.world("config.OPTIMIZER.num_epochs=1", variables=rank_variables(1, 2, port))
        self.assertEqual((first.end(), second.end()), (0, 0), first.output + second.output)

    def test_rank_zero_is_where_the_others_are_told(self):
        variables = {**rank_variables(0, 2, 29500), "MASTER_ADDR": "no-such-host.invalid"}
        rank = self.world("config.DISTRIBUTED.CONNECT_SECONDS=1", variables=variables)
        self.assertEqual(rank.end(), 2, rank.output)
        self.assertIn('"no-such-host.invalid" has no address', rank.output)
        self.assertIn("MASTER_ADDR", rank.output)

    def check(self, *arguments, variables=(), **options):
        """--check_config: exit code and report."""
        world = self.world(*arguments, "--check_config", variables=variables, **options)
        return world.end(), world.output

    def test_check_config_says_what_a_start_of_ranks_would_be_refused_for(self):
        host_by_host = ("config.DISTRIBUTED.NUM_NODES=2", "config.DISTRIBUTED.NUM_PROC_PER_NODE=2")
        for arguments, part in ((("--launch=local:100",), "config.DATA.TRAIN.BATCHSIZE_PER_REPLICA is 8"),
                                ((TWO, "config.DISTRIBUTED.VIRTUAL_RANKS=3"), "VIRTUAL_RANKS is 3, which 2 processes"),
                                (("--node_id=1",), "--node_id is 1"),
                                (("--launch=mpi:2",), "expected local:N"),
                                ((TWO, "config.DISTRIBUTED.NUM_PROC_PER_NODE=4"), "NUM_PROC_PER_NODE is '4'")):
            code, report = self.check(*arguments)
            self.assertEqual(code, 2, report)
            self.assertIn(part, report)
        code, report = self.check(*host_by_host)
        self.assertEqual(code, 3, report)  # right where the first node is named
        self.assertIn("config.DISTRIBUTED.RUN_ID (not set) is \"auto\"", report)
        code, report = self.check("config.SEED_VALUE=1,2", variables=rank_variables(1, 2, 29500))
        self.assertEqual(code, 2, report)
        self.assertIn("it is rank 1 of 2: start each of its runs by itself", report)
        code, report = self.check(variables=rank_variables(3, 2, 29500))
        self.assertEqual(code, 2, report)
        self.assertIn("environment: RANK is \"3\", expected an integer from 0 to 1", report)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_mistake_in_the_group_of_batch_norm_has_its_place(self):
        keys = ("CONVERT_BN_TO_SYNC_BN: True", "SYNC_BN_TYPE: apex", "GROUP_SIZE: 2")
        section = "config.MODEL.SYNC_BN_CONFIG."
        says = f"{section}GROUP_SIZE is 2, which does not divide 3 ranks"
        tokens = [section + key.replace(": ", "=") for key in keys]
        code, report = self.check("--launch=local:3", *tokens)
        self.assertEqual(code, 2, report)
        self.assertRegex(report, rf"(?m)^  command line:\d+: {re.escape(says)}")
        lines = ["# @package _global_", "config:", "  MODEL:", "    SYNC_BN_CONFIG:", *(f"      {key}" for key in keys)]
        (self.folder / "groups.yaml").write_text("\n".join(lines) + "\n")
        code, report = self.check("--launch=local:3", "+config=groups.yaml")
        self.assertEqual(code, 2, report)
        self.assertIn(f"groups.yaml:7: {says}", report)

    def test_what_this_host_has_no_room_for_is_said_without_a_start(self):
        with bound_socket() as other:
            other.listen()
            port = other.getsockname()[1]
            for question in ("--check_config", "--dry_run"):
                world = self.world(TWO, question, f"config.DISTRIBUTED.RUN_ID=127.0.0.1:{port}")
                self.assertEqual(world.end(), 2, world.output)
                self.assertIn(f"port {port}, at which rank 0 is to listen, cannot be had", world.output)
        small = ("config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=2", "config.DATA.TRAIN.DATA_LIMIT=200")
        mistaken = ("--check_config", "config.SEED_VALUE=x")
        for question in (("--check_config",), ("--dry_run",), mistaken):
            limited = self.tiny("engine_name=train", "--launch=local:25", *question, *small,
                                prefix=["sh", "-c", 'ulimit -n 64; exec "$@"', "-"])
            self.assertEqual(limited.returncode, 2, limited.stdout + limited.stderr)
            self.assertIn("25 ranks on this host", limited.stdout + limited.stderr)
            if question == mistaken:
                self.assertIn("config.SEED_VALUE is 'x'", limited.stdout)
        crowded = self.tiny("engine_name=train", "--launch=local:2", "--check_config", prefix=ONE_CORE)
        self.assertEqual(crowded.returncode, 0, crowded.stderr)
        self.assertIn("2 ranks on the 1 cores", crowded.stdout)

    def test_restarts_that_would_begin_anew_are_refused(self):
        anew = "config.CHECKPOINT.AUTO_RESUME=False"
        for question in ((), ("--check_config",), ("--dry_run",), ("engine_name=full_tune",)):
            refused = self.tiny("engine_name=train", TWO, "--restarts=3", anew, *question)
            self.assertEqual(refused.returncode, 2, refused.stdout + refused.stderr)
            self.assertIn("AUTO_RESUME is 'False', expected True with --restarts=3", refused.stdout + refused.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])
        anew = (anew, "config.CHECKPOINT.OVERWRITE_EXISTING=True")
        again = {**rank_variables(0, 2, 29500), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0",
                 "TORCHELASTIC_RESTART_COUNT": "1"}
        self.assertEqual(self.check(*anew, variables=again)[0], 0, "nothing was saved before")
        self.finished("config.OPTIMIZER.num_epochs=1")
        code, report = self.check(*anew, variables=again)
        self.assertEqual(code, 2, report)
        self.assertIn("AUTO_RESUME is 'False', expected True with restart 1 by torchrun", report)
        code, report = self.check(*anew, variables={**again, "TORCHELASTIC_RESTART_COUNT": "0",
                                                    "TORCHELASTIC_MAX_RESTARTS": "2"}, run="new")
        self.assertEqual(code, 2, report)
        self.assertIn("AUTO_RESUME is 'False', expected True with up to 2 restarts by torchrun", report)
        evaluated = self.tiny("engine_name=knn", TWO, "--restarts=3", *anew, "--check_config")
        self.assertEqual(evaluated.returncode, 0, evaluated.stdout)
        self.assertEqual(self.check(*anew, variables=rank_variables(0, 2, 29500))[0], 0)

    def test_a_directory_that_cannot_be_written_is_told_before_a_start(self):
        (self.folder / "file").write_text("")
        locked = self.folder / "locked"
        locked.mkdir()
        locked.chmod(0o555)
        starts = (("--check_config",), ("--dry_run",), (), (TWO, "--check_config"), (TWO, "--restarts=3"))
        sweeps = (("--check_config", "config.SEED_VALUE=1,2"), (TWO, "config.SEED_VALUE=1,2"))
        for run, why in (("locked", "locked"), ("locked/run", "locked"), ("file/run", "file: is in the way")):
            for arguments in (*starts, *sweeps):
                result = self.tiny("engine_name=train", *arguments, run=run, prefix=without_privileges())
                said = result.stdout + result.stderr
                self.assertEqual(result.returncode, 5, f"{run} {arguments}: {said}")
                self.assertIn(f"{run}{'/sweep_0' if arguments in sweeps else ''} cannot be used: file {why}", said)
                self.assertEqual(said.count("config.CHECKPOINT.DIR chooses another"), 1, said)
                self.assertNotIn("this command starts", said)
        self.assertEqual(sorted(path.name for path in self.folder.rglob("*")), ["file", "locked"])

    def test_what_is_in_the_way_of_a_training_is_told_before_a_start(self):
        for name in (".lock", "train_config.yaml"):
            (self.folder / name / name).mkdir(parents=True)
        (self.folder / "logs").mkdir()
        (self.folder / "logs/logs").write_text("")
        (self.folder / "link").symlink_to("nowhere")
        ways = (("link", "is in the way"), (".lock", ".lock is a directory"), ("logs", "logs is a file"),
                ("train_config.yaml", "train_config.yaml is a directory"))
        for run, why in ways:
            for question in (("--check_config",), ("--dry_run",), ()):
                result = self.tiny("engine_name=train", TWO, *question, run=run)
                said = result.stdout + result.stderr
                self.assertEqual(result.returncode, 5, f"{run} {question}: {said}")
                self.assertRegex(said, f"run directory {run} cannot be used: .*{why}.*; config.CHECKPOINT.DIR chooses")
                self.assertNotIn("this command starts", said)

    def test_an_evaluation_may_have_a_directory_that_it_cannot_write(self):
        (self.folder / "file").write_text("")
        locked = self.folder / "locked"
        locked.mkdir()
        locked.chmod(0o555)
        for engine, run, code in (("check_data", "locked", 0), ("check_data", "file/run", 5), ("preview", "locked", 5)):
            result = self.tiny(f"engine_name={engine}", "--check_config", run=run, prefix=without_privileges())
            self.assertEqual(result.returncode, code, result.stdout + result.stderr)

    def test_check_config_says_nothing_beside_its_report(self):
        for arguments in ((TWO,), ("config.SEED_VALUE=1,2",)):
            result = self.tiny("engine_name=train", "--check_config", *arguments)
            self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        narrow = "config.MODEL.HEAD.PARAMS=[[swav_head, {dims: [32, 32, 16], num_clusters: [50]}]]"
        warned = self.tiny("engine_name=train", "--check_config", narrow)
        self.assertEqual((warned.returncode, warned.stderr), (0, ""), warned.stdout)
        self.assertRegex(warned.stdout, r"warnings:\n(  .*\n)*  .*num_prototypes is 50, but only 8 images")

    def test_keys_that_the_environment_overrules_are_named(self):
        keys = ("config.DISTRIBUTED.RUN_ID=otherhost:9999", "config.DISTRIBUTED.NUM_NODES=3")
        says = ("command line:4: config.DISTRIBUTED.RUN_ID, command line:5: config.DISTRIBUTED.NUM_NODES have no effect: "
                "this is rank 0 of 2 (RANK and WORLD_SIZE)")
        code, report = self.check(*keys, variables=rank_variables(0, 2, 29500))
        self.assertEqual(code, 0, report)
        self.assertEqual(report.count(says), 1, report)
        world = self.world(*keys, "--dry_run", variables=rank_variables(0, 2, 29500))
        self.assertEqual(world.end(), 0, world.output)
        self.assertEqual(world.output.count(says), 1, world.output)
        for told in (("config.DISTRIBUTED.NUM_NODES=2", "config.DISTRIBUTED.INIT_METHOD=env"), (TWO,)):
            variables = rank_variables(0, 2, 29500) if TWO not in told else ()
            self.assertNotIn("no effect", self.check(*told, variables=variables)[1])

    def test_ranks_that_contradict_each_other_about_their_host_are_refused(self):
        with bound_socket() as free:
            port = free.getsockname()[1]
        local = [{"LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(rank + 1)} for rank in range(2)]
        ranks = [self.world(variables={**rank_variables(rank, 2, port), **local[rank]}) for rank in range(2)]
        self.assertEqual([rank.end() for rank in ranks], [2, 2])
        self.assertIn("LOCAL_RANK", self.said_once([rank.output for rank in ranks]))
        self.assertFalse((self.folder / "run").exists())

    def test_check_config_says_all_at_once(self):
        code, report = self.check("--launch=local:100", "--node_id=3", "config.OPTIMIZER.num_epochs=x",
                                  "config.LOSS.swav_loss.temperature=-1")
        self.assertEqual(code, 2, report)
        for part in ("number of this node is 3", "config.OPTIMIZER.num_epochs is 'x'", "temperature is '-1'", "3 mistakes"):
            self.assertIn(part, report)
        self.assertEqual(self.check(TWO)[0], 0)
        self.assertEqual(self.check(variables=rank_variables(1, 2, 29500))[0], 0, "connects to nobody")


if __name__ == "__main__":
    unittest.main(verbosity=2)
