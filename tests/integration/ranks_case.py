# SPDX-License-Identifier: Apache-2.0
"""Worlds of several ranks, as whole processes that are watched through their output and their place in /proc."""
import os
import pathlib
import select
import signal
import socket
import subprocess

from tests.integration.run_case import BINARY, RunCase, environment, held_at

SECONDS = 120  # a process that takes longer than this hangs
HELD_BEFORE_THEY_MEET = held_at("; ranks meet at ")  # rank 0, without which the others wait
ONE_CORE = ("taskset", "--cpu-list", str(min(os.sched_getaffinity(0))))


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def has_variable(pid, text):
    return text.encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")


class World:
    """One command that starts ranks, or one rank that the test starts. Its lines are kept as they are read."""

    def __init__(self, folder, arguments, variables=(), command=(BINARY,)):
        self.lines = []
        self.process = subprocess.Popen([*command, *arguments], cwd=folder, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, env={**environment(), **dict(variables)})

    @property
    def output(self):
        return "".join(self.lines)

    def wait_for(self, text):
        """True once a line holds it; False when the output has ended without one."""
        for line in self.process.stdout:
            self.lines.append(line)
            if text in line:
                return True
        return False

    def rank(self, number):
        """The process of a rank that the command has started."""
        for child in children(self.process.pid):
            if has_variable(child, f"RANK={number}"):
                return child
        raise AssertionError(f"no rank {number}:\n{self.output}")

    def go_on(self):
        """Ends the wait of a rank 0 that is held_at some text."""
        os.kill(self.rank(0), signal.SIGCONT)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def end(self):
        """The exit code, as a shell shows it."""
        self.wait_for("\0")
        code = self.process.wait(timeout=SECONDS)
        return code if code >= 0 else 128 - code


class RanksCase(RunCase):

    def world(self, *arguments, config="swav_tiny", run="run", variables=(), folder=".", command=(BINARY,)):
        """folder: the working directory, below the test's; what another host has where a path is relative."""
        (self.folder / folder).mkdir(exist_ok=True)
        world = World(self.folder / folder, [f"--config=test/{config}", f"config.CHECKPOINT.DIR={run}", "engine_name=train",
                                    *arguments], variables, command)
        self.addCleanup(world.close)
        return world

    def finished(self, *arguments, **options):
        world = self.world(*arguments, **options)
        self.assertEqual(world.end(), 0, world.output)
        return world

    def stopped_at(self, step, *arguments, **options):
        """A world whose command is told to stop at the progress line of `step`, and that has saved."""
        when = f"step {step}/"
        world = self.world(*arguments, variables=held_at(when, until=signal.SIGTERM), **options)
        self.assertTrue(world.wait_for(when), world.output)
        world.process.send_signal(signal.SIGTERM)
        self.assertEqual(world.end(), 75, world.output)
        return world

    def said_once(self, outputs):
        """What one rank says for all of its host: the others print nothing."""
        said = [output for output in outputs if " E " in output]
        self.assertEqual(len(said), 1, outputs)
        return said[0]

    def files(self, run="run"):
        return {str(path.relative_to(self.folder / run)) for path in (self.folder / run).rglob("*") if path.is_file()}

    def read(self, name, run="run"):
        return (self.folder / run / name).read_text()

    def wait_for_checkpoint(self, world, run="run"):
        """Until the first has its name, which it is given while later steps are taken."""
        while not (self.folder / run / "checkpoints/LATEST").exists():
            self.assertTrue(world.wait_for("| step "), world.output)

    def weights(self, step, run="run"):
        return (self.folder / run / f"checkpoints/step_{step}/model.safetensors").read_bytes()

    def free_port(self):
        """A port that is given to no other process until the test ends: it is bound, but nobody listens there."""
        bound = bound_socket()
        self.addCleanup(bound.close)
        return bound.getsockname()[1]

    def assert_gone(self, pid_file):
        """Waits for the end of a process that is nobody's child here."""
        self.assertTrue(select.select([pid_file], [], [], SECONDS)[0], "a rank has outlived its launcher")
        os.close(pid_file)


def rank_variables(rank, size, port):
    return {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def bound_socket():
    """A TCP socket of a port that nobody serves."""
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", 0))
    return bound
