# SPDX-License-Identifier: Apache-2.0
"""Compares this trainer on one GPU with a compiled Python program, from files to updated weights, on the same machine.

  ./bazelw build --config=cuda //ssl/tools:ssl_main
  python3 tools/bench/compare_gpu.py --python VENV/bin/python --photos PHOTOS --fashion-mnist DIR
  python3 tools/bench/compare_gpu.py --python VENV/bin/python --photos PHOTOS --fashion-mnist DIR --tiny   # tries it

SwAV with a ResNet-50 (2x224 + 6x96), MoCo v2 with a ResNet-50 and SimCLR with a ResNet-18 of 32x32, in bfloat16, as
configs/config/bench/*_gpu_peer.yaml say; peer_gpu.py beside this file is the peer. The programs run in turn, `--runs`
times each, and medians are compared; the first 20 steps of each do not count. Memory of the GPU is the most that its
driver says is in use above what was before, polled twice a second: nothing else may run there. Our time is that between
two progress lines by this process's clock. `data wait` of ours is the time in which the loader had no batch ready; the
peer's, an upper bound, that in which the host waited in its call for the next one. PHOTOS has a folder of JPEGs for
each class (make_photos.py makes one); DIR the four Fashion-MNIST IDX .gz files. --tiny shrinks networks, views and
batches and needs no GPU: it shows that everything starts, and its figures say nothing. Standard library and nvidia-smi;
peer_gpu.py says what VENV needs.
"""
import argparse
import dataclasses
import functools
import os
import pathlib
import subprocess
import tempfile
import threading

from compare_swav import POLL_S, fill, measure, measure_by_clock, median, read_ours, read_peer, take_turns

WARM_UP_STEPS = 20  # of both: compiling, choosing convolutions, recording
GOAL_RATIO, GOAL_WAIT, GOAL_SWAV_RATE = 1.3, 0.03, 1600
OURS = ["{program}", "--config={config}", "config.DATA.TRAIN.DATA_PATHS=[{data}]", "config.CHECKPOINT.DIR={run}",
        "config.OPTIMIZER.num_epochs={epochs}", "config.DATA.NUM_DATALOADER_WORKERS={workers}"]
PEER = ["{data}", "--workload={name}", "--steps={steps}", "--workers={workers}"]
PEER_TINY = ["--device=cpu", "--tiny"]
OURS_TINY = ["config.MACHINE.DEVICE=cpu", "config.MODEL.TRUNK.RESNETS.DEPTH=18",
             "config.MODEL.TRUNK.RESNETS.WIDTH_MULTIPLIER=0.125", "config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=8",
             "config.DATA.TRAIN.DATA_LIMIT={images}"]
TINY_BATCH = 8


@dataclasses.dataclass(frozen=True)
class Workload:
    title: str
    batch: int
    images: int  # of Fashion-MNIST; 0: photographs, which are counted
    tiny: tuple


WORKLOADS = {
    "swav": Workload("SwAV, ResNet-50, 2x224 + 6x96", 128, 0, (
        "config.DATA.TRAIN.TRANSFORMS.0.size_crops=[32,16]",
        'config.MODEL.HEAD.PARAMS=[["swav_head",{"dims":[64,64,128],"use_bn":True,"num_clusters":[16]}]]')),
    "moco": Workload("MoCo v2, ResNet-50, 2x224", 256, 0, (
        "config.DATA.TRAIN.TRANSFORMS.1.size=32", "config.LOSS.moco_loss.queue_size=32",
        'config.MODEL.HEAD.PARAMS=[["mlp",{"dims":[64,64],"use_relu":True,"skip_last_layer_relu_bn":False}],'
        '["mlp",{"dims":[64,128]}]]')),
    "simclr": Workload("SimCLR, ResNet-18, 2x32", 512, 60000, (
        "config.DATA.TRAIN.TRANSFORMS.1.size=16",
        'config.MODEL.HEAD.PARAMS=[["mlp",{"dims":[64,64],"use_relu":True,"skip_last_layer_relu_bn":False}],'
        '["mlp",{"dims":[64,128]}]]')),
}


def parse_memory(text):
    """MiB of the lines that nvidia-smi prints for one GPU; None where it says nothing."""
    words = text.split()
    return float(words[0]) if words and words[0].isdigit() else None


def device_memory(gpu):
    query = ["nvidia-smi", f"--id={gpu}", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        return parse_memory(subprocess.run(query, capture_output=True, text=True, check=False).stdout)
    except OSError:
        return None


class PeakDeviceMemory(threading.Thread):
    """Polls the memory in use until stop(), which returns the most above what was in use at first."""

    def __init__(self, read):
        super().__init__(daemon=True)
        self.read = read
        self.before = self.peak = read()
        self.stopped = threading.Event()

    def run(self):
        while not self.stopped.wait(POLL_S):
            self.peak = max(self.peak, self.read() or 0.0)

    def stop(self):
        self.stopped.set()
        self.join()
        return self.peak - self.before


def measure_on_device(measure_once, gpu):
    """What `measure_once` returns, and the GPU's memory; `gpu` None: without one."""
    if gpu is None:
        return {**measure_once(), "device": 0.0}
    memory = PeakDeviceMemory(lambda: device_memory(gpu))
    memory.start()
    result = measure_once()
    return {**result, "device": memory.stop()}


def epochs_of(steps, images, batch):
    """How many epochs of whole batches make at least so many steps."""
    return -(-steps // (images // batch))


def shares(runs):
    return [run["wait"] / run["ms"] for run in runs]


def verdicts(name, ratio, share, rate):
    """The goals beside what was measured."""
    goals = [(f"{ratio:.2f} times the peer", f"{GOAL_RATIO}", ratio >= GOAL_RATIO),
             (f"data wait {100 * share:.1f} % at most", f"below {100 * GOAL_WAIT:.0f} %", share < GOAL_WAIT)]
    if name == "swav":
        goals.append((f"{rate:.0f} images/s", f"{GOAL_SWAV_RATE}", rate >= GOAL_SWAV_RATE))
    return [f"goal {goal}: {found}: {'met' if is_met else 'missed'}" for found, goal, is_met in goals]


def report(name, ours, peer, with_goals=True):
    """The comparison as text; ratios above 1 are in our favour."""
    rate, peer_rate = median(ours, "rate"), median(peer, "rate")
    waits = [median([{"share": share} for share in shares(runs)], "share") for runs in (ours, peer)]
    lines = [WORKLOADS[name].title, f"{'median of ' + str(len(ours)):20}{'ours':>10}{'peer':>10}{'ratio':>8}",
             f"{'images/s':20}{rate:10.1f}{peer_rate:10.1f}{rate / peer_rate:8.2f}",
             f"{'data wait, at most':20}{100 * waits[0]:9.1f}%{100 * waits[1]:9.1f}%"]
    for key, label in (("device", "peak GPU MiB"), ("pss", "peak PSS MB")):
        memory, peer_memory = median(ours, key), median(peer, key)
        ratio = f"{peer_memory / memory:8.2f}" if memory else ""
        lines.append(f"{label:20}{memory:10.0f}{peer_memory:10.0f}{ratio}")
    for key, label, digits in (("rate", "images/s", 1), ("ms", "ms/step", 1), ("device", "peak GPU MiB", 0)):
        spread = ", ".join(f"{who} {min(r[key] for r in runs):.{digits}f}-{max(r[key] for r in runs):.{digits}f}"
                           for who, runs in (("ours", ours), ("peer", peer)))
        lines.append(f"range of {label}: {spread}")
    return "\n".join(lines + (verdicts(name, rate / peer_rate, waits[0], rate) if with_goals else []))


def compare(name, args, gpu):
    workload = WORKLOADS[name]
    batch = TINY_BATCH if args.tiny else workload.batch
    data = args.fashion_mnist if workload.images else args.photos
    images = workload.images or sum(1 for _ in data.rglob("*.jpg"))
    if args.tiny:
        images = min(images, args.steps * batch)
    if images < batch:
        raise SystemExit(f"{data} has {images} JPEGs, expected at least {batch}")
    values = {"program": args.program, "config": f"bench/{name}_gpu_peer", "name": name, "data": data.resolve(),
              "steps": args.steps, "epochs": epochs_of(args.steps, images, batch), "workers": args.workers,
              "images": images}
    peer_command = ([args.python, str(args.peer)] + fill(PEER, **values) + (PEER_TINY if args.tiny else []) +
                    args.peer_option)

    def run_ours():
        with tempfile.TemporaryDirectory() as run:
            command = fill(OURS + (OURS_TINY if args.tiny else []), **values, run=run)
            command += (list(workload.tiny) if args.tiny else []) + args.ours
            read = functools.partial(read_ours, run, batch=batch, warm_up=WARM_UP_STEPS)
            return measure_on_device(lambda: measure_by_clock(command, read), gpu)

    def run_peer():
        return measure_on_device(lambda: measure(peer_command, read_peer), gpu)

    print(report(name, *take_turns(args.runs, run_ours, run_peer, "rate", "images/s"), not args.tiny), flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", default="bazel-bin/ssl/tools/ssl_main", help="ours, built with --config=cuda")
    parser.add_argument("--peer", default=pathlib.Path(__file__).with_name("peer_gpu.py"), help="the peer's script")
    parser.add_argument("--peer-option", action="append", default=[],
                        help="another argument of the peer: --loader=resident")
    parser.add_argument("--python", required=True, help="Python that has the peer's packages")
    parser.add_argument("--photos", required=True, type=pathlib.Path, help="folder of JPEGs")
    parser.add_argument("--fashion-mnist", required=True, type=pathlib.Path, help="folder of the Fashion-MNIST files")
    parser.add_argument("--workload", choices=sorted(WORKLOADS), action="append", help="one of the three; default: all")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="of both loaders")
    parser.add_argument("--gpu", type=int, default=0, help="index of the GPU, as nvidia-smi counts")
    parser.add_argument("--tiny", action="store_true", help="without a GPU: shows that everything starts, and no more")
    parser.add_argument("ours", nargs="*", help="more arguments for our command")
    args = parser.parse_args()
    if args.steps < WARM_UP_STEPS + 10:
        parser.error(f"--steps is {args.steps}, expected at least {WARM_UP_STEPS + 10}: {WARM_UP_STEPS} do not count")
    return parser, args


def main():
    parser, args = parse()
    gpu = None if args.tiny else args.gpu
    if gpu is not None:
        os.environ.update(CUDA_DEVICE_ORDER="PCI_BUS_ID", CUDA_VISIBLE_DEVICES=str(gpu))
        if device_memory(gpu) is None:
            parser.error(f"nvidia-smi says nothing about the memory of GPU {gpu}; without a GPU there is --tiny alone")
    for name in args.workload or WORKLOADS:
        compare(name, args, gpu)


if __name__ == "__main__":
    main()
