# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/timm: small transformers of timm, with weights, features and gradients.

    python3 timm_golden.py FOLDER      (timm 1.0.31, torch 2.11)

Each case has the weights of a network under the names of its state and, by step, images, what they give and, in the
first two, the gradients of sum(output^2 + output^3). Values are those of float64, with how far float32 is from them.
Positions for other resolutions than the network's are interpolated as in VISSL: timm smooths them besides.
"""
import json
import pathlib
import re
import sys

import torch
from timm.models.vision_transformer import VisionTransformer
from timm.models.xcit import Xcit

from golden_set import Tensors

SEED = 20231123


def uniform(generator, shape, low, high):
    return torch.rand(shape, generator=generator) * (high - low) + low


def weight_of(name, tensor, generator):
    """Large enough for attention to be uneven."""
    if name.endswith("running_var") or (tensor.dim() == 1 and name.endswith("weight")):
        return uniform(generator, tensor.shape, 0.5, 1.5)
    if tensor.dim() < 2:
        return uniform(generator, tensor.shape, -0.2, 0.2)
    fan_in = tensor[0].numel() if tensor.shape[0] > 1 else 3
    bound = (3 / fan_in) ** 0.5
    return uniform(generator, tensor.shape, -bound, bound)


class Writer:
    def __init__(self):
        self.tensors = Tensors(None)
        self.cases = []

    def add(self, tensor):
        kinds = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64"}
        tensor = tensor.detach().contiguous()
        return self.tensors.add_bytes(kinds[tensor.dtype], list(tensor.shape), tensor.numpy().tobytes())

    def output(self, double, single):
        return {"tensor": self.add(double), "absmax": float(double.detach().abs().max()),
                "f32_dev": float((double - single.double()).detach().abs().max())}

    def add_case(self, name, op, params, weights, images, run):
        """run(weights, images) gives outputs by name; leaf weights get gradients."""
        steps = []
        for i, batch in enumerate(images):
            outputs = [of_type(run, weights, batch, dtype, i < 2) for dtype in (torch.float64, torch.float32)]
            steps.append({"inputs": {"images": self.add(batch)},
                          "outputs": {key: self.output(outputs[0][key], outputs[1][key]) for key in outputs[0]}})
        self.cases.append({"name": name, "op": op, "params": params,
                           "inputs": {key: self.add(value) for key, value in weights.items()}, "steps": steps})

    def write(self, folder, category, doc):
        (folder / f"{category}.json").write_text(json.dumps({"category": category, "doc": doc, "cases": self.cases}))
        self.tensors.write(folder / f"{category}.safetensors")
        return {"category": category, "file": f"{category}.json", "tensors": f"{category}.safetensors",
                "cases": len(self.cases)}


def of_type(run, weights, images, dtype, with_gradients):
    leaves = {name: value.detach().to(dtype, copy=True).requires_grad_("running_" not in name)
              for name, value in weights.items()}
    outputs = run(leaves, images.to(dtype))
    if not with_gradients:
        return outputs
    (outputs["output"] ** 2 + outputs["output"] ** 3).sum().backward()
    gradients = {name: leaf.grad for name, leaf in leaves.items() if leaf.requires_grad}
    return {**outputs, **{f"grad.{name}": grad for name, grad in gradients.items() if grad is not None}}


def set_weights(model, weights):
    """Tensors of a graph in the place of the module's own."""
    for name, value in weights.items():
        place, _, last = name.rpartition(".")
        owner = model.get_submodule(place)
        if last in owner._parameters:
            del owner._parameters[last]
            setattr(owner, last, value)
        else:
            owner._buffers[last] = value


def vissl_positions(embedding, prefix, side, target):
    """VISSL's interpolate_pos_encoding (DINO's)."""
    if side == target:
        return embedding
    places = embedding[:, prefix:].reshape(1, side, side, -1).permute(0, 3, 1, 2)
    places = torch.nn.functional.interpolate(places, scale_factor=target / side, mode="bicubic")
    return torch.cat((embedding[:, :prefix], places.permute(0, 2, 3, 1).flatten(1, 2)), dim=1)


def run_vision_transformer(config, prefix):
    def build(side):
        return VisionTransformer(
            img_size=side, patch_size=config["PATCH_SIZE"], embed_dim=config["HIDDEN_DIM"], depth=config["NUM_LAYERS"],
            num_heads=config["NUM_HEADS"], mlp_ratio=config["MLP_DIM"] / config["HIDDEN_DIM"],
            qkv_bias=config["QKV_BIAS"], num_classes=0, class_token=prefix == 1,
            global_pool="token" if prefix else "avg", fc_norm=False)

    def run(weights, images):
        model = build(images.shape[-1]).to(images.dtype).eval()
        patch = config["PATCH_SIZE"]
        positions = vissl_positions(weights["pos_embed"], prefix, config["IMAGE_SIZE"] // patch,
                                    images.shape[-1] // patch)
        set_weights(model, {**weights, "pos_embed": positions})
        states = []
        for block in model.blocks:
            block.register_forward_hook(lambda module, inputs, output: states.append(output))
        output = model(images)
        tokens = [model.norm(state) for state in states]
        side = images.shape[-1] // patch
        features = {"output": output, "lastBLK": tokens[-1], "concatBLK2": torch.cat(tokens[-2:], -1),
                    "lastMAP": tokens[-1][:, prefix:].unflatten(1, (side, side)).permute(0, 3, 1, 2)}
        if prefix:
            features |= {"lastCLS": tokens[-1][:, 0], "blkCLS0": tokens[0][:, 0],
                         "concatCLS2": torch.cat([state[:, 0] for state in tokens[-2:]], -1)}
        else:
            features |= {"lastPOOL": tokens[-1].mean(1),
                         "concatPOOL2": torch.cat([state.mean(1) for state in tokens[-2:]], -1)}
        return features

    return build, run


def add_vision_transformers(writer):
    generator = torch.Generator().manual_seed(SEED)
    small = {"IMAGE_SIZE": 32, "PATCH_SIZE": 8, "HIDDEN_DIM": 32, "NUM_LAYERS": 2, "NUM_HEADS": 4, "MLP_DIM": 64}
    for name, config, prefix, sides in [
            ("class_token", {**small, "QKV_BIAS": False}, 1, (32, 48, 24)),
            ("qkv_bias", {**small, "HIDDEN_DIM": 16, "QKV_BIAS": True, "MLP_DIM": 48}, 1, (32,)),
            ("mean", {**small, "HIDDEN_DIM": 16, "QKV_BIAS": True, "USE_CLASS_TOKEN": False}, 0, (32,))]:
        build, run = run_vision_transformer(config, prefix)
        weights = {key: weight_of(key, value, generator) for key, value in build(32).state_dict().items()}
        images = [uniform(generator, (2, 3, side, side), -2, 2) for side in sides]
        writer.add_case(name, "vision_transformer", {"config": config}, weights, images, run)


def xcit_state(weights):
    """The authors' names, which VISSL has, as timm's."""
    state = {}
    for name, value in weights.items():
        name = name.replace("pos_embeder.", "pos_embed.")
        if "cls_attn_blocks" in name and ".qkv." in name:
            state |= {name.replace("qkv", part): value.chunk(3)[i] for i, part in enumerate("qkv")}
        else:
            state[name] = value
    return state


def authors_shapes(model):
    """The names and shapes of the authors' code for timm's model."""
    shapes = {}
    for name, value in model.state_dict().items():
        name = name.replace("pos_embed.", "pos_embeder.")
        match = re.fullmatch(r"(cls_attn_blocks\.\d+\.attn\.)([qkv])(\..*)", name)
        if match is None:
            shapes[name] = value
        elif match[2] == "q":
            shapes[f"{match[1]}qkv{match[3]}"] = torch.cat([value] * 3)
    return shapes


def run_xcit(config, training):
    def build():
        return Xcit(img_size=64, patch_size=config["PATCH_SIZE"], num_classes=0, embed_dim=config["HIDDEN_DIM"],
                    depth=config["NUM_LAYERS"], num_heads=config["NUM_HEADS"], mlp_ratio=config["MLP_RATIO"],
                    qkv_bias=config["QKV_BIAS"], eta=config["ETA"], tokens_norm=config["TOKENS_NORM"])

    def run(weights, images):
        model = build().to(images.dtype).train(training)
        set_weights(model, xcit_state(weights))
        tokens = model.forward_features(images)
        side = images.shape[-1] // config["PATCH_SIZE"]
        return {"output": tokens[:, 0], "lastCLS": tokens[:, 0],
                "lastMAP": tokens[:, 1:].unflatten(1, (side, side)).permute(0, 3, 1, 2),
                **{f"moved.{name}": value for name, value in weights.items() if training and "running_" in name}}

    return build, run


def add_xcits(writer):
    generator = torch.Generator().manual_seed(SEED + 1)
    small = {"PATCH_SIZE": 8, "HIDDEN_DIM": 16, "NUM_LAYERS": 2, "NUM_HEADS": 2, "MLP_RATIO": 2.0,
             "DROP_PATH_RATE": 0.0, "ETA": 1.0, "QKV_BIAS": True, "TOKENS_NORM": True}
    for name, config, training, sides in [
            ("patch_8", small, False, (32, 48)),
            ("training", small, True, (32,)),
            ("patch_16", {**small, "PATCH_SIZE": 16, "NUM_LAYERS": 1, "NUM_HEADS": 4, "QKV_BIAS": False,
                          "TOKENS_NORM": False}, False, (64,))]:
        build, run = run_xcit(config, training)
        weights = {key: weight_of(key, value, generator) for key, value in authors_shapes(build()).items()
                   if not key.endswith("num_batches_tracked")}
        images = [uniform(generator, (2, 3, side, side), -2, 2) for side in sides]
        writer.add_case(name, "xcit", {"config": config, "training": training}, weights, images, run)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    transformers, xcits = Writer(), Writer()
    add_vision_transformers(transformers)
    add_xcits(xcits)
    entries = [transformers.write(folder, "vision_transformer",
                                  "timm's VisionTransformer: tokens of blocks behind the last norm, by VISSL's names."),
               xcits.write(folder, "xcit", "timm's Xcit, under the names of the authors' code.")]
    (folder / "index.json").write_text(json.dumps({"categories": entries}, indent=1) + "\n")


if __name__ == "__main__":
    main()
