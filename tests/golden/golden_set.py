# SPDX-License-Identifier: Apache-2.0
"""The tensors of a golden category: a safetensors file, read, extended and written with plain Python."""
import collections
import json
import struct

Tensor = collections.namedtuple("Tensor", "dtype shape data")

PACKING = {"F32": "f", "F64": "d", "I64": "q", "U8": "B"}


def flatten(values):
    if not isinstance(values, list):
        return [values]
    return [item for value in values for item in flatten(value)]


def shape_of(values):
    return [len(values)] + shape_of(values[0]) if isinstance(values, list) else []


def rounded_to_float(rows):
    return [[struct.unpack("<f", struct.pack("<f", value))[0] for value in row] for row in rows]


class Tensors:
    """By name. Values are kept as the bytes of the file."""

    def __init__(self, path):
        self._tensors = {}
        if path is None:
            return
        content = path.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        data = content[8 + length:]
        for name, entry in json.loads(content[8:8 + length]).items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                self._tensors[name] = Tensor(entry["dtype"], entry["shape"], data[begin:end])

    def __len__(self):
        return len(self._tensors)

    def get(self, name):
        return self._tensors[name]

    def add(self, values, dtype):
        """Nested lists of numbers. Returns the new tensor's name."""
        flat = flatten(values)
        return self.add_bytes(dtype, shape_of(values), struct.pack(f"<{len(flat)}{PACKING[dtype]}", *flat))

    def add_bytes(self, dtype, shape, data):
        name = f"added/{len(self._tensors)}"
        self._tensors[name] = Tensor(dtype, shape, data)
        return name

    def rename(self, cases):
        """Gives every tensor another name, in the cases as well."""
        names = {name: f"t{position}" for position, name in enumerate(reversed(list(self._tensors)))}
        self._tensors = {names[name]: tensor for name, tensor in self._tensors.items()}
        for case in cases:
            rename_inputs(case, names)
            for step in case["steps"]:
                rename_inputs(step, names)
                for name, output in step["outputs"].items():
                    if "tensor" in output:
                        step["outputs"][name] = dict(output, tensor=names[output["tensor"]])

    def write(self, path):
        header, offset = {}, 0
        for name, tensor in self._tensors.items():
            header[name] = {"dtype": tensor.dtype, "shape": tensor.shape,
                            "data_offsets": [offset, offset + len(tensor.data)]}
            offset += len(tensor.data)
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(t.data for t in self._tensors.values()))


def rename_inputs(place, names):
    inputs = place.get("inputs") or {}
    place["inputs"] = {key: names.get(value, value) if isinstance(value, str) else value
                       for key, value in inputs.items()}
