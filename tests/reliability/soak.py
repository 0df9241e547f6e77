# SPDX-License-Identifier: Apache-2.0
"""Trains for a long time with saves, stops and resumes, and watches what the process holds: resident memory, open
descriptors and threads, from /proc. Prints the slope of the memory in percent an hour after each life's warm-up.

  bazel run //tests/reliability:soak                                  30 minutes in 4 lives
  bazel run //tests/reliability:soak -- --minutes=120 --lives=10
"""
import pathlib
import re
import signal

from tests.reliability import harness

SAMPLE_SECONDS = 1.0
WARM_UP_SHARE = 0.2  # of each life
ENDLESS = ["--config=test/swav_tiny", "engine_name=train", "config.OPTIMIZER.num_epochs=100000",
           "config.LOG_FREQUENCY=100", "config.CHECKPOINT.CHECKPOINT_ITER_FREQUENCY=200",
           "config.CHECKPOINT.CHECKPOINT_FREQUENCY=1000000",
           "config.HOOKS.TENSORBOARD_SETUP.USE_TENSORBOARD=True", "config.DATA.NUM_DATALOADER_WORKERS=2",
           "config.LOSS.swav_loss.queue.queue_length=16"]


def resident_kib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1))


def count(pid, kind):
    return sum(1 for _ in pathlib.Path(f"/proc/{pid}/{kind}").iterdir())


def common_slope(lives):
    """Least squares over several lives of (time, value), each with a level of its own: change of value per time."""
    covariance = variance = 0.0
    for samples in lives:
        mean_time = sum(time for time, _ in samples) / len(samples)
        mean_value = sum(value for _, value in samples) / len(samples)
        covariance += sum((time - mean_time) * (value - mean_value) for time, value in samples)
        variance += sum((time - mean_time) ** 2 for time, _ in samples)
    return covariance / variance


class Sampled:
    """What a life held after its warm-up."""

    def __init__(self):
        self.resident = []  # (hours, KiB)
        self.descriptors = []
        self.threads = []

    def sample(self, life, seconds):
        self.resident.append((seconds / 3600, resident_kib(life.pid)))
        self.descriptors.append(count(life.pid, "fd"))
        self.threads.append(count(life.pid, "task"))


def sample_life(run, seconds):
    """One life of so many seconds, then a stop."""
    sampled, elapsed = Sampled(), 0.0
    life = run.start()
    assert life.wait_for("hooks:"), life.output
    while elapsed < seconds:
        assert not life.ends_within(SAMPLE_SECONDS), f"ended by itself:\n{life.output}"
        elapsed += SAMPLE_SECONDS
        if elapsed > seconds * WARM_UP_SHARE:
            sampled.sample(life, elapsed)
    life.signal(signal.SIGTERM)
    code = life.wait()
    assert code == harness.STOPPED, f"{harness.signal_name(code)} after SIGTERM:\n{life.output}"
    return sampled


def check_constant(name, lives, counts):
    """The fewest at a time are equal in both halves of every life: a save may hold one more for a moment."""
    fewest = set()
    for sampled in lives:
        values = counts(sampled)
        fewest |= {min(values[:len(values) // 2]), min(values[len(values) // 2:])}
    assert len(fewest) == 1, f"number of {name} is not constant: {sorted(fewest)}"
    return fewest.pop()


def describe(number, sampled):
    first, last = sampled.resident[0][1], sampled.resident[-1][1]
    print(f"life {number}: {first / 1024:.1f} -> {last / 1024:.1f} MiB, descriptors {sorted(set(sampled.descriptors))}, "
          f"threads {sorted(set(sampled.threads))}", flush=True)


def main():
    arguments = harness.parse_arguments(__doc__, minutes=30, lives=4)
    with harness.Scratch() as folder:
        run = harness.Run(arguments.binary, folder / "run", ENDLESS)
        lives = []
        for number in range(1, arguments.lives + 1):
            lives.append(sample_life(run, arguments.minutes * 60 / arguments.lives))
            describe(number, lives[-1])
        steps = run.steps()[-1]
    resident = [sampled.resident for sampled in lives]
    level = sum(value for samples in resident for _, value in samples) / sum(map(len, resident))
    percent = 100 * common_slope(resident) / level
    threads = check_constant("threads", lives, lambda sampled: sampled.threads)
    descriptors = check_constant("descriptors", lives, lambda sampled: sampled.descriptors)
    print(f"F28: {arguments.minutes} minutes, {steps} steps, {steps // 200} saves, {arguments.lives - 1} resumes: resident memory "
          f"{level / 1024:.0f} MiB, slope {percent:+.2f} %/h; {descriptors} descriptors, {threads} threads")
    assert percent < 1.0, f"memory grows by {percent:.2f} %/h, allowed is 1"


if __name__ == "__main__":
    main()
