# SPDX-License-Identifier: Apache-2.0
"""The checks that the harnesses rely on can fail: each finds the fault that it is there for."""
import json
import pathlib
import struct
import tempfile
import unittest

from tests.reliability import cases, event_files, harness, soak


def safetensors(tensors):
    """{name: bytes} -> a file of uint8 tensors."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, content in tensors.items():
        header[name] = {"dtype": "U8", "shape": [len(content)], "data_offsets": [at, at + len(content)]}
        at += len(content)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(tensors.values())


def record(payload):
    length = struct.pack("<Q", len(payload))
    return (length + struct.pack("<I", event_files.masked_crc(length)) + payload +
            struct.pack("<I", event_files.masked_crc(payload)))


def scalar(step, tag=b"loss"):
    value = b"\x0a" + bytes([len(tag)]) + tag
    summary = b"\x0a" + bytes([len(value)]) + value
    return record(b"\x10" + bytes([step]) + b"\x2a" + bytes([len(summary)]) + summary)


def start(step):
    return record(b"\x10" + bytes([step]) + b"\x3a\x02\x08\x01")


class HarnessTest(unittest.TestCase):

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self._folder.name)

    def tearDown(self):
        self._folder.cleanup()

    def write(self, name, data):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def run_with_metrics(self, name, text):
        self.write(f"{name}/metrics.jsonl", text.encode())
        return harness.Run("binary", self.folder / name, [])

    # State.

    def test_hash_follows_every_byte_name_and_file(self):
        hashes = set()
        for name, tensors in (("a", {"x": b"12", "y": b"3"}), ("b", {"x": b"12", "y": b"4"}),
                              ("c", {"x": b"1", "y": b"23"}), ("d", {"x": b"12", "z": b"3"})):
            self.write(f"{name}/model.safetensors", safetensors(tensors))
            hashes.add(harness.state_hash(self.folder / name))
        self.assertEqual(len(hashes), 4)

    def test_hash_does_not_follow_the_order_in_the_file(self):
        self.write("a/model.safetensors", safetensors({"x": b"12", "y": b"3"}))
        self.write("b/model.safetensors", safetensors({"y": b"3", "x": b"12"}))
        self.assertEqual(harness.state_hash(self.folder / "a"), harness.state_hash(self.folder / "b"))

    def test_hash_of_nothing_is_refused(self):
        with self.assertRaises(AssertionError):
            harness.state_hash(self.folder)

    def test_cut_save_is_seen(self):
        run = harness.Run("binary", self.folder, [])
        self.write("checkpoints/step_2/MANIFEST.json", b"{}")
        self.write("checkpoints/LATEST", b"step_2\n")
        self.assertFalse(run.unfinished_save())
        (self.folder / "checkpoints/step_4.tmp").mkdir()
        self.assertTrue(run.unfinished_save())
        (self.folder / "checkpoints/step_4.tmp").rename(self.folder / "checkpoints/step_4")
        self.assertTrue(run.unfinished_save(), "LATEST is still step_2")

    # Metrics.

    def test_equal_metrics_but_for_what_a_clock_says(self):
        whole = self.run_with_metrics("whole", '{"iteration":1,"Speed/x":3}\n{"iteration":2}\n')
        run = self.run_with_metrics("run", '{"iteration":1,"Speed/x":5}\n{"iteration":2}\n')
        harness.check_metrics(run, whole, finished=True)

    def test_metrics_with_a_fault_are_refused(self):
        whole = self.run_with_metrics("whole", '{"iteration":1,"loss":2}\n{"iteration":2,"loss":1}\n')
        for fault in ('{"iteration":1,"loss":2}\n', '{"iteration":2,"loss":1}\n',
                      '{"iteration":1,"loss":2}\n{"iteration":1,"loss":2}\n{"iteration":2,"loss":1}\n',
                      '{"iteration":1,"loss":2}\n{"iteration":2,"loss":9}\n',
                      '{"iteration":1,"loss":2}\n{"iteration":2,"loss":1}\n{"iter'):
            with self.assertRaises(AssertionError, msg=fault):
                harness.check_metrics(self.run_with_metrics("run", fault), whole, finished=True)

    def test_killed_run_may_end_with_half_a_line_but_not_hold_one(self):
        whole = self.run_with_metrics("whole", '{"iteration":1}\n{"iteration":2}\n')
        harness.check_metrics(self.run_with_metrics("run", '{"iteration":1}\n{"itera'), whole, finished=False)
        with self.assertRaises(json.JSONDecodeError):
            harness.check_metrics(self.run_with_metrics("run", '{"itera\n{"iteration":2}\n'), whole, finished=False)

    # Event files.

    def test_crc32c_of_the_published_example(self):
        self.assertEqual(event_files.crc32c(b"123456789"), 0xE3069283)

    def test_every_cut_is_a_torn_tail(self):
        whole = scalar(1) + scalar(2)
        for size in range(1, len(whole)):
            payloads, torn = event_files.read_records(self.write("events", whole[:size]))
            self.assertEqual(torn > 0, size != len(scalar(1)), size)
            self.assertEqual(len(payloads), int(size >= len(scalar(1))))

    def test_every_flipped_byte_is_found(self):
        whole = scalar(1)
        for at in range(len(whole)):
            flipped = bytearray(whole)
            flipped[at] ^= 1
            path = self.write("events", bytes(flipped))
            with self.assertRaises(AssertionError, msg=at):
                event_files.read_records(path)

    def test_start_of_a_process_hides_what_it_repeats(self):
        self.write("tb/events.1", start(1) + scalar(1) + scalar(2) + scalar(3))
        self.write("tb/events.2", start(2) + scalar(2) + scalar(3))
        summary = event_files.EventSummary(self.folder / "tb")
        summary.check_no_step_twice()
        summary.check_all_steps("loss", 3)
        with self.assertRaises(AssertionError):
            summary.check_all_steps("loss", 4)
        summary.check_all_steps("loss", 4, may_be_hidden=[4])

    def test_report_of_the_checkpoint_itself_may_come_once_more(self):
        self.write("tb/events.1", start(0) + scalar(1) + scalar(2))
        self.write("tb/events.2", start(3) + scalar(2) + scalar(3))
        summary = event_files.EventSummary(self.folder / "tb")
        summary.check_no_step_twice()
        summary.check_all_steps("loss", 3)

    def test_step_twice_is_found(self):
        self.write("tb/events.1", start(1) + scalar(1) + scalar(2))
        self.write("tb/events.2", start(3) + scalar(1) + scalar(3))
        with self.assertRaises(AssertionError):
            event_files.EventSummary(self.folder / "tb").check_no_step_twice()

    # Processes.

    def test_lines_names_and_ends_are_waited_for(self):
        life = harness.Life(["sh", "-c", f"echo ready; read go; mkdir {self.folder}/step_1.tmp; read go; exit 7"],
                            stdin=-1)
        self.assertEqual(life.wait_for("read"), "ready")
        with harness.FolderWatch(self.folder) as watch:
            life._process.stdin.write("go\n")
            life._process.stdin.flush()
            self.assertEqual(life.wait_for_name(watch, r"step_\d+\.tmp.*"), "step_1.tmp")
            self.assertFalse(life.ends_within(0))
            life._process.stdin.close()
            self.assertIsNone(life.wait_for_name(watch, "another"))
        self.assertIsNone(life.wait_for("never"))
        self.assertEqual(life.wait(), 7)

    # Cases and figures.

    def test_all_settings_come_before_one_comes_again(self):
        import random
        count = len(cases.all_cases())
        longest = max(sum(case.method == method for case in cases.all_cases()) for method in cases.METHODS)
        stream = cases.shuffled_cases(random.Random(1))
        seen = {next(stream) for _ in range(longest * len(cases.METHODS))}
        self.assertEqual(len(seen), count)

    def test_slope_is_common_to_lives_of_different_levels(self):
        lives = [[(t, 100 + t) for t in range(10)], [(t, 250 + t) for t in range(10)]]
        self.assertAlmostEqual(soak.common_slope(lives), 1.0)
        self.assertAlmostEqual(soak.common_slope([[(t, 5) for t in range(10)]]), 0.0)


if __name__ == "__main__":
    unittest.main()
