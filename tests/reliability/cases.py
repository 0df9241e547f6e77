# SPDX-License-Identifier: Apache-2.0
"""The tiny runs that the harnesses interrupt: every method, with the settings whose state a resume may lose."""
import itertools
from typing import NamedTuple

STEPS = 40  # updates of a run, whatever its accumulation


class Case(NamedTuple):
    method: str
    precision: str
    queue: bool
    loader_threads: int
    accumulation: int
    background: bool = True  # checkpoints are written beside training

    def __str__(self):
        return (f"{self.method} {self.precision} queue={'on' if self.queue else 'off'} threads={self.loader_threads} "
                f"accumulation={self.accumulation} saves={'beside' if self.background else 'between'} steps")

    def arguments(self):
        return [f"--config=test/{self.method}_tiny", "engine_name=train", "config.LOG_FREQUENCY=1",
                "config.HOOKS.TENSORBOARD_SETUP.USE_TENSORBOARD=True",
                "config.CHECKPOINT.CHECKPOINT_ITER_FREQUENCY=2",
                f"config.DATA.NUM_DATALOADER_WORKERS={self.loader_threads}",
                f"config.OPTIMIZER.grad_acc_steps={self.accumulation}",
                f"config.CHECKPOINT.SAVE_IN_BACKGROUND={self.background}",
                f"config.OPTIMIZER.num_epochs={STEPS * self.accumulation // 10}",
                *_PRECISIONS[self.precision], *_QUEUES.get(self.method, {}).get(self.queue, [])]

    def hidden_steps(self):
        """Steps whose values TensorBoard may hide after a resume. Between the reports of an epoch's last step and of the test
        phase lies a checkpoint; a resume from it reports the same step again, and the mark of its start, which knows
        steps only, hides the earlier report."""
        return range(10 // self.accumulation, STEPS + 1, 10 // self.accumulation) if self.method == "supervised" else ()


_PRECISIONS = {
    "float32": [],
    "bfloat16": ["config.MODEL.AMP_PARAMS.USE_AMP=True", "config.MODEL.AMP_PARAMS.AMP_DTYPE=bfloat16"],
    # With the dynamic loss scale, whose first value overflows: skipped updates are part of the run.
    "float16": ["config.MODEL.AMP_PARAMS.USE_AMP=True", "config.MODEL.AMP_PARAMS.AMP_DTYPE=float16"],
}

# MoCo always has a queue: `off` is the smallest one, a single batch.
_QUEUES = {
    "swav": {True: ["config.LOSS.swav_loss.queue.queue_length=16", "config.LOSS.swav_loss.queue.start_iter=9"]},
    "moco": {False: ["config.LOSS.moco_loss.queue_size=8"], True: ["config.LOSS.moco_loss.queue_size=32"]},
}
METHODS = ("swav", "moco", "simclr", "barlow_twins", "supervised")


def all_cases():
    return [Case(*values) for values in itertools.product(METHODS, _PRECISIONS, (True, False), (0, 2), (1, 2),
                                                         (True, False))
            if values[2] or values[0] in _QUEUES]


def shuffled_cases(random):
    """Endless: the methods take turns, each through all its settings in a random order."""
    queues = {}
    for method in METHODS:
        queues[method] = [case for case in all_cases() if case.method == method]
        random.shuffle(queues[method])
    for turn in itertools.count():
        for method in METHODS:
            cases = queues[method]
            yield cases[turn % len(cases)]
