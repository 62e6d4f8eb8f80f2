"""The memory shared with attest, as numpy arrays. Pages outside the tensors of the current call are
forbidden, and inputs may only be read: a stray access ends the process, and attest says where."""

import ctypes
import mmap

import numpy as np

from attest_worker.protocol import MEMORY_FD, ROLES, TENSOR

WRITE = 2
WORKSPACE = 0xFFFF
NONE, READ, READ_WRITE = 0, mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE

# DLPack's type code and bits. bfloat16 has no numpy type: its bits are uint16.
DTYPES = {
    (2, 64): np.dtype("<f8"),
    (2, 32): np.dtype("<f4"),
    (2, 16): np.dtype("<f2"),
    (4, 16): np.dtype("<u2"),
    (0, 32): np.dtype("<i4"),
    (1, 8): np.dtype("u1"),
}

_mprotect = ctypes.CDLL(None, use_errno=True).mprotect
_mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class SharedMemory:
    def __init__(self):
        self._map = None
        self._base = 0
        self._bytes = 0
        self._open = {}  # first byte of the pages -> (bytes, protection)

    @property
    def bytes(self):
        return self._bytes

    def resize(self, size):
        """Maps the memory anew; everything is forbidden then."""
        self._map = mmap.mmap(MEMORY_FD, size, mmap.MAP_SHARED, READ_WRITE)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self._bytes = size
        self._open = {}
        self._protect(0, size, NONE)

    def _protect(self, first, size, protection):
        if size and _mprotect(self._base + first, size, protection) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")

    def tensors(self, body, count):
        """(role, array, is an output) of every tensor but the workspace."""
        arrays = []
        wanted = {}
        for i in range(count):
            role, code, bits, access, ndim, _, data, pages, size, *axes = TENSOR.unpack_from(
                body, i * TENSOR.size
            )
            output = access == WRITE
            wanted[pages] = (size, READ_WRITE if output else READ)
            if role == WORKSPACE or role >= len(ROLES):
                continue
            dtype = DTYPES[code, bits]
            strides = [stride * dtype.itemsize for stride in axes[4 : 4 + ndim]]
            array = np.ndarray(axes[:ndim], dtype, self._map, data, strides)
            array.flags.writeable = output
            arrays.append((ROLES[role], array, output))
        self._apply(wanted)
        return arrays

    def _apply(self, wanted):
        if wanted == self._open:
            return
        for first, (size, protection) in self._open.items():
            if wanted.get(first) != (size, protection):
                self._protect(first, size, NONE)
        for first, (size, protection) in wanted.items():
            if self._open.get(first) != (size, protection):
                self._protect(first, size, protection)
        self._open = wanted
