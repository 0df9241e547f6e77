# SPDX-License-Identifier: Apache-2.0
"""A reader of TensorBoard's event files, written from the format's description and used by nothing but tests.

  record := length (8 bytes), masked CRC-32C of these, payload, masked CRC-32C of the payload; little endian
  Event { 2: int64 step; 5: Summary; 7: SessionLog }  Summary { 1: repeated Value }  Value { 1: string tag }
  SessionLog { 1: status, START = 1 }
"""
import struct

_START = 1


def _make_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _make_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def masked_crc(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def read_records(path):
    """(payloads, bytes of a torn tail). A record that is complete but whose CRC is wrong is an error."""
    data, at, payloads = path.read_bytes(), 0, []
    while at < len(data):
        if at + 12 > len(data):
            return payloads, len(data) - at
        length, crc = struct.unpack_from("<QI", data, at)
        assert crc == masked_crc(data[at:at + 8]), f"{path}: CRC of the length at {at} is wrong"
        end = at + 12 + length + 4
        if end > len(data):
            return payloads, len(data) - at
        payload = data[at + 12:end - 4]
        assert struct.unpack_from("<I", data, end - 4)[0] == masked_crc(payload), f"{path}: CRC of the record at {at} is wrong"
        payloads.append(payload)
        at = end
    return payloads, 0


def _varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at


_FIXED = {1: 8, 5: 4}


def _fields(data):
    """(number, value) of each field of a protocol buffer; values are numbers or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
        else:
            size, at = (_FIXED[kind], at) if kind in _FIXED else _varint(data, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def _decode(payload):
    """(step, tags, whether a process starts here)."""
    step, tags, starts = 0, [], False
    for number, value in _fields(payload):
        if number == 2:
            step = value
        elif number == 5:
            tags += [tag.decode() for _, entry in _fields(value) for field, tag in _fields(entry) if field == 1]
        elif number == 7:
            starts = (1, _START) in list(_fields(value))
    return step, tags, starts


def shown_steps(payloads):
    """{tag: steps that TensorBoard shows}: the start of a process drops older events of its step and later ones.

    The step before is that of the checkpoint from which the process goes on: what it reports there once more, such as
    a test phase that comes after the checkpoint, counts once."""
    shown, resumed_at = {}, None
    for payload in payloads:
        step, tags, starts = _decode(payload)
        if starts:
            shown = {tag: [s for s in steps if s < step] for tag, steps in shown.items()}
            resumed_at = step - 1
        for tag in tags:
            steps = shown.setdefault(tag, [])
            if step != resumed_at or step not in steps:
                steps.append(step)
    return shown


class EventSummary:
    """All event files of a run, in the order in which TensorBoard reads them."""

    def __init__(self, folder):
        self.payloads, self.torn_tails = [], 0
        self.files = sorted(folder.iterdir()) if folder.is_dir() else []
        for path in self.files:
            payloads, torn = read_records(path)
            self.payloads += payloads
            self.torn_tails += torn > 0

    def check_no_step_twice(self):
        for tag, steps in shown_steps(self.payloads).items():
            assert len(steps) == len(set(steps)), f"{tag}: steps {steps} hold one twice"

    def check_all_steps(self, tag, last, may_be_hidden=()):
        """Steps 1 to `last` are shown, but for those that the start of a process may hide."""
        steps = shown_steps(self.payloads).get(tag, [])
        missing = set(range(1, last + 1)) - set(steps) - set(may_be_hidden)
        assert not missing and steps == sorted(set(steps)), f"{tag}: steps {steps}, expected each from 1 to {last} once"
