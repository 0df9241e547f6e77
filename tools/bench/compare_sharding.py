# SPDX-License-Identifier: Apache-2.0
"""What ranks save, and pay, when they share out the optimizer's state (ZeRO-1) or all parameters (ZeRO-3, FSDP).

  ./bazelw build //ssl/tools:ssl_main //ssl/optim:bench_sharded_update
  python3 tools/bench/compare_sharding.py

Two tables, each of programs that run in turn, `--runs` times, of which medians are printed: updates of ResNet-50's
parameters alone, by bench_sharded_update; and training steps of a ResNet-50 on small images, by ssl_main with whole
state, `use_zero` and `self_supervision_fsdp_task`, with the memory of rank 0 after its first step. One thread a rank.
Standard library only.
"""
import argparse
import os
import re
import statistics
import tempfile

from compare_swav import machine, measure, measure_by_clock, median, step_moments

UPDATES = "bazel-bin/ssl/optim/bench_sharded_update"
UPDATE_LINE = re.compile(r"rank 0 of \d+: state +([\d.]+) MiB, resident +([\d.]+) MiB, update +([\d.]+) ms")
VARIANTS = [(optimizer, state) for optimizer in ("sgd", "adamw") for state in ("whole", "shared")]

TRAINING = ["bazel-bin/ssl/tools/ssl_main", "--config=test/supervised_tiny", "engine_name=train", "config.TEST_MODEL=False",
            "config.MODEL.TRUNK.RESNETS={DEPTH: 50, WIDTH_MULTIPLIER: 1.0, STEM: small}",
            "config.MODEL.HEAD.PARAMS=[[mlp, {dims: [2048, 4]}]]",
            "config.HOOKS.MEMORY_SUMMARY.PRINT_MEMORY_SUMMARY=True"]
TASKS = {"whole": ["config.TRAINER.TASK_NAME=self_supervision_task"],
         "use_zero": ["config.OPTIMIZER.use_zero=True"],
         "shared out": ["config.TRAINER.TASK_NAME=self_supervision_fsdp_task"]}
MEMORY_LINE = re.compile(r"([\d.]+) MiB at its peak; model ([\d.]+) MiB, gradients ([\d.]+) MiB, optimizer ([\d.]+) MiB")
WARM_UP_STEPS = 2


def read_update(output):
    """Rank 0's line of bench_sharded_update, or nothing."""
    found = UPDATE_LINE.search(output)
    return dict(zip(("state", "resident", "update"), map(float, found.groups()))) if found else {}


def read_training(lines):
    """Median step time after the warm-up, by the times at which progress lines came, and rank 0's memory, of what a run
    says, [(seconds, line)]; nothing when either lacks."""
    moments = step_moments(lines)
    times = [1e3 * (after - before) / (last - first)
             for (first, before), (last, after) in zip(moments, moments[1:]) if first >= WARM_UP_STEPS]
    memory = MEMORY_LINE.search("".join(line for _, line in lines))
    if not times or not memory:
        return {}
    return {"ms": statistics.median(times), **dict(zip(("peak", "model", "gradients", "optimizer"), map(float, memory.groups())))}


def run_update(variant, ranks):
    return measure([UPDATES, *variant, str(ranks)], read_update)


def run_training(task, ranks, batch, more):
    with tempfile.TemporaryDirectory() as run:
        # 20 steps; reports of every step.
        command = TRAINING + TASKS[task] + [
            f"--launch=local:{ranks}", f"config.CHECKPOINT.DIR={run}", f"config.DATA.TRAIN.BATCHSIZE_PER_REPLICA={batch}",
            f"config.DATA.TRAIN.DATA_LIMIT={20 * batch * ranks}", "config.OPTIMIZER.num_epochs=1"] + more
        return measure_by_clock(command, read_training)


def table(columns, results):
    """columns: (key, title); results: {name: list of results}."""
    lines = [f"{'median':16}" + "".join(f"{title:>16}" for _, title in columns)]
    for name, runs in results.items():
        lines.append(f"{name:16}" + "".join(f"{median(runs, key):16.1f}" for key, _ in columns))
    return "\n".join(lines)


def in_turn(names, run, runs):
    results = {name: [] for name in names}
    for _ in range(runs):
        for name in names:
            results[name].append(run(name))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=4, help="images of a rank in a step")
    parser.add_argument("training", nargs="*", help="more arguments for ssl_main")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    print(machine(), flush=True)
    updates = in_turn([" ".join(variant) for variant in VARIANTS], lambda name: run_update(name.split(), args.ranks), args.runs)
    print(table((("state", "state MiB"), ("resident", "resident MiB"), ("update", "ms/update")), updates), flush=True)
    training = in_turn(TASKS, lambda task: run_training(task, args.ranks, args.batch, args.training), args.runs)
    print(table((("model", "model MiB"), ("gradients", "gradients MiB"), ("optimizer", "optimizer MiB"),
                 ("peak", "peak MiB"), ("pss", "peak PSS MB"), ("ms", "ms/step")), training))


if __name__ == "__main__":
    main()
