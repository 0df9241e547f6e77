# SPDX-License-Identifier: Apache-2.0
"""Makes other sets of golden numbers of the same schema, to try the golden tests themselves.

    vary_golden.py FROM TO           a valid set: a test that fails on it assumes what the schema does not promise
    vary_golden.py FROM TO --break SEED   a malformed set: a test may fail on it, with a message, but not crash;
                                          with seed 0, files that cannot be read

A valid set has the cases of FROM in another order, under one name, with other names of tensors, and cases that differ
in what plain Python can compute anew: sizes, counts, names, truth values as 0/1 or false/true, one step or several.
It also has cases that the schema allows and this program cannot express; tests name them and go on.
"""
import argparse
import copy
import json
import math
import pathlib
import random
import shutil
import struct

import golden_set

FLAGS = {"hard", "use_double", "use_bn", "normalize_output", "nesterov"}


def one_step(name, op, params, outputs, inputs=None):
    return {"name": name, "op": op, "params": params, "inputs": {},
            "steps": [{"inputs": inputs or {}, "outputs": outputs}]}


def scalar(value):
    return {"scalar": {"f64": value, "f32": struct.unpack("<f", struct.pack("<f", value))[0]}}


def sinkhorn_rows(scores, epsilon, iterations):
    """The assignments of Sinkhorn-Knopp in double precision; scores: [samples][prototypes]."""
    top = max(max(row) for row in scores) / epsilon
    rows = [[math.exp(value / epsilon - top) for value in row] for row in scores]
    samples, prototypes = len(rows), len(rows[0])
    total = sum(map(sum, rows))
    rows = [[value / total for value in row] for row in rows]
    for _ in range(iterations):
        sums = [sum(row[k] for row in rows) for k in range(prototypes)]
        rows = [[value / sums[k] / prototypes for k, value in enumerate(row)] for row in rows]
        rows = [[value / sum(row) / samples for value in row] for row in rows]
    return [[value / sum(row) for value in row] for row in rows]


def vary_sinkhorn(cases, tensors, rng):
    for samples, prototypes in ((1, 3), (5, 2), (7, 7), (13, 31)):
        scores = [[rng.uniform(-1, 1) for _ in range(prototypes)] for _ in range(samples)]
        scores = golden_set.rounded_to_float(scores)
        expected = sinkhorn_rows(scores, 0.05, 4)
        case = one_step("", "sinkhorn", {"num_iters": 4, "epsilon": 0.05, "hard": 0, "use_double": 0}, {
            "assignments": {"tensor": tensors.add(expected, "F64"), "f32_dev": 1e-6, "absmax": 1.0}},
            {"scores": tensors.add(scores, "F32")})
        cases.append(case)


def phases(epochs, every, test_model, test_only):
    if test_only:
        return [0] * epochs if test_model else []
    result = []
    for epoch in range(epochs):
        result.append(1)
        if test_model and (epoch % every == 0 or epoch == epochs - 1):
            result.append(0)
    return result


def vary_phases(cases, tensors, rng):
    for case in list(cases):
        params = dict(case["params"], num_epochs=11, TEST_EVERY_NUM_EPOCH=4)
        expected = phases(11, 4, params["TEST_MODEL"], params["TEST_ONLY"])
        if params["TEST_ONLY"] and not params["TEST_MODEL"]:
            continue  # the original leaves these to its caller
        outputs = dict(case["steps"][0]["outputs"], phases={"list": expected})
        cases.append(one_step("", "phases", params, outputs))


def vary_schedules(cases, tensors, rng):
    where = [i / 7 for i in range(7)]

    def add(config, params, value, interval):
        cases.append(one_step("", "schedule", dict(params, config=config), {
            "where": {"list": where}, "values": {"list": [value(w) for w in where]},
            "update_interval": {"json": interval}}))

    add({"name": "linear", "start_value": 2.0, "end_value": 5.0}, {"num_epochs": 3}, lambda w: 2 + 3 * w, "step")
    add({"name": "cosine", "start_value": 1.5, "end_value": 0.5, "num_epochs": 9}, {},
        lambda w: 0.5 + 0.5 * (1 + math.cos(math.pi * w)), "step")
    # The schedule's own num_epochs counts.
    add({"name": "multistep", "values": [3, 2, 1], "milestones": [150, 250], "num_epochs": 300}, {},
        lambda w: 3 - (int((w + 1e-6) * 300) >= 150) - (int((w + 1e-6) * 300) >= 250), "epoch")
    parts = [{"name": "linear", "start_value": 0.0, "end_value": 1.0, "num_epochs": 5},
             {"name": "constant", "value": 1.0, "num_epochs": 5}]
    composite = {"name": "composite", "schedulers": parts, "lengths": [0.5, 0.5], "num_epochs": 5,
                 "interval_scaling": ["rescaled", "rescaled"]}
    add(composite, {"num_epochs": 5}, lambda w: min(2 * w, 1.0), "step")
    beyond = copy.deepcopy(composite)
    beyond["schedulers"][0]["num_epochs"] = 3
    add(beyond, {"num_epochs": 5}, lambda w: 0.0, "step")


def vary_samplers(cases, tensors, rng):
    for size, world, rank in ((17, 4, 3), (6, 1, 0)):
        padded = [i % size for i in range(-(-size // world) * world)]
        indices = padded[rank::world]
        params = {"dataset_size": size, "world": world, "rank": rank, "seed": 5, "epoch": 2, "shuffle": 0,
                  "drop_last": 0}
        cases.append(one_step("", "distributed_sampler", params, {
            "indices": {"list": indices}, "num_samples": {"int": len(indices)}}))


def vary_meters(cases, tensors, rng):
    for case in [case for case in cases if case["op"] == "accuracy_list_meter"]:
        twice = copy.deepcopy(case)
        twice["params"].update(num_meters=2, meter_names=["res5", "res5"])
        for step in twice["steps"]:
            if "output0" in step["inputs"]:
                step["inputs"]["output1"] = step["inputs"]["output0"]
            for output in step["outputs"].values():
                output["json"] = {metric: {"res5": 2 * list(values.values())}
                                  for metric, values in output["json"].items()}
        cases.append(twice)


def vary_images(cases, tensors, rng):
    height, width = 9, 14
    pixels = [[[rng.randrange(256) for _ in range(3)] for _ in range(width)] for _ in range(height)]
    source = {"image": tensors.add(pixels, "U8")}

    def add(op, params, result):
        image = {"tensor": tensors.add(result, "U8")}
        cases.append(one_step("", op, params, {"image": image}, source))

    add("hflip", {}, [row[::-1] for row in pixels])
    add("solarize", {"threshold": 77.0}, [[[255 - v if v >= 77 else v for v in p] for p in row] for row in pixels])
    add("posterize", {"bits": 3}, [[[v & 0xE0 for v in p] for p in row] for row in pixels])
    add("center_crop", {"size": [5, 4]}, [row[5:9] for row in pixels[2:7]])
    add("resized_crop", {"box": [1, 2, 6, 7], "size": [6, 7], "interpolation": "bilinear"},
        [row[2:9] for row in pixels[1:7]])
    add("resized_crop", {"box": [1, 2, 6, 7], "size": [12, 14], "interpolation": "nearest"}, pixels)  # beyond
    for case in [case for case in cases if case["op"] == "grayscale"][:1]:
        grey = copy.deepcopy(case)
        grey["params"]["num_output_channels"] = 1
        result = tensors.get(case["steps"][0]["outputs"]["image"]["tensor"])
        shape = result.shape[:2] + [1]
        grey["steps"][0]["outputs"]["image"] = {"tensor": tensors.add_bytes("U8", shape, result.data[::3])}
        cases.append(grey)


def vary_crops(cases, tensors, rng):
    params = {"seed": 1, "width": 40, "height": 400, "scale": [0.9, 1.0], "ratio": [0.5, 2.0]}
    cases.append(one_step("", "rrc_boxes", params, {"boxes": {"list": [[160, 0, 80, 40]] * 3}}))
    params = {"total_num_crops": 3, "num_crops": [1, 2], "size_crops": [31, 7],
              "crop_scales": [[0.2, 1.0], [0.1, 0.3]]}
    cases.append(one_step("", "multicrop_sizes", params, {"sizes": {"list": [[31, 31], [7, 7], [7, 7]]}}))


def vary_grad_clip(cases, tensors, rng):
    gradient = golden_set.rounded_to_float([[rng.uniform(-1, 1) for _ in range(4)]])
    norm = math.sqrt(sum(v * v for v in gradient[0]))
    factor = min(1.0, 0.25 / (norm + 1e-6))
    clipped = [[v * factor for v in gradient[0]]]
    cases.append(one_step("", "clip_grad_norm", {"norm_type": 2, "max_norm": 0.25}, {
        "norm": scalar(norm), "clipped_g0": {"tensor": tensors.add(clipped, "F64"), "f32_dev": 0.0, "absmax": 1.0}},
        {"g0": tensors.add(gradient, "F32")}))


def vary_ema(cases, tensors, rng):
    for case in [case for case in cases if case["op"] == "model_ema"]:
        case["inputs"] = {"init.x." + name[5:]: value for name, value in case["inputs"].items()}
        for step in case["steps"]:
            step["inputs"] = {"value.x." + name[6:]: value for name, value in step["inputs"].items()}
            step["outputs"] = {"ema.x." + name[4:]: value for name, value in step["outputs"].items()}


def vary_losses(cases, tensors, rng):
    """Two steps of a loss without state in one case."""
    for op in ("simclr_info_nce_loss", "barlow_twins_loss", "bce_logits_multiple_output_single_target"):
        case = next((case for case in cases if case["op"] == op), None)
        if case is not None:
            case["steps"].append(copy.deepcopy(case["steps"][0]))


def add_changed(op, **changes):
    """A copy of the first case of `op` with other parameters: cases that this program cannot express."""
    def vary(cases, tensors, rng):
        for case in [case for case in cases if case["op"] == op][:1]:
            other = copy.deepcopy(case)
            other["params"].update(changes)
            cases.append(other)
    return vary


def add_all(*varies):
    def vary(cases, tensors, rng):
        for one in varies:
            one(cases, tensors, rng)
    return vary


VARIES = {
    "crop_boxes": vary_crops,
    "ema": vary_ema,
    "grad_clip": vary_grad_clip,
    "image": vary_images,
    "infer": add_all(add_changed("infer_loss", loss="deepclusterv2_loss", config={"num_crops": 2}),
                     add_changed("infer_loss_error", loss="dino_loss", config={"num_crops": 2})),
    "losses": vary_losses,
    "meters": vary_meters,
    "models_forward": add_all(add_changed("trunk_small", widths=[4, 8, 8, 16]),
                              add_changed("trunk_small", layers=[1, 1, 1, 1]),
                              add_changed("trunk_recipe", trunk="vision_transformer")),
    "models_names": add_all(add_changed("torchvision", name="vit_b_16"), add_changed("trunk", trunk="convnext"),
                            add_changed("model", heads=[["dino_head", {"in_dim": 16}]])),
    "param_groups": add_changed("param_groups", optimizer={"param_group_constructor": "by_moon_phase"}),
    "phases": vary_phases,
    "samplers": vary_samplers,
    "schedules": vary_schedules,
    "sinkhorn": vary_sinkhorn,
    "swav_train": add_changed("swav_train", world_size=2),
    "train_steps": add_changed("train_steps", loss={"name": "dino_loss"}),
}


def as_flags(value):
    """0 and 1 of truth values as false and true."""
    if isinstance(value, dict):
        return {key: bool(item) if key in FLAGS and item in (0, 1) else as_flags(item) for key, item in value.items()}
    return value


def vary(category, cases, tensors, rng):
    if category in VARIES:
        VARIES[category](cases, tensors, rng)
    for case in cases:
        case.update(name="case", params=as_flags(case["params"]), note="a case among others")
    cases.reverse()


def break_value(rng, value):
    return rng.choice([None, "", "x", -1, 0, 3, 1e30, [], {}, [value], {"x": value}])


def break_output(rng):
    return rng.choice([{"int": 1}, {"list": [1, "x", None]}, {"json": {"a": []}}, {"scalar": {"f64": "nan"}}])


def break_case(case, rng):
    """Takes one thing away from a case, or puts something else in its place. The case can still be read."""
    step = rng.choice(case["steps"])
    inputs = case.get("inputs") or step["inputs"]
    place = rng.choice([case["params"], case["params"], inputs, step["inputs"], step["outputs"]])
    if not place:
        return
    key = rng.choice(sorted(place))
    if rng.random() < 0.4 or place is inputs or place is step["inputs"]:
        place[key + "_"] = place.pop(key)
    elif place is step["outputs"]:
        place[key] = break_output(rng)
    else:
        place[key] = break_value(rng, place[key])


def break_file(content, rng):
    """Something that no reader of the file can pass over."""
    case = rng.choice(content["cases"])
    rng.choice([lambda: case.pop("op"), lambda: case["steps"].clear(), lambda: case.update(steps=3),
                lambda: case["steps"][0].update(inputs={"x": "no tensor"}),
                lambda: case["steps"][0].update(outputs={"x": 3})])()


def make(source, target, damage_seed):
    rng = random.Random(damage_seed)
    index = json.loads((source / "index.json").read_text())
    target.mkdir(parents=True, exist_ok=True)
    for folder in ("files", "images"):
        if (source / folder).is_dir():
            shutil.copytree(source / folder, target / folder, dirs_exist_ok=True)
    for entry in index["categories"]:
        content = json.loads((source / entry["file"]).read_text())
        tensors = golden_set.Tensors(source / entry["tensors"] if entry.get("tensors") else None)
        if damage_seed is None:
            vary(entry["category"], content["cases"], tensors, rng)
            tensors.rename(content["cases"])
        else:
            for case in content["cases"]:
                break_case(case, rng)
            if damage_seed == 0:
                break_file(content, rng)
        entry["cases"] = len(content["cases"])
        if len(tensors) > 0:
            entry["tensors"] = entry["category"] + ".safetensors"
            tensors.write(target / entry["tensors"])
        (target / entry["file"]).write_text(json.dumps(content))
    (target / "index.json").write_text(json.dumps(index))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("target", type=pathlib.Path)
    parser.add_argument("--break", dest="damage_seed", type=int, default=None, metavar="SEED")
    args = parser.parse_args()
    make(args.source, args.target, args.damage_seed)


if __name__ == "__main__":
    main()
