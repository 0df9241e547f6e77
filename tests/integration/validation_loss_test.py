# SPDX-License-Identifier: Apache-2.0
"""The loss on held-out images (HOOKS.EVAL.LOSS) beside the training of each method, as whole processes: the methods keep
queues, momentum encoders and counters, and none of them may notice."""
import json
import unittest

from tests.integration.run_case import RunCase

LOSS = ("config.HOOKS.EVAL.ONLINE_EVALUATION=True", "config.HOOKS.EVAL.KNN=False", "config.HOOKS.EVAL.LINEAR=False",
        "config.HOOKS.EVAL.LOSS=True", "config.HOOKS.EVAL.ITER_FREQUENCY=3")
FILES = ("model.safetensors", "optimizer.safetensors", "state_rank0.safetensors")


def tensors_of_the_run(safetensors):
    """Type, shape and bytes of each tensor by name, but those that the evaluation notes of itself."""
    size = int.from_bytes(safetensors[:8], "little")
    data = safetensors[8 + size:]
    header = json.loads(safetensors[8:8 + size])
    return {name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
            for name, entry in header.items() if name != "__metadata__" and not name.startswith("hooks/eval/")}


class ValidationLossTest(RunCase):

    def train(self, method, run, *arguments):
        result = self.call(f"--config=test/{method}_tiny", "engine_name=train", f"config.CHECKPOINT.DIR={run}",
                           *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        step = self.folder / run / "checkpoints" / (self.folder / run / "checkpoints/LATEST").read_text().strip()
        return {name: (step / name).read_bytes() for name in FILES}

    def losses(self, run):
        lines = [json.loads(line) for line in (self.folder / run / "metrics.jsonl").read_text().splitlines()]
        return [line["Evaluation/loss_mean"] for line in lines if "Evaluation/loss_mean" in line]

    def check(self, method, *arguments):
        plain = self.train(method, "plain", *arguments)
        measured = self.train(method, "measured", *arguments, *LOSS)
        for name in FILES:
            self.assertEqual(tensors_of_the_run(plain[name]) == tensors_of_the_run(measured[name]), True, name)
        losses = self.losses("measured")
        self.assertGreater(len(losses), 3)
        self.assertEqual(len(set(losses)), len(losses), losses)

    def test_swav_with_a_queue(self):
        self.check("swav", "config.LOSS.swav_loss.queue.queue_length=16", "config.LOSS.swav_loss.queue.start_iter=2")

    def test_moco(self):
        self.check("moco")

    def test_simclr(self):
        self.check("simclr")

    def test_barlow_twins(self):
        self.check("barlow_twins")

    def test_supervised(self):
        self.check("supervised", "config.HOOKS.EVAL.LOSS_TRANSFORMS=test")


if __name__ == "__main__":
    unittest.main()
