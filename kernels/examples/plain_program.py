#!/usr/bin/env python3
"""A kernel that is a program of its own: it speaks the frames of kernels/worker/PROTOCOL.md and
needs nothing but the standard library. Any language that can read a socket and map a file will do.

    attest check exec:./plain_program.py
"""

import math
import mmap
import socket
import struct

MAGIC, VERSION = 0x54544157, 2
HELLO, MANIFEST, SUPPORTS, ANSWER, CALL, REPLY = 1, 2, 4, 5, 6, 7
HEADER = struct.Struct("<IHHII")
PROBLEM = struct.Struct("<Q7q3i4xdi4x2qd2id2q2idQ3q2iII")  # attest_problem as it is now
TENSOR = struct.Struct("<HBBBBHQQQ4q4q")
Q, K, V, O, LSE = range(5)

ATTEST = b"""{"name": "plain_program", "version": "1", "formats": ["f32"],
 "features": ["causal", "gqa", "dim_v", "scale", "layout", "lse"],
 "numerics": {"accumulate": "f64", "weights": "f64", "deterministic": true}}"""


class Problem:
    def __init__(self, body):
        # A later attest appends fields: what follows the problem lies behind the size it says.
        self.size, *f = PROBLEM.unpack_from(body)
        self.batch, self.heads_q, self.heads_kv = f[:3]
        self.len_q, self.len_kv, self.dim, self.dim_v = f[3:7]
        self.formats, self.scale, self.causal, self.window = tuple(f[7:10]), f[10], f[11], tuple(f[12:14])
        # Soft cap, mask, RoPE, ALiBi, sink, dropout, pages, cache, splits, flags: all absent as 0.
        self.others = (f[14], f[15], f[16], *f[20:23], *f[24:27], f[29])


def supports(p):
    if p.formats != (1, 1, 1):
        return "f32 only"
    return "" if p.window == (-1, -1) and not any(p.others) else "plain and causal attention only"


class Tensor:
    def __init__(self, memory, data, strides):
        self.memory, self.data, self.strides = memory, data, strides

    def place(self, *index):
        return self.data + 4 * sum(i * s for i, s in zip(index, self.strides))

    def row(self, b, h, i, count):
        places = [self.place(b, h, i, c) for c in range(count)]
        return [struct.unpack_from("<f", self.memory, place)[0] for place in places]

    def put(self, value, *index):
        try:
            struct.pack_into("<f", self.memory, self.place(*index), value)
        except OverflowError:  # rounding to f32 gives an infinity, which struct will not do
            self.put(math.copysign(math.inf, value), *index)


def attend(p, t, b, h, i):
    kv = h // (p.heads_q // p.heads_kv)
    keys = range(min(p.len_kv, i + p.len_kv - p.len_q + 1) if p.causal else p.len_kv)
    q = t[Q].row(b, h, i, p.dim)
    s = [p.scale * sum(x * y for x, y in zip(q, t[K].row(b, kv, j, p.dim))) for j in keys]
    m = max(s, default=0.0)
    weights = [math.exp(x - m) for x in s]
    total = sum(weights)
    values = [t[V].row(b, kv, j, p.dim_v) for j in keys]
    for c in range(p.dim_v):
        mixed = sum(w * v[c] for w, v in zip(weights, values))
        t[O].put(mixed / total if total else 0.0, b, h, i, c)
    if LSE in t:
        t[LSE].put(m + math.log(total) if total else -math.inf, b, h, i)


def forward(body):
    memory_bytes, _, _, count = struct.unpack_from("<QQII", body)
    p = Problem(body[24:])
    with mmap.mmap(4, memory_bytes) as memory:
        tensors, outputs = {}, 0
        for n in range(count):
            f = TENSOR.unpack_from(body, 24 + p.size + n * TENSOR.size)
            tensors[f[0]] = Tensor(memory, f[6], f[13:17])
            outputs |= 1 << f[0] if f[3] == 2 else 0
        for b in range(p.batch):
            for h in range(p.heads_q):
                for i in range(p.len_q):
                    attend(p, tensors, b, h, i)
    return outputs


def main():
    host = socket.socket(fileno=3)
    while frame := host.recv(128 * 1024):
        _, _, kind, _, sequence = HEADER.unpack_from(frame)
        body, text = frame[HEADER.size :], b""
        if kind == HELLO:
            kind, text, fixed = MANIFEST, ATTEST, struct.pack("<II", len(ATTEST), 0)
        elif kind == SUPPORTS:
            text = supports(Problem(body[8:])).encode()
            kind, fixed = ANSWER, struct.pack("<IIQ", not text, len(text), 0)
        else:
            status, outputs = 0, 0
            try:
                outputs = forward(body)
            except (ArithmeticError, ValueError) as error:
                status, text = 1, repr(error).encode()[:4096]
            kind, fixed = REPLY, struct.pack("<IiQQII", status, 0, 0, outputs, len(text), 0)
        size = HEADER.size + len(fixed) + len(text)
        host.send(HEADER.pack(MAGIC, VERSION, kind, size, sequence) + fixed + text)


main()
