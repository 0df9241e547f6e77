# SPDX-License-Identifier: Apache-2.0
"""The benchmark scripts read what they are given: result lines, process trees, profiles."""
import json
import math
import os
import pathlib
import sys
import tempfile
import time
import unittest

from tools.bench import clock_check
from tools.bench import compare_gpu
from tools.bench import compare_loader
from tools.bench import compare_ranks
from tools.bench import compare_sharding
from tools.bench import compare_swav
from tools.bench import compare_swav_photos
from tools.bench import compare_transforms
from tools.bench import compile_times
from tools.bench import hook_overhead
from tools.bench import trace_overlap
from tools.bench import vissl_configs


def progress_lines(seconds_of_steps):
    """Lines of ours as compare_swav.measure_by_clock has them; what they say of the speed is wrong."""
    return [(seconds, f"12:00:00 I train_logger_hook.cc:1  5% | epoch 1/2 | step {step:,}/1,000 | loss 1.0 | lr 0.1 | "
                      "999 samples/s | data 3% | 1s left | 100 MB\n") for step, seconds in seconds_of_steps.items()]


def write_metrics(run, steps, share):
    """metrics.jsonl, with a speed that is wrong."""
    reports = [{"iteration": step, "Speed/samples_per_sec": 999.0, "Speed/data_wait_share": share} for step in steps]
    pathlib.Path(run, "metrics.jsonl").write_text("".join(json.dumps(report) + "\n" for report in reports))


class ClockCheckTest(unittest.TestCase):
    def test_speeds_are_compared_with_the_stopwatch_within_epochs(self):
        with tempfile.TemporaryDirectory() as run:
            reports = [{"iteration": step, "epoch": epoch, "Speed/samples_per_sec": speed}
                       for step, epoch, speed in ((1, 0, 8.0), (2, 0, 16.0), (10, 0, 16.0), (20, 1, 1.0), (30, 1, 20.0))]
            reports.insert(3, {"iteration": 10, "epoch": 0, "Training/loss_mean": 1.0})
            pathlib.Path(run, "metrics.jsonl").write_text("".join(json.dumps(report) + "\n" for report in reports))
            found = clock_check.ratios(run, progress_lines({1: 1.0, 2: 1.5, 10: 5.5, 20: 99.0, 30: 103.0}), 8)
        self.assertEqual(found, [(2, 1.0), (10, 1.0), (30, 1.0)])
        text, is_met = clock_check.report(found + [(40, 1.36), (50, 0.99)])
        self.assertIn("5 windows: said / stopwatch 1.0000 (median), 1.3600 at step 40 (worst)", text)
        self.assertTrue(is_met)
        self.assertFalse(clock_check.report([(1, 1.36), (2, 1.3), (3, 1.0)])[1])

    def test_no_other_script_measures_by_our_own_figure_of_the_speed(self):
        folder = pathlib.Path(compare_gpu.__file__).parent
        reading = {path.name for path in folder.glob("*.py") if "samples_per_sec" in path.read_text()}
        self.assertEqual(reading - {"bench_scripts_test.py"}, {"clock_check.py"})


class VisslConfigsTest(unittest.TestCase):
    def program(self, code):
        return [sys.executable, "-c", code]

    def test_steps_and_memory_are_measured(self):
        lines = "import sys\nfor i in (1, 2, 3): print(f'step {i}/3', file=sys.stderr, flush=True)"
        first, step, memory = vissl_configs.measure(self.program(lines))
        self.assertGreater(first, 0.0)
        self.assertGreaterEqual(step, 0.0)
        self.assertGreater(memory, 1.0)

    def test_program_without_steps_is_named_with_its_last_line(self):
        with self.assertRaisesRegex(SystemExit, "exit code 3: broken"):
            vissl_configs.measure(self.program("import sys\nprint('broken', file=sys.stderr)\nsys.exit(3)"))

    def test_ratios_to_the_reference(self):
        references = vissl_configs.parse_reference(["swav=7.0,300,1000"])
        line = vissl_configs.report("swav", [(0.5, 150.0, 400.0), (0.6, 150.0, 500.0), (0.4, 150.0, 300.0)],
                                    references["swav"])
        self.assertIn("step rate 2.00x, memory 0.40x", line)


class HookOverheadTest(unittest.TestCase):
    def test_pairs_are_read_in_their_order(self):
        output = "pair 1: 10.000 ms without hooks, 10.500 ms with\npair 2: 8.25 ms without hooks, 8 ms with\nmedian 3\n"
        self.assertEqual(hook_overhead.read_pairs(output), [(10.0, 10.5), (8.25, 8.0)])

    def test_reports_count_in_periods_and_not_in_the_median_of_steps(self):
        period = [(10.0, 10.0)] * 4 + [(10.0, 15.0)]  # the last step has a report
        self.assertEqual(hook_overhead.interval(hook_overhead.ratios(period * 6, 1))[1], 1.0)
        self.assertEqual(hook_overhead.ratios(period * 6 + [(1.0, 9.0)], 5), [1.1] * 6)

    def test_interval_holds_the_median_and_forgets_outliers(self):
        low, middle, high = hook_overhead.interval([100.0] + [float(value) for value in range(99)])
        self.assertEqual(middle, 49.5)
        self.assertEqual((low, high), (39.0, 60.0))
        self.assertEqual(hook_overhead.interval([3.0, 1.0, 2.0]), (1.0, 2.0, 3.0))


class CompareLoaderTest(unittest.TestCase):
    def test_last_rate_is_read(self):
        lines = "swav, 2 workers: 97.5 images/s, 780 views/s\nswav, 2 workers: 567.0 images/s, 4536 views/s, 1 us\n"
        self.assertEqual(compare_loader.read_rate(lines), {"rate": 567.0})
        self.assertEqual(compare_loader.read_rate("no such line"), {})

    def test_growth_and_allocations_are_read_and_told(self):
        state = "231 MB resident, -0.125 MB per 1,000 batches; 14.50 allocations per image\n"
        ours = {**compare_loader.read_rate(state + "moco, 2 workers: 900.0 images/s"), "pss": 100.0}
        self.assertEqual((ours["growth"], ours["allocations"]), (-0.125, 14.5))
        text = compare_loader.report([ours], [{"rate": 100.0, "pss": 400.0}])
        self.assertIn("ours grew by -0.125 MB per 1,000 batches and took 14.50 allocations per image", text)

    def test_ratio_is_that_of_the_medians(self):
        ours = [{"rate": rate, "pss": 100.0} for rate in (900.0, 1000.0, 1200.0)]
        peer = [{"rate": rate, "pss": 400.0} for rate in (90.0, 100.0, 300.0)]
        lines = compare_loader.report(ours, peer).splitlines()
        self.assertEqual(lines[1].split(), ["images/s", "1000", "100", "10.00"])
        self.assertEqual(lines[2].split(), ["peak", "PSS", "MB", "100", "400", "0.25"])


class CompareShardingTest(unittest.TestCase):
    def test_update_of_rank_zero_is_read(self):
        lines = ("SGD, shared: rank 1 of 2: state   48.8 MiB, resident  330.0 MiB, update  238.0 ms\n"
                 "SGD, shared: rank 0 of 2: state   48.7 MiB, resident  329.0 MiB, update  237.0 ms\n")
        self.assertEqual(compare_sharding.read_update(lines), {"state": 48.7, "resident": 329.0, "update": 237.0})
        self.assertEqual(compare_sharding.read_update("no such line"), {})

    def test_steps_and_memory_of_a_run_are_read(self):
        self.assertEqual(compare_sharding.read_training([]), {})
        lines = progress_lines({1: 10.0, 2: 20.0, 3: 20.25, 4: 20.75, 5: 21.5})
        lines.append((21.5, "memory after 1 step: process 400.0 MiB, 462.0 MiB at its peak; "
                            "model 47.2 MiB, gradients 47.0 MiB, optimizer 46.0 MiB\n"))
        self.assertEqual(compare_sharding.read_training(lines),
                         {"ms": 500.0, "peak": 462.0, "model": 47.2, "gradients": 47.0, "optimizer": 46.0})


class CompareTransformsTest(unittest.TestCase):
    def test_operations_are_matched_by_name_and_medians_compared(self):
        ours = [compare_transforms.read_times(f"     {blur} us  Blur p=1\n      1.5 us  Ours only\n") for blur in (8.0, 2.0, 4.0)]
        peer = [compare_transforms.read_times(f"   {blur} us  Blur p=1\n") for blur in (90.0, 40.0, 10.0)]
        lines = compare_transforms.report(ours, peer).splitlines()
        self.assertEqual(lines[1].split(), ["Blur", "p=1", "4.0", "40.0", "10.0"])
        self.assertEqual(lines[2].split(), ["Ours", "only", "1.5"])


class CompareSwavTest(unittest.TestCase):
    def command(self, line):
        return [sys.executable, "-c", f"print({line!r})"]

    def test_our_steps_are_timed_by_the_clock_after_the_warm_up(self):
        with tempfile.TemporaryDirectory() as run:
            write_metrics(run, (1, 2, 10, 12), share=0.1)
            result = compare_swav.read_ours(run, progress_lines({1: 5.0, 2: 100.0, 10: 108.0, 12: 109.0}))
        self.assertAlmostEqual(result["ms"], 900.0)
        self.assertAlmostEqual(result["wait"], 90.0)

    def test_steps_without_a_report_of_the_wait_are_like_the_others(self):
        lines = progress_lines({1: 5.0, 2: 100.0, 10: 108.0, 12: 109.0})
        with tempfile.TemporaryDirectory() as run:
            self.assertTrue(math.isnan(compare_swav.read_ours(run, lines)["wait"]))
            write_metrics(run, (1, 2, 12), share=0.1)
            result = compare_swav.read_ours(run, lines)
        self.assertAlmostEqual(result["ms"], 900.0)
        self.assertAlmostEqual(result["wait"], 90.0)

    def test_run_without_progress_lines_has_no_result(self):
        with tempfile.TemporaryDirectory() as run:
            self.assertEqual(compare_swav.read_ours(run, []), {})

    def test_lines_come_with_the_time_at_which_they_came(self):
        program = "import sys; print('first', flush=True); sys.stdin.read(1); print('second', file=sys.stderr)"
        begin = time.monotonic()
        result = compare_swav.measure_by_clock([sys.executable, "-c", program], lambda lines: {"lines": lines})
        (first, first_line), (second, second_line) = result["lines"]
        self.assertEqual([first_line, second_line], ["first\n", "second\n"])
        self.assertTrue(begin <= first <= second <= time.monotonic())

    def test_peer_result_line_is_read(self):
        line = "peer: 1019.0 ms/step  251 samples/s  data-wait 189.0 ms  maxrss 900 MB"
        result = compare_swav.measure(self.command(line), compare_swav.read_peer)
        self.assertEqual((result["ms"], result["rate"], result["wait"]), (1019.0, 251.0, 189.0))

    def test_program_without_result_line_is_named(self):
        with self.assertRaisesRegex(SystemExit, "no result.*\nnothing to see"):
            compare_swav.measure(self.command("nothing to see"), compare_swav.read_peer)

    def test_program_that_fails_is_named(self):
        with self.assertRaisesRegex(SystemExit, "exit code 3"):
            compare_swav.measure([sys.executable, "-c", "raise SystemExit(3)"], compare_swav.read_peer)

    def test_tree_has_all_descendants_and_nobody_else(self):
        self.assertEqual(compare_swav.tree(2, {2: 1, 3: 2, 4: 3, 5: 1, 1: 0}), {2, 3, 4})

    def test_memory_of_children_is_added(self):
        with tempfile.TemporaryDirectory() as proc:
            for pid, parent, kb in ((10, 1, 2048), (11, 10, 1024), (12, 1, 4096)):
                folder = pathlib.Path(proc, str(pid))
                folder.mkdir()
                (folder / "stat").write_text(f"{pid} (a (b) c) S {parent} 0 0")
                (folder / "smaps_rollup").write_text(f"55d0-7ffd ---p 0 [rollup]\nRss: 9999 kB\nPss: {kb} kB\n")
            self.assertEqual(compare_swav.tree_pss_mb(10, proc), 3.0)

    def test_own_process_has_memory(self):
        self.assertGreater(compare_swav.tree_pss_mb(os.getpid()), 1.0)

    def test_report_divides_medians(self):
        ours = [{"ms": ms, "wait": 0.0, "pss": 500.0} for ms in (900.0, 500.0, 510.0)]
        peer = [{"ms": ms, "wait": 9.0, "pss": 1500.0} for ms in (1020.0, 1020.0, 10.0)]
        text = compare_swav.report(ours, peer)
        self.assertRegex(text, r"ms/step +510.0 +1020.0 +2.00")
        self.assertRegex(text, r"peak PSS MB +500.0 +1500.0 +3.00")
        self.assertIn("ours 500.0-900.0, peer 10.0-1020.0", text)


class CompareSwavPhotosTest(unittest.TestCase):
    def test_epochs_make_at_least_the_steps(self):
        self.assertEqual([compare_swav_photos.epochs_of(steps, 555) for steps in (8, 9, 48)], [1, 2, 6])

    def test_rates_and_shares_of_waiting_are_medians(self):
        ours = [{"rate": rate, "ms": 1000.0, "wait": 20.0, "pss": 500.0} for rate in (40.0, 50.0, 90.0)]
        peer = [{"rate": rate, "ms": 2000.0, "wait": 500.0, "pss": 1500.0} for rate in (30.0, 25.0, 10.0)]
        text = compare_swav_photos.report(ours, peer)
        self.assertRegex(text, r"samples/s +50.0 +25.0 +2.00")
        self.assertRegex(text, r"data wait +2.0% +25.0%")
        self.assertRegex(text, r"peak PSS MB +500 +1500 +3.00")
        self.assertIn("ours 40.0-90.0, peer 10.0-30.0", text)


class CompareGpuTest(unittest.TestCase):

    def runs(self, *rates, wait, device):
        return [{"rate": rate, "ms": 100.0, "wait": wait, "device": device, "pss": 500.0} for rate in rates]

    def report(self, name, **options):
        return compare_gpu.report(name, self.runs(1700.0, 1500.0, 1800.0, wait=1.0, device=20000.0),
                                  self.runs(1000.0, 990.0, 1200.0, wait=40.0, device=30000.0), **options)

    def test_rates_waiting_and_memory_are_medians(self):
        text = self.report("swav")
        self.assertRegex(text, r"^SwAV, ResNet-50, 2x224 \+ 6x96\n")
        self.assertRegex(text, r"images/s +1700.0 +1000.0 +1.70\n")
        self.assertRegex(text, r"data wait, at most +1.0% +40.0%\n")
        self.assertRegex(text, r"peak GPU MiB +20000 +30000 +1.50\n")
        self.assertIn("range of images/s: ours 1500.0-1800.0, peer 990.0-1200.0\n", text)

    def test_goals_are_judged_where_they_hold(self):
        self.assertIn("goal 1.3: 1.70 times the peer: met\ngoal below 3 %: data wait 1.0 % at most: met\n"
                      "goal 1600: 1700 images/s: met", self.report("swav"))
        self.assertNotIn("goal 1600", self.report("moco"))
        self.assertNotIn("goal", self.report("swav", with_goals=False))
        self.assertEqual(compare_gpu.verdicts("swav", 1.29, 0.03, 1599.0),
                         ["goal 1.3: 1.29 times the peer: missed", "goal below 3 %: data wait 3.0 % at most: missed",
                          "goal 1600: 1599 images/s: missed"])

    def test_memory_is_the_most_above_what_was_in_use(self):
        self.assertEqual(compare_gpu.parse_memory("1234\n"), 1234.0)
        self.assertIsNone(compare_gpu.parse_memory("[N/A]\n"))
        self.assertIsNone(compare_gpu.parse_memory("No devices were found"))
        memory = compare_gpu.PeakDeviceMemory(lambda: 700.0)
        memory.peak = 900.0
        memory.start()
        self.assertEqual(memory.stop(), 200.0)

    def test_no_step_before_the_warm_up_counts(self):
        with tempfile.TemporaryDirectory() as run:
            write_metrics(run, (1, 2, 10, 20, 30), share=0.0)
            lines = progress_lines({1: 1.0, 2: 2.0, 10: 50.0, 20: 100.0, 30: 101.25})
            result = compare_gpu.read_ours(run, lines, 8, compare_gpu.WARM_UP_STEPS)
        self.assertAlmostEqual(result["rate"], 64.0)

    def test_epochs_of_whole_batches_make_the_steps(self):
        self.assertEqual([compare_gpu.epochs_of(steps, 600, 256) for steps in (2, 3, 200)], [1, 2, 100])


class GpuPeerFilesTest(unittest.TestCase):
    """The peer's numbers are those of our configurations."""

    def test_batches_and_steps_that_do_not_count_are_equal(self):
        folder = pathlib.Path(compare_gpu.__file__).parent
        peer = (folder / "peer_gpu.py").read_text()
        for name, workload in compare_gpu.WORKLOADS.items():
            text = (folder.parents[1] / f"configs/config/bench/{name}_gpu_peer.yaml").read_text()
            self.assertIn(f"BATCHSIZE_PER_REPLICA: {workload.batch}\n", text)
            self.assertIn(f'"{name}": {workload.batch}', peer)
            self.assertIn("DEVICE: gpu\n", text)
            self.assertIn("TRAIN_STEP_NAME: graph_train_step\n", text)
            self.assertIn("AMP_DTYPE: bfloat16\n", text)
        self.assertIn(f"\nWARM_UP_STEPS = {compare_gpu.WARM_UP_STEPS}\n", peer)
        self.assertIn(f"\nTINY_BATCH = {compare_gpu.TINY_BATCH}\n", peer)


class CompareRanksTest(unittest.TestCase):
    def test_report_relates_all_to_the_ranks(self):
        def runs(*times):
            return [{"ms": ms, "rate": 256e3 / ms, "pss": 500.0} for ms in times]
        text = compare_ranks.report({"ranks": runs(500.0, 400.0, 900.0), "one rank": runs(600.0, 450.0, 450.0),
                                     "peer": runs(1000.0, 1250.0, 1100.0)})
        self.assertRegex(text, r"ranks +500.0 +400.0-900.0 +512.0 +500.0 +1.00")
        self.assertRegex(text, r"one rank +450.0 .* 0.90\n")
        self.assertRegex(text, r"peer +1100.0 .* 2.20$")


class TraceOverlapTest(unittest.TestCase):
    """One update of 100 ms: backward from 40 to 80, two reductions from 50 to 60 and from 70 to 90."""

    def event(self, name, begin, end, thread=1):
        return {"ph": "X", "cat": "user_annotation", "name": name, "tid": thread, "ts": begin * 1e3, "dur": (end - begin) * 1e3}

    def steps(self, delay=0, without=""):
        events = [self.event("ProfilerStep#3", 0, 100), self.event("all-reduce (sum) of Float [3]", 10, 15),
                  self.event("backward", 40, 92), self.event("all-reduce (mean) of Float [7]", 50 + delay, 60, thread=2),
                  self.event("all-reduce (mean) of Float [9]", 70, 90, thread=2),
                  self.event(trace_overlap.WAIT, 80, 91), {"ph": "M", "name": "process_name"}]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "rank0.json")
            path.write_text(json.dumps({"traceEvents": [each for each in events if each["name"] != without]}))
            return trace_overlap.read_steps(path)

    def test_reductions_are_cut_where_backward_ends(self):
        text = trace_overlap.report([self.steps(), self.steps(delay=4)])
        # step, backward, all-reduce and its share, within backward, exposed and its share, others and their share
        self.assertRegex(text, r"rank 0 +100.0 +40.0 +30.0 +30.0% +66.7% +11.0 +11.0% +5.0 +5.0%")
        self.assertRegex(text, r"rank 1 +100.0 +40.0 +26.0 +26.0% +61.5% +11.0")
        self.assertIn("reductions: all-reduce (mean) of Float [7]: 1.0 in a step, 8.00 ms, exchange 6.00 ms", text)
        self.assertIn("others: all-reduce (sum) of Float [3]: 1.0 in a step, 5.00 ms, exchange 5.00 ms", text)

    def test_a_run_of_one_rank_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "0 ranges 'waiting for reduced gradients'.*several ranks"):
            self.steps(without=trace_overlap.WAIT)


class CompileTimesTest(unittest.TestCase):
    def events(self, *names, process=True):
        for index, name in enumerate(names):
            yield {"cat": "action processing", "name": name, "ts": index * 100, "dur": 90, "tid": 1}
            if process:
                yield {"cat": compile_times.PROCESS, "name": "CppCompile", "ts": index * 100 + 10, "dur": 50, "tid": 1}

    def test_time_is_that_of_the_compiler(self):
        seconds = compile_times.compile_seconds(list(self.events("Compiling ssl/a.cc", "Linking ssl/a", "Compiling ssl/b.cc")))
        self.assertEqual(seconds, {"ssl/a.cc": 50e-6, "ssl/b.cc": 50e-6})

    def test_other_threads_do_not_count(self):
        events = list(self.events("Compiling ssl/a.cc"))
        events.append({"cat": compile_times.PROCESS, "name": "CppCompile", "ts": 20, "dur": 70, "tid": 2})
        self.assertEqual(compile_times.compile_seconds(events), {"ssl/a.cc": 50e-6})

    def test_cached_file_is_left_out(self):
        self.assertEqual(compile_times.compile_seconds(list(self.events("Compiling ssl/a.cc", process=False))), {})


if __name__ == "__main__":
    unittest.main()
