# SPDX-License-Identifier: Apache-2.0
"""Trains with 0, 1, 2, 4 and 8 loader threads, several times each: one seed, one final state, bit by bit.

  bazel run //tests/reliability:same_seed                             every method, 3 times each: 75 runs
"""
from tests.reliability import cases, harness

LOADER_THREADS = (0, 1, 2, 4, 8)


def final_hash(binary, case):
    with harness.Scratch() as folder:
        run = harness.Run(binary, folder / "run", case.arguments())
        run.finish()
        return run.final_hash()


def main():
    arguments = harness.parse_arguments(__doc__, repeats=3, methods=len(cases.METHODS))
    methods = arguments.random.sample(cases.METHODS, arguments.methods)
    for method in methods:
        precision = arguments.random.choice(("float32", "bfloat16", "float16"))
        hashes = {(threads, repeat): final_hash(arguments.binary, cases.Case(method, precision, True, threads, 1))
                  for threads in LOADER_THREADS for repeat in range(arguments.repeats)}
        assert len(set(hashes.values())) == 1, f"{method} {precision}: states differ: {hashes}"
        print(f"{method} {precision}: {len(hashes)} runs equal", flush=True)
    print(f"F8: {len(methods)} methods x loader threads {LOADER_THREADS} x {arguments.repeats}: one state for each method")


if __name__ == "__main__":
    main()
