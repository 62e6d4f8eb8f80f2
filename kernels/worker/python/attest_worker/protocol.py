"""The frames between attest and this process, as PROTOCOL.md lays them out byte by byte."""

import enum
import os
import socket
import struct

MAGIC = 0x54544157
VERSION = 1
SOCKET_FD = 3
MEMORY_FD = 4
FRAME_BYTES_MAX = 128 * 1024
TEXT_BYTES_MAX = 4096

HEADER = struct.Struct("<IHHII")  # magic, version, kind, size, sequence
HELLO = struct.Struct("<QII")  # memory_bytes, abi_version, reserved
PROBLEM = struct.Struct("<7q4id2qd2id2q2idQ3q2iII")
CALL = struct.Struct("<QQII")  # memory_bytes, workspace_bytes, operation, tensor_count
TENSOR = struct.Struct("<HBBBBHQQQ4q4q")
ANSWER = struct.Struct("<IIQ")  # yes, text_bytes, workspace_bytes
REPLY = struct.Struct("<IiQQII")  # status, code, workspace_bytes, outputs, text_bytes, reserved
TEXT = struct.Struct("<II")  # text_bytes, reserved

ROLES = (
    "q k v o lse mask lens_q lens_kv cu_seqlens_q cu_seqlens_kv block_table positions "
    "alibi_slopes sinks k_scale v_scale k_new v_new d_o d_q d_k d_v d_mask d_sinks dropout_keep"
).split()
FIELDS = (
    "batch heads_q heads_kv len_q len_kv dim_qk dim_v format_q format_kv format_o causal scale "
    "window_left window_right softcap mask_kind rope_kind rope_base rope_dims rope_offset alibi "
    "sink dropout_p dropout_seed page_size cache_len splits want_lse want_grad flags call_number"
).split()

FLAG_PACKED, FLAG_RING, FLAG_KEYS_ROTATED = 1, 2, 4


class Kind(enum.IntEnum):
    HELLO = 1
    MANIFEST = 2
    LOAD_ERROR = 3
    SUPPORTS = 4
    ANSWER = 5
    CALL = 6
    REPLY = 7


class Status(enum.IntEnum):
    DONE = 0
    ERROR = 1
    WORKSPACE = 2
    EXCEPTION = 3
    MEMORY = 4
    ABSENT = 5


class Format(enum.IntEnum):
    """The values of problem.format_q, format_kv and format_o."""

    f64 = 0
    f32 = 1
    f16 = 2
    bf16 = 3


class Problem:
    """attest_problem: the same fields by the same names. Equal problems are one object."""

    __slots__ = (*FIELDS, "bytes")
    _known = {}

    @classmethod
    def of(cls, data):
        data = bytes(data)
        problem = cls._known.get(data)
        if problem is None:
            if len(cls._known) >= 256:
                cls._known.clear()
            problem = cls._known[data] = cls(data)
        return problem

    def __init__(self, data):
        self.bytes = data
        for name, value in zip(FIELDS, PROBLEM.unpack(data)):
            setattr(self, name, Format(value) if name.startswith("format_") else value)

    def __repr__(self):
        return "Problem(" + ", ".join(f"{name}={getattr(self, name)!r}" for name in FIELDS) + ")"


class Connection:
    """This process's end of the socket. It ends the process where the host is gone."""

    def __init__(self):
        self._socket = socket.socket(fileno=SOCKET_FD)
        self._buffer = bytearray(FRAME_BYTES_MAX)

    def receive(self):
        """(kind, sequence, body) of the next frame."""
        size = self._socket.recv_into(self._buffer)
        if size < HEADER.size:
            os._exit(0)
        magic, version, kind, _, sequence = HEADER.unpack_from(self._buffer)
        if magic != MAGIC or version != VERSION:
            os._exit(0)
        return kind, sequence, memoryview(self._buffer)[HEADER.size : size]

    def send(self, kind, sequence, body, text=b""):
        size = HEADER.size + len(body) + len(text)
        header = HEADER.pack(MAGIC, VERSION, kind, size, sequence)
        try:
            self._socket.send(header + body + text)
        except OSError:
            os._exit(0)

    def send_text(self, kind, sequence, text):
        data = text.encode("utf-8", "replace")[: FRAME_BYTES_MAX - HEADER.size - TEXT.size]
        self.send(kind, sequence, TEXT.pack(len(data), 0), data)


def cut(text):
    """The bytes of a reason or an error, not too long, whole characters."""
    data = text.encode("utf-8", "replace")[:TEXT_BYTES_MAX]
    return data.decode("utf-8", "ignore").encode("utf-8")
