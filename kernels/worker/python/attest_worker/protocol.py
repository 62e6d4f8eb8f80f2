"""The frames between attest and this process, as kernels/worker/PROTOCOL.md lays them out byte by byte."""

import enum
import os
import select
import socket
import struct

MAGIC = 0x54544157
VERSION = 2
SOCKET_FD = 3
MEMORY_FD = 4
CLOSED_EXIT = 97  # of a process whose kernel closed or replaced one of the two
FRAME_BYTES_MAX = 128 * 1024
TEXT_BYTES_MAX = 4096

HEADER = struct.Struct("<IHHII")  # magic, version, kind, size, sequence
HELLO = struct.Struct("<QII")  # memory_bytes, abi_version, text_bytes
SUPPORTS = struct.Struct("<II")  # text_bytes, reserved
CALL = struct.Struct("<QQII")  # memory_bytes, workspace_bytes, operation, tensor_count
TENSOR = struct.Struct("<HBBBBHQQQ4q4q")
ANSWER = struct.Struct("<IIQ")  # yes, text_bytes, workspace_bytes
REPLY = struct.Struct("<IiQQII")  # status, code, workspace_bytes, outputs, text_bytes, reserved
TEXT = struct.Struct("<II")  # text_bytes, missing

ROLES = (
    "q k v o lse mask lens_q lens_kv cu_seqlens_q cu_seqlens_kv block_table positions "
    "alibi_slopes sinks k_scale v_scale k_new v_new d_o d_q d_k d_v d_mask d_sinks dropout_keep "
    "d_slopes d_lse"
).split()


class Kind(enum.IntEnum):
    HELLO = 1
    MANIFEST = 2
    LOAD_ERROR = 3
    SUPPORTS = 4
    ANSWER = 5
    CALL = 6
    REPLY = 7
    AGAIN = 11


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

    _fields = ()  # (name, struct, offset, Format or int)
    _known = {}

    @classmethod
    def learn(cls, layout):
        """Takes attest's description of the fields: name, type, offset and words, a line each."""
        codes = {"i64": "<q", "u64": "<Q", "i32": "<i", "u32": "<I", "f64": "<d"}
        fields = []
        for line in layout.splitlines():
            name, kind, offset, *words = line.split()
            if name != "struct_size":
                meaning = Format if name.startswith("format_") else None
                fields.append((name, struct.Struct(codes[kind]), int(offset), meaning))
        cls._fields = tuple(fields)
        cls._known.clear()

    @classmethod
    def take(cls, body, features=""):
        """The problem that a frame's body begins with, and what follows it."""
        size = struct.unpack_from("<Q", body)[0]
        key = bytes(body[:size]), features
        problem = cls._known.get(key)
        if problem is None:
            if len(cls._known) >= 256:
                cls._known.clear()
            problem = cls._known[key] = cls(*key)
        return problem, body[size:]

    def __init__(self, data, features=""):
        self.features = tuple(features.split())  # given where supports() is asked
        for name, kind, offset, meaning in self._fields:
            value = kind.unpack_from(data, offset)[0]
            setattr(self, name, value if meaning is None else meaning(value))

    def __repr__(self):
        fields = (f"{name}={getattr(self, name)!r}" for name, *_ in self._fields)
        return "Problem(" + ", ".join(fields) + ")"


def _leads_to(descriptor):
    """Another file under its number is none of ours."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _ends():
    return _leads_to(SOCKET_FD), _leads_to(MEMORY_FD)


def _wait_for(event, milliseconds):
    """Whether it is there. POLLRDHUP: shutdown() of what is read leaves the file what it was; the other direction's shows
    when something is sent."""
    poll = select.poll()
    poll.register(SOCKET_FD, event)
    return any(seen & event for _, seen in poll.poll(milliseconds))


class Connection:
    """This process's end of the socket. It ends the process where the host is gone, or the kernel
    closed or replaced what a later call needs."""

    def __init__(self):
        self._socket = socket.socket(fileno=SOCKET_FD)
        self._buffer = bytearray(FRAME_BYTES_MAX)
        self._as_started = _ends()  # before any kernel's code

    def _insist(self, event, transfer, *arguments):
        """A kernel may have made the socket one that does not wait."""
        while True:
            try:
                return transfer(*arguments)
            except BlockingIOError:
                _wait_for(event, None)

    def receive(self):
        """(kind, sequence, body) of the next frame."""
        size = self._insist(select.POLLIN, self._socket.recv_into, self._buffer)
        if size < HEADER.size:
            os._exit(0)
        magic, version, kind, _, sequence = HEADER.unpack_from(self._buffer)
        if magic != MAGIC or version != VERSION:
            os._exit(0)
        return kind, sequence, memoryview(self._buffer)[HEADER.size : size]

    def send(self, kind, sequence, body, text=b""):
        size = HEADER.size + len(body) + len(text)
        header = HEADER.pack(MAGIC, VERSION, kind, size, sequence)
        if _ends() != self._as_started or _wait_for(select.POLLRDHUP, 0):
            os._exit(CLOSED_EXIT)
        try:
            self._insist(select.POLLOUT, self._socket.send, header + body + text)
        except OSError:
            os._exit(CLOSED_EXIT)  # or the host has gone, and nobody asks

    def send_text(self, kind, sequence, text, missing=0):
        data = text.encode("utf-8", "replace")[: FRAME_BYTES_MAX - HEADER.size - TEXT.size]
        self.send(kind, sequence, TEXT.pack(len(data), missing), data)


def cut(text):
    """The bytes of a reason or an error, not too long, whole characters."""
    data = text.encode("utf-8", "replace")[:TEXT_BYTES_MAX]
    return data.decode("utf-8", "ignore").encode("utf-8")
