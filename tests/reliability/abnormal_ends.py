# SPDX-License-Identifier: Apache-2.0
"""Causes every abnormal end that a process can be made to have, and compares exit code and failure.json with
docs/exit_codes.md. Prints one line for each end.

  bazel run //tests/reliability:abnormal_ends                         with those that need root
"""
import gzip
import os
import resource
import signal
import socket
import struct
import subprocess

from tests.reliability import harness

TRAIN = ["--config=test/swav_tiny", "engine_name=train"]
ENDLESS = [*TRAIN, "config.OPTIMIZER.num_epochs=100000", "config.CHECKPOINT.CHECKPOINT_FREQUENCY=1000000"]
# Steps of a run whose eighth progress line was seen: the line comes before the end of its step. The checkpoint of step 3 is
# complete by then, because the save of step 6 waits for it.
MIDDLE = range(7, 10000)
# What failure.json always says.
FIELDS = ("code", "message", "exit_code", "unix_time", "engine", "phase", "step", "epoch", "rank", "world_size", "pid", "host")


class End:
    """One end: what the process did."""

    def __init__(self, run, life):
        self.run, self.life = run, life
        self.code = life.wait()
        self.failure = run.failure()

    def check(self, code, *parts, step, saved=False, **fields):
        """The exit code, failure.json with every field, and `parts` in its message. saved: it names a checkpoint."""
        assert self.code == code, f"{harness.signal_name(self.code)}, expected {harness.signal_name(code)}:\n{self.life.output}"
        assert self.failure is not None, f"no failure.json:\n{self.life.output}"
        missing = [name for name in FIELDS if name not in self.failure]
        assert not missing, f"failure.json lacks {missing}: {self.failure}"
        shown = code if code >= 0 else 128 - code  # as a shell shows it
        expected = {"pid": self.life.pid, "host": socket.gethostname(), "rank": 0, "exit_code": shown, **fields}
        found = {name: self.failure.get(name) for name in expected}
        assert found == expected, f"failure.json says {found}, expected {expected}"
        for part in parts:
            assert part in self.failure["message"], f"{part!r} is not in: {self.failure['message']}"
        assert self.failure["step"] in step, f"step {self.failure['step']}, expected one of {step}"
        if saved:
            checkpoint = self.failure.get("last_checkpoint", {})
            assert checkpoint.get("step") in self.run.steps(), f"{self.failure}: checkpoints are {self.run.steps()}"


def needs_root(method):
    method.needs_root = True
    return method


def needs_memory_limits(method):
    """AddressSanitizer maps terabytes of addresses, which no limit of memory allows."""
    method.needs_memory_limits = True
    return method


class Ends:
    """Each public method causes the end that it is named after, and checks it."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder

    def _run(self, *arguments):
        return harness.Run(self.binary, self.folder / "run", arguments)

    def _end(self, *arguments, **popen):
        run = self._run(*arguments)
        return End(run, run.start(**popen))

    def _trained(self):
        """A finished run, whose checkpoints a test damages."""
        run = self._run(*TRAIN)
        run.finish()
        return run

    def _begun(self):
        """A run in the middle of training, with a checkpoint."""
        run = self._run(*ENDLESS)
        life = run.start()
        assert life.wait_for("step 8/"), life.output
        return run, life

    # Numbers and data.

    def loss_is_not_a_number(self):
        self._end(*TRAIN, "config.OPTIMIZER.param_schedulers.lr.start_value=1e30").check(1, "loss", step=range(3))

    def folder_is_missing(self):
        self._end(*TRAIN, "config.DATA.TRAIN.DATA_SOURCES=[disk_folder]",
                 "config.DATA.TRAIN.DATA_PATHS=[/nonexistent]").check(2, "/nonexistent", step=[0])

    def data_file_is_cut(self):
        for name, count in (("train", 16), ("t10k", 8)):
            images = struct.pack(">IIII", 0x803, count, 28, 28) + bytes(count * 784 - 5)
            labels = struct.pack(">II", 0x801, count) + bytes(count)
            (self.folder / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
            (self.folder / f"{name}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
        self._end(*TRAIN, "config.DATA.TRAIN.DATA_SOURCES=[torchvision_dataset]",
                 "config.DATA.TRAIN.DATASET_NAMES=[fashion_mnist]",
                 f"config.DATA.TRAIN.DATA_PATHS=[{self.folder}]").check(4, "train-images", step=[0])

    def too_many_images_are_broken(self):
        for name in ("cat", "dog"):
            (self.folder / f"images/{name}").mkdir(parents=True)
            for number in range(20):
                (self.folder / f"images/{name}/{number}.png").write_bytes(b"no image")
        self._end(*TRAIN, "config.DATA.TRAIN.DATA_SOURCES=[disk_folder]", "config.DATA.TRAIN.DATA_LIMIT=-1",
                 f"config.DATA.TRAIN.DATA_PATHS=[{self.folder}/images]").check(4, "images/", step=[0])

    # Storage.

    def no_checkpoint_is_intact(self):
        run = self._trained()
        for path in run.checkpoints.glob("step_*/model.safetensors"):
            path.write_bytes(path.read_bytes()[:-1])
        End(run, run.start()).check(4, "no checkpoint is intact", step=[0])

    def file_is_too_large(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

        self._end(*TRAIN, preexec_fn=limit).check(5, "not saved", "File too large", step=range(3, 7), errno=27)

    @needs_root
    def disk_is_full(self):
        run = self._run(*TRAIN)
        run.directory.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "full", run.directory], check=True)
        try:
            End(run, run.start()).check(5, "not saved", "No space left on device", step=range(3, 20), saved=True, errno=28)
            intact = run.steps()
            assert intact and not run.unfinished_save(), f"{intact} of a full disk"
            harness.state_hash(run.step_directory(intact[-1]))
        finally:
            subprocess.run(["umount", run.directory], check=True)

    def checkpoints_is_a_file(self):
        run = self._run(*TRAIN)
        run.directory.mkdir()
        run.checkpoints.write_text("not a directory")
        End(run, run.start()).check(5, str(run.checkpoints), step=[0])

    # Memory.

    @needs_memory_limits
    def large_allocation_fails(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))

        self._end(*TRAIN, "config.MODEL.HEAD.PARAMS=[[swav_head, {dims: [32, 32, 16], num_clusters: [300000000]}]]",
                  preexec_fn=limit).check(6, step=[0])

    @needs_memory_limits
    def too_few_addresses(self):
        """Of a process that may have little memory, from the least with which the system loads its libraries."""
        def lived(mebibytes, *arguments):
            limit = (mebibytes << 20, mebibytes << 20)
            life = harness.Life([self.binary, *arguments], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))
            return life.wait(), life.output

        too_few, enough = 0, 8192
        while enough - too_few > 4:
            middle = (too_few + enough) // 2
            is_loaded = "loading shared libraries" not in lived(middle, "--list=engines")[1]
            too_few, enough = (too_few, middle) if is_loaded else (middle, enough)
        codes = set()
        for more in (0, 8, 16, 24, 32, 40, 48, 64, 80):
            arguments = [*TRAIN, "config.OPTIMIZER.num_epochs=1", f"config.CHECKPOINT.DIR={self.folder}/run{more}"]
            code, output = lived(enough + more, *arguments)
            assert code in (0, 6), f"{enough} + {more} MiB: {harness.signal_name(code)}:\n{output}"
            assert code == 0 or any(text in output for text in ("not enough memory", "out of memory", "no thread")), output
            codes.add(code)
        assert 6 in codes, "each of these limits was enough"

    @needs_memory_limits
    def every_allocation_fails(self):
        """From one moment on; a library may end the process then, but the report is there."""
        run, life = self._begun()
        resource.prlimit(life.pid, resource.RLIMIT_AS, (1 << 20, 1 << 20))
        end = End(run, life)
        assert end.code in (6, -signal.SIGABRT), f"{harness.signal_name(end.code)}:\n{life.output}"
        end.check(end.code, step=MIDDLE, saved=True)

    # Signals.

    def segmentation_fault(self):
        self._dies_of(signal.SIGSEGV)

    def abort(self):
        self._dies_of(signal.SIGABRT)

    def bus_error(self):
        self._dies_of(signal.SIGBUS)

    def floating_point_exception(self):
        self._dies_of(signal.SIGFPE)

    def illegal_instruction(self):
        self._dies_of(signal.SIGILL)

    def _dies_of(self, number):
        run, life = self._begun()
        life.signal(number)
        End(run, life).check(-number, "fatal signal", step=MIDDLE, saved=True, signal=number)

    def second_signal(self):
        run, life = self._begun()
        life.signal(signal.SIGSTOP)  # both are there when it goes on
        life.signal(signal.SIGTERM)
        life.signal(signal.SIGINT)
        life.signal(signal.SIGCONT)
        end = End(run, life)
        assert end.code in (-signal.SIGTERM, -signal.SIGINT), f"{harness.signal_name(end.code)}:\n{life.output}"
        end.check(end.code, "second signal", step=MIDDLE, saved=True, signal=-end.code)


def public_methods(as_root):
    limits_memory = "ASAN_OPTIONS" not in os.environ
    return [name for name, method in vars(Ends).items()
            if not name.startswith("_") and (as_root or not hasattr(method, "needs_root"))
            and (limits_memory or not hasattr(method, "needs_memory_limits"))]


def problem_of(name, arguments):
    """Causes one end; what is wrong with it, or None."""
    try:
        with harness.Scratch() as folder:
            getattr(Ends(arguments.binary, folder), name)()
    except AssertionError as error:
        return str(error)
    return None


def main():
    arguments = harness.parse_arguments(__doc__, as_root=0)
    names = public_methods(arguments.as_root)
    problems = {}
    for name in names:
        problem = problem_of(name, arguments)
        print(f"{name}: {problem or 'as documented'}", flush=True)
        if problem:
            problems[name] = problem
    print(f"F31: {len(names) - len(problems)} of {len(names)} abnormal ends have the documented exit code and a complete "
          f"failure.json")
    assert not problems, sorted(problems)


if __name__ == "__main__":
    main()
