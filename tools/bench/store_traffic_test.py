# SPDX-License-Identifier: Apache-2.0
"""What ranks say to the store at a start does not grow faster than it has to."""
import pathlib
import sys
import tempfile
import unittest

from tools.bench import count_store_traffic

BINARY = pathlib.Path(sys.argv.pop(1)).absolute()


class StoreTrafficTest(unittest.TestCase):

    def world(self, ranks):
        with tempfile.TemporaryDirectory() as folder:
            store, most = count_store_traffic.run_world(BINARY, ranks, folder)
        return {label: number for (label, _), number in count_store_traffic.summary(store, most).items()}

    def test_rank_zero_speaks_for_each_rank_and_the_others_for_themselves(self):
        two, three, four = (self.world(ranks) for ranks in (2, 3, 4))
        for of_others in ("own operations, another rank", "own connections, another rank", "own connections, rank 0"):
            self.assertEqual({world[of_others] for world in (two, three, four)}, {two[of_others]}, of_others)
        rank_zero = [world["own operations, rank 0"] for world in (two, three, four)]
        self.assertEqual(rank_zero[2] - rank_zero[1], rank_zero[1] - rank_zero[0])
        self.assertLessEqual(rank_zero[1] - rank_zero[0], 4)
        self.assertGreater(two["gloo operations, all"], 0, "Gloo's keys are known by their name")

    def test_the_law_is_told_with_what_it_misses(self):
        worlds = {ranks: {("sockets", 1): 3 * ranks, ("bytes", 2): ranks**2 + (ranks == 2)} for ranks in (2, 4, 8, 16)}
        text = count_store_traffic.report(worlds)
        self.assertRegex(text, r"sockets .* N\^1 +0.0% +12,288\n")
        self.assertRegex(text, r"bytes .* N\^2 +20.0% +16,777,216$")


if __name__ == "__main__":
    unittest.main()
