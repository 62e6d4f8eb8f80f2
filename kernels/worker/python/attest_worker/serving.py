"""The loop: a frame comes, the kernel is asked, a frame goes."""

import numpy as np

from attest_worker import loading, protocol
from attest_worker.beside import Beside
from attest_worker.memory import SharedMemory
from attest_worker.protocol import CALL, HELLO, ROLES, SUPPORTS, Kind, Problem, Status

O_BIT = 1 << ROLES.index("o")
LSE_BIT = 1 << ROLES.index("lse")
KEEP_BIT = 1 << ROLES.index("dropout_keep")
BACKWARD, APPEND, FORWARD_BESIDE = 1, 2, 3
GRADIENTS = ["d_q", "d_k", "d_v", "d_mask", "d_sinks", "d_slopes"]


class KernelError(Exception):
    """What a kernel returned cannot be its output."""


def _store(name, target, result):
    array = np.asarray(result)
    if array.dtype != target.dtype:
        wanted = "uint16, the bits of bfloat16" if target.dtype == np.uint16 else target.dtype
        raise KernelError(f"{name} has dtype {array.dtype}, asked for is {wanted}")
    if array.shape != target.shape:
        raise KernelError(f"{name} has shape {array.shape}, asked for is {target.shape}")
    if array is not target:
        target[...] = array


def _text(data, size):
    return str(data[:size], "utf-8")


class Server:
    def __init__(self, connection, kernel):
        self._connection = connection
        self._kernel = kernel
        self._memory = SharedMemory()

    def serve(self):
        handlers = {
            Kind.HELLO: self._hello,
            Kind.AGAIN: self._again,
            Kind.SUPPORTS: self._supports,
            Kind.CALL: self._call,
        }
        while True:
            kind, sequence, body = self._connection.receive()
            if kind not in handlers:
                return
            handlers[kind](sequence, body)

    def _hello(self, sequence, body):
        _, _, text_bytes = HELLO.unpack_from(body)
        Problem.learn(_text(body[HELLO.size :], text_bytes))
        self._connection.send_text(Kind.MANIFEST, sequence, self._kernel.manifest)

    def _again(self, sequence, _):
        self._connection.send_text(Kind.MANIFEST, sequence, self._kernel.manifest_now())

    def _supports(self, sequence, body):
        text_bytes, _ = SUPPORTS.unpack_from(body)
        problem_bytes = len(body) - SUPPORTS.size - text_bytes
        features = _text(body[SUPPORTS.size + problem_bytes :], text_bytes)
        problem, _ = Problem.take(body[SUPPORTS.size :], features)
        try:
            # Without the function the manifest alone speaks, which attest asks first.
            answer = self._kernel.supports is None or self._kernel.supports(problem)
        except BaseException as error:
            answer = f"supports() raised {loading.describe(error)}"
        yes = answer is True
        reason = answer if isinstance(answer, str) else f"supports() returned {answer!r}"
        text = b"" if yes else protocol.cut(reason)
        self._connection.send(
            Kind.ANSWER, sequence, protocol.ANSWER.pack(yes, len(text), 0), text
        )

    def _call(self, sequence, body):
        status, outputs, text = Status.DONE, 0, b""
        try:
            status, outputs = self._run(body)
        except MemoryError as error:
            status, text = Status.MEMORY, protocol.cut(f"MemoryError: {error}")
        except KernelError as error:
            status, text = Status.ERROR, protocol.cut(str(error))
        except BaseException as error:
            place = loading.place_of(error).split("  ")[0]
            where = f" ({place})" if place else ""
            status, text = Status.ERROR, protocol.cut(loading.describe(error) + where)
        self._connection.send(
            Kind.REPLY, sequence, protocol.REPLY.pack(status, 0, 0, outputs, len(text), 0), text
        )

    def _run(self, body):
        memory_bytes, _, operation, count = CALL.unpack_from(body)
        problem, tensors_body = Problem.take(body[CALL.size :])
        if operation == BACKWARD and self._kernel.backward is None or operation == APPEND:
            return Status.ABSENT, 0
        if memory_bytes != self._memory.bytes:
            self._memory.resize(memory_bytes)
        arrays = self._memory.tensors(tensors_body, count)
        tensors = {name: array for name, array, _ in arrays}
        q, k, v = tensors.pop("q"), tensors.pop("k"), tensors.pop("v")
        if operation == BACKWARD:
            return self._run_backward(problem, q, k, v, tensors)
        lse = tensors.get("lse")
        before = None if lse is None else lse.tobytes()

        if operation == FORWARD_BESIDE:
            with Beside(self._kernel.forward, problem, q, k, v, tensors):
                result = self._kernel.forward(problem, q, k, v, **tensors)
        else:
            result = self._kernel.forward(problem, q, k, v, **tensors)

        returned_lse = isinstance(result, tuple)
        if returned_lse:
            if len(result) != 2:
                raise KernelError(f"returned {len(result)} values; o or (o, lse) are asked for")
            result, lse_result = result
            if lse is not None:
                _store("lse", lse, lse_result)
        if result is not None:
            _store("o", tensors["o"], result)
        outputs = O_BIT
        # Where only o is returned the LSE may still have been filled in place.
        if lse is not None and (returned_lse or result is None or lse.tobytes() != before):
            outputs |= LSE_BIT
        # Filled in place or not at all; attest sees which.
        if "dropout_keep" in tensors:
            outputs |= KEEP_BIT
        return Status.DONE, outputs

    def _run_backward(self, problem, q, k, v, tensors):
        wanted = [name for name in GRADIENTS if name in tensors]
        result = self._kernel.backward(problem, q, k, v, **tensors)
        if result is not None and not isinstance(result, dict):
            if not isinstance(result, tuple) or len(result) != len(wanted):
                raise KernelError(f"a dict or a tuple of {', '.join(wanted)} is asked for")
            result = dict(zip(wanted, result))
        for name in wanted:
            if result is not None and result.get(name) is None:
                raise KernelError(f"{name} was not returned")
            if result is not None:
                _store(name, tensors[name], result[name])
        return Status.DONE, sum(1 << ROLES.index(name) for name in wanted)
