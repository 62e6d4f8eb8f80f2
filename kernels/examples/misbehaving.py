"""Python kernels that each misbehave in one way: attest's own tests load them by function name."""

import ctypes
import os
import socket
import sys

import numpy as np

ATTEST = {"name": "misbehaving", "version": "1", "formats": ["f32"], "features": ["lse", "layout"]}


def returns_only_o(problem, q, k, v, o, **_):
    return np.zeros(o.shape, o.dtype)


def fills_in_place(problem, q, k, v, o, lse, **_):
    o[...] = 0
    lse[...] = 0


def leaves_output_unwritten(problem, q, k, v, o, lse, **_):
    o[:, :, 1:] = 0
    lse[...] = 0


def raises(problem, q, k, v, **_):
    raise ValueError("the tile does not fit")


def returns_wrong_shape(problem, q, k, v, o, **_):
    return np.zeros(o.shape[:3], o.dtype)


def returns_wrong_dtype(problem, q, k, v, o, **_):
    return np.zeros(o.shape, np.float64)


def writes_input(problem, q, k, v, **_):
    v[0, 0, 0, 0] = 1


def calls_os_exit(problem, q, k, v, **_):
    os._exit(3)


def calls_sys_exit(problem, q, k, v, **_):
    sys.exit(3)


def closes_the_memory(problem, q, k, v, **_):
    os.close(4)
    return np.zeros_like(q)


def leads_the_memory_elsewhere(problem, q, k, v, **_):
    os.dup2(os.open(os.devnull, os.O_RDWR), 4)
    return np.zeros_like(q)


def hangs_up(problem, q, k, v, **_):
    socket.socket(fileno=os.dup(3)).shutdown(socket.SHUT_RDWR)
    return np.zeros_like(q)


def hears_nobody(problem, q, k, v, **_):
    socket.socket(fileno=os.dup(3)).shutdown(socket.SHUT_RD)
    return np.zeros_like(q)


def speaks_to_nobody(problem, q, k, v, **_):
    socket.socket(fileno=os.dup(3)).shutdown(socket.SHUT_WR)
    return np.zeros_like(q)


def waits_for_nothing(problem, q, k, v, **_):
    os.set_blocking(3, False)
    return np.zeros_like(q)


def reads_past_k(problem, q, k, v, **_):
    return ctypes.c_float.from_address(k.ctypes.data + k.nbytes).value


def writes_before_o(problem, q, k, v, o, **_):
    ctypes.c_float.from_address(o.ctypes.data - 4).value = 1.0
    return np.zeros(o.shape, o.dtype), np.zeros(o.shape[:3], o.dtype)


def never_returns(problem, q, k, v, **_):
    while True:
        pass


def uses_all_memory(problem, q, k, v, **_):
    held = []
    while True:
        held.append(np.ones(1 << 23, np.uint8))


_inside = []


def one_at_a_time(problem, q, k, v, o, **_):
    """Says so where two threads call it at once."""
    import time

    _inside.append(o)
    time.sleep(0.02)
    alone = len(_inside) == 1
    _inside.pop()
    if not alone:
        raise RuntimeError("busy")
    return np.zeros_like(o)
