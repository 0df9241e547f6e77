# SPDX-License-Identifier: Apache-2.0
"""Counts what the ranks of a run say to the store at which they meet, and the connections that they open.

  ./bazelw build //ssl/tools:ssl_main
  python3 tools/bench/count_store_traffic.py [--ranks 2,4,8,16]

Serves the store of PyTorch's TCPStore protocol itself, as torchrun's agent does (TORCHELASTIC_USE_AGENT_STORE), starts
ssl_main's ranks one world after the other (test/swav_tiny, two updates each), and prints for each world the operations
and bytes of rank 0, of the busiest other rank and of all; a connection that is opened anew counts in `connections`.
Gloo's keys and this program's are told apart by their names. `sockets` is the most that one rank had open. A polynomial
of the law's degree goes through the largest worlds and gives the value for 4,096 ranks; `off` is how far it misses the
other worlds at most, where there are any. Standard library only.
"""
import argparse
import collections
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading

POLL_S = 0.1
MOST_RANKS = 4096
RANK_KEY = re.compile(r"(?:taken|member)/(\d+)$")
OPERATIONS = ("validate", "set", "compare_set", "get", "add", "check", "wait", "get_num_keys", "delete_key", "append",
              "multi_get", "multi_set", "cancel_wait", "ping")


class Closed(Exception):
    pass


class Connection:
    """One client: reads requests, counts them."""

    def __init__(self, client):
        self.client = client
        self.counts = collections.Counter()  # ("gloo" or "own", "operations" or "bytes")
        self.names = collections.Counter()  # of operations
        self.rank = None
        self.bytes = 0  # of the request that is read, and of its answer
        self.keys = []

    def read(self, size):
        data = b""
        while len(data) < size:
            more = self.client.recv(size - len(data))
            if not more:
                raise Closed
            data += more
        self.bytes += size
        return data

    def number(self, layout):
        return struct.unpack(layout, self.read(struct.calcsize(layout)))[0]

    def value(self):
        return self.read(self.number("<Q"))

    def key(self):
        name = self.value().decode()
        found = RANK_KEY.search(name)
        if found and self.rank is None:
            self.rank = int(found.group(1))
        self.keys.append(name)
        return name

    def key_list(self):
        return [self.key() for _ in range(self.number("<Q"))]

    def answer(self, data):
        self.bytes += len(data)
        self.client.sendall(data)

    def count(self, operation):
        family = "gloo" if any("/gloo" in key for key in self.keys) else "own"
        self.counts[family, "operations"] += 1
        self.counts[family, "bytes"] += self.bytes
        self.names[family, operation] += 1
        self.bytes, self.keys = 0, []


class Store:
    """Serves the operations that c10d's client sends. One thread for each connection."""

    def __init__(self):
        self.values = {}
        self.changed = threading.Condition()
        self.connections = []
        self.server = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return  # closed
            connection = Connection(client)
            self.connections.append(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            while True:
                operation = OPERATIONS[connection.number("<B")]
                getattr(self, operation)(connection)
                connection.count(operation)
        except (Closed, OSError):
            connection.client.close()

    def put(self, key, value):
        with self.changed:
            self.values[key] = value
            self.changed.notify_all()

    def validate(self, connection):
        connection.read(4)

    def ping(self, connection):
        connection.answer(connection.read(4))

    def set(self, connection):
        self.put(connection.key(), connection.value())

    def multi_set(self, connection):
        for _ in range(connection.number("<Q")):
            self.put(connection.key(), connection.value())

    def append(self, connection):
        key, value = connection.key(), connection.value()
        self.put(key, self.values.get(key, b"") + value)

    def compare_set(self, connection):
        key, expected, desired = connection.key(), connection.value(), connection.value()
        with self.changed:
            if self.values.get(key, b"") == expected:
                self.values[key] = desired
                self.changed.notify_all()
            value = self.values.get(key, expected)
        connection.answer(struct.pack("<Q", len(value)) + value)

    def get(self, connection):
        value = self.values[connection.key()]
        connection.answer(struct.pack("<Q", len(value)) + value)

    def multi_get(self, connection):
        for key in connection.key_list():
            connection.answer(struct.pack("<Q", len(self.values[key])) + self.values[key])

    def add(self, connection):
        key, more = connection.key(), connection.number("<q")
        with self.changed:
            total = int(self.values.get(key, b"0")) + more
            self.values[key] = str(total).encode()
            self.changed.notify_all()
        connection.answer(struct.pack("<q", total))

    def check(self, connection):
        keys = connection.key_list()
        connection.answer(struct.pack("<B", 0 if all(key in self.values for key in keys) else 1))

    def wait(self, connection):
        keys = connection.key_list()
        with self.changed:
            self.changed.wait_for(lambda: all(key in self.values for key in keys))
        connection.answer(b"\0")

    def delete_key(self, connection):
        connection.answer(struct.pack("<q", int(self.values.pop(connection.key(), None) is not None)))

    def get_num_keys(self, connection):
        connection.answer(struct.pack("<q", len(self.values)))

    def cancel_wait(self, connection):
        raise SystemExit("a rank has waited in vain")


def sockets(pid):
    try:
        return sum(os.readlink(entry.path).startswith("socket:") for entry in os.scandir(f"/proc/{pid}/fd"))
    except OSError:
        return 0  # ended, or that descriptor was closed meanwhile


def run_world(binary, ranks, folder):
    """The store that served it, and the most sockets of one rank."""
    store = Store()
    command = [binary, "--config=test/swav_tiny", f"config.CHECKPOINT.DIR={folder}/run", "engine_name=train",
               "config.OPTIMIZER.num_epochs=1", f"config.DATA.TRAIN.DATA_LIMIT={2 * 8 * ranks}"]
    processes = []
    for rank in range(ranks):
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1",
                 "MASTER_PORT": store.port, "TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_USE_AGENT_STORE": "True",
                 "OMP_NUM_THREADS": 1}
        with open(f"{folder}/output{rank}", "w") as output:
            processes.append(subprocess.Popen(command, env={**os.environ, **{key: str(value) for key, value in place.items()}},
                                              stdout=output, stderr=subprocess.STDOUT))
    most = 0
    for rank, process in enumerate(processes):
        while process.poll() is None:
            most = max([most] + [sockets(each.pid) for each in processes])
            threading.Event().wait(POLL_S)
        if process.returncode:
            for each in processes:
                each.kill()
            sys.exit(f"rank {rank} of {ranks} exited with {process.returncode}:\n"
                     + pathlib.Path(f"{folder}/output{rank}").read_text())
    store.server.close()
    return store, most


def by_rank(store):
    """[{(family, what): count}] of each rank; connections count as (own, connections)."""
    ranks = collections.defaultdict(collections.Counter)
    for connection in store.connections:
        ranks[connection.rank].update(connection.counts)
        ranks[connection.rank]["own", "connections"] += 1
    return ranks


# What is counted, with the degree of the polynomial in the number of ranks that it follows: of rank 0, of another rank, of
# all together. Numbers of ranks are written in digits, so that bytes grow a little faster.
ROWS = {("own", "connections"): (0, 0, 1), ("own", "operations"): (1, 0, 1), ("own", "bytes"): (1, 0, 1),
        ("gloo", "operations"): (1, 1, 2), ("gloo", "bytes"): (2, 2, 3)}
SOCKETS = "sockets of a rank"


def summary(store, most):
    """{(label, degree): number} of one world."""
    ranks = by_rank(store)
    numbers = {}
    for row, degrees in ROWS.items():
        counts = (ranks[0][row], max(each[row] for rank, each in ranks.items() if rank), sum(each[row] for each in ranks.values()))
        for who, degree, count in zip(("rank 0", "another rank", "all"), degrees, counts):
            numbers[f"{row[0]} {row[1]}, {who}", degree] = count
    return {**numbers, (SOCKETS, 1): most}


def polynomial(points, at):
    """The value at `at` of the polynomial through `points` (Lagrange)."""
    total = 0.0
    for x, y in points:
        term = float(y)
        for other, _ in points:
            term *= (at - other) / (x - other) if other != x else 1.0
        total += term
    return total


def report(worlds):
    """worlds: {ranks: {(label, degree): number}}."""
    sizes = sorted(worlds)
    lines = [f"{'ranks':32}" + "".join(f"{size:>12}" for size in sizes) + f"{'law':>6}{'off':>8}{MOST_RANKS:>22}"]
    for label, degree in worlds[sizes[0]]:
        points = [(size, worlds[size][label, degree]) for size in sizes]
        through, others = points[-degree - 1:], points[:-degree - 1]
        off = max([abs(polynomial(through, size) / max(number, 1) - 1.0) for size, number in others], default=None)
        lines.append(f"{label:32}" + "".join(f"{number:12,}" for _, number in points) + f"{f'N^{degree}':>6}"
                     + (f"{'-':>8}" if off is None else f"{off:8.1%}") + f"{polynomial(through, MOST_RANKS):22,.0f}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="bazel-bin/ssl/tools/ssl_main")
    parser.add_argument("--ranks", default="2,4,8,16", help="sizes of the worlds")
    parser.add_argument("--names", action="store_true", help="print which operations there were, too")
    args = parser.parse_args()
    sizes = sorted(int(word) for word in args.ranks.split(","))
    if len(sizes) < 4:
        parser.error(f"--ranks is {args.ranks}, expected at least four worlds: a law has up to degree 3")
    worlds = {}
    for ranks in sizes:
        with tempfile.TemporaryDirectory() as folder:
            store, most = run_world(args.binary, ranks, folder)
        worlds[ranks] = summary(store, most)
        if args.names:
            names = sum((connection.names for connection in store.connections), collections.Counter())
            print(f"{ranks} ranks: " + ", ".join(f"{family} {name} {count}" for (family, name), count in names.items()))
    print(report(worlds))


if __name__ == "__main__":
    main()
