"""The backward of a kernel that has a forward alone: PyTorch's autograd or JAX's vjp differentiates it.

`forward` is then handed that framework's arrays, bfloat16 and bool among them, and returns its o, or (o, lse). In
PyTorch they lie in the memory shared with attest; JAX gets copies, since it may keep what it is given.
"""

import numpy as np

OUTPUTS = ("o", "lse")
GRADIENT_OF = {"alibi_slopes": "d_slopes"}  # of any other input: d_ and its name


class Autograd:
    package = "torch"

    def __init__(self):
        import torch

        self._torch = torch

    def taken(self, array, name):
        if array.dtype == np.uint16:
            return self._torch.from_numpy(array.view(np.int16)).view(self._torch.bfloat16)
        tensor = self._torch.from_numpy(array)
        return tensor.view(self._torch.bool) if name == "mask" and array.dtype == np.uint8 else tensor

    def given(self, tensor):
        tensor = tensor.detach().cpu()
        if tensor.dtype == self._torch.bfloat16:
            return tensor.contiguous().view(self._torch.int16).numpy().view(np.uint16)
        return tensor.numpy()

    def gradients(self, forward, leaves, d_outputs):
        leaves = {name: leaf.requires_grad_() for name, leaf in leaves.items()}
        outputs = forward(leaves)
        if not outputs[0].requires_grad and not outputs[0].any():
            return {name: self._torch.zeros_like(leaf) for name, leaf in leaves.items()}
        found = self._torch.autograd.grad(outputs, list(leaves.values()), d_outputs, allow_unused=True)
        # None is autograd's word for a gradient of zero.
        return {
            name: self._torch.zeros_like(leaf) if gradient is None else gradient
            for (name, leaf), gradient in zip(leaves.items(), found)
        }


class Vjp:
    package = "jax"

    def __init__(self):
        import jax

        self._jax = jax
        jax.config.update("jax_enable_x64", True)  # else f64 is taken for f32, silently

    def taken(self, array, name):
        if array.dtype == np.uint16:
            array = array.view(self._jax.numpy.bfloat16)
        elif name == "mask" and array.dtype == np.uint8:
            array = array.view(bool)
        return self._jax.numpy.array(array)

    def given(self, array):
        array = np.asarray(array)
        return array.view(np.uint16) if array.dtype == self._jax.numpy.bfloat16 else array

    def gradients(self, forward, leaves, d_outputs):
        _, pull_back = self._jax.vjp(forward, leaves)
        return pull_back(d_outputs)[0]


METHODS = {"autograd": Autograd, "vjp": Vjp}


def _outputs(result, count):
    """As many of o and lse as gradients are given of."""
    outputs = result if isinstance(result, tuple) else (result,)
    if len(outputs) < count:
        raise TypeError("forward returned no lse, and its gradient is given")
    return outputs[:count]


def _gradient(name):
    return GRADIENT_OF.get(name, f"d_{name}")


def gradients_of(manifest):
    """What a forward of this manifest has gradients of, where its author does not say. Few differentiate the slopes of
    ALiBi, so that theirs is asked for by name alone."""
    features = manifest.get("features", ())
    needs = {"mask": "mask_additive", "sinks": "sink"}
    return ["q", "k", "v", *(name for name, feature in needs.items() if feature in features)]


def pair(framework, forward):
    """forward and backward, of numpy arrays, made of a forward of the framework's arrays."""

    def taken(arrays):
        return {name: framework.taken(array, name) for name, array in arrays.items()}

    def inputs(tensors):
        return taken({n: a for n, a in tensors.items() if n not in OUTPUTS and not n.startswith("d_")})

    def on_arrays(problem, q, k, v, **tensors):
        result = forward(problem, **taken({"q": q, "k": k, "v": v}), **inputs(tensors))
        if isinstance(result, tuple):
            return tuple(framework.given(one) for one in result)
        return framework.given(result)

    def backward(problem, q, k, v, *, d_o, d_lse=None, **tensors):
        given = {**taken({"q": q, "k": k, "v": v}), **inputs(tensors)}
        leaves = {name: given.pop(name) for name in list(given) if _gradient(name) in tensors}
        d_outputs = {"d_o": d_o} if d_lse is None else {"d_o": d_o, "d_lse": d_lse}
        found = framework.gradients(
            lambda leaves: _outputs(forward(problem, **leaves, **given), len(d_outputs)),
            leaves,
            tuple(taken(d_outputs).values()),
        )
        return {_gradient(name): framework.given(gradient) for name, gradient in found.items()}

    return on_arrays, backward
