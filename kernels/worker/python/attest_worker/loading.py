"""Finding the kernel's module and function; saying in a few lines why they cannot be had."""

import difflib
import importlib
import inspect
import json
import os
import sys
import traceback

from attest_worker.sources import sources


class LoadError(Exception):
    """The sentence, then lines of detail."""

    missing = 0  # Missing in protocol.hpp


class LacksNumpy(LoadError):
    missing = 1


def interpreter():
    """Its path: there may be several of one version."""
    return sys.executable or f"python{sys.version_info.major}.{sys.version_info.minor}"


def require_numpy():
    try:
        import numpy  # noqa: F401
    except ImportError as error:
        raise LacksNumpy(
            f"the worker needs numpy, which {interpreter()} does not have\n"
            f"{interpreter()} -m pip install numpy"
        ) from error


def _searched(own_folder):
    folders = [f for f in sys.path if os.path.realpath(f or ".") != own_folder]
    last = os.path.relpath(folders[-1] or ".") if folders else "none"
    return f"searched {len(folders)} folders, last {last}; interpreter {interpreter()}"


def _import(module_name, function_name):
    own_folder = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing and (module_name == missing or module_name.startswith(missing + ".")):
            spec = f"python:{module_name}:{function_name}"
            raise LoadError(
                f"No module named {missing}\n{_searched(own_folder)}\n"
                f"PYTHONPATH=path/to/parent attest check {spec}\n"
                "or --python path/to/venv/bin/python"
            ) from error
        raise _raised(module_name, function_name, error) from error
    except BaseException as error:
        raise _raised(module_name, function_name, error) from error


def _raised(module_name, function_name, error):
    elsewhere = isinstance(error, ModuleNotFoundError)
    where = f"interpreter {interpreter()}; --python path/to/venv/bin/python for another\n" if elsewhere else ""
    return LoadError(
        f"{module_name}:{function_name} raised at import\n{place_of(error)}"
        f"{describe(error)}\n{where}no law was checked"
    )


def describe(error):
    """'ValueError: the tile does not fit': what comes first was written for this very error; what
    follows is advice that every error of its kind carries. Of a syntax error the place comes first."""
    lines = "".join(traceback.format_exception_only(type(error), error)).splitlines()
    lines = [line.strip() for line in lines if line.strip()]
    if isinstance(error, SyntaxError):
        return next((line for line in lines if line.startswith(type(error).__name__)), lines[-1])
    return " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]


def place_of(error):
    """'flash.py:12  import triton', a line of its own: the deepest frame outside Python itself."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{os.path.basename(error.filename)}:{error.lineno}  {(error.text or '').strip()}\n"
    own_folder = os.path.dirname(os.path.realpath(__file__))
    standard = os.path.dirname(os.path.realpath(os.__file__))
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        folder = os.path.dirname(os.path.realpath(frame.filename))
        foreign = frame.filename.startswith("<") or folder.startswith((own_folder, standard))
        if not foreign or "site-packages" in folder or "dist-packages" in folder:
            place = f"{os.path.basename(frame.filename)}:{frame.lineno}  {frame.line}\n"
    return place


_TENSORS_OF = {
    "alibi": ["alibi_slopes"],
    "documents": ["cu_seqlens_q", "cu_seqlens_kv"],
    "lens_kv": ["lens_kv"],
    "lens_q": ["lens_q"],
    "lse": ["lse"],
    "mask_additive": ["mask"],
    "mask_bool": ["mask"],
    "paged": ["block_table"],
    "sink": ["sinks"],
}


def _require_callable_as_asked(forward, name, features):
    """Every call gives it the problem, q, k and v by place, and o, beside those of its features, by name."""
    try:
        signature = inspect.signature(forward)
    except (TypeError, ValueError):  # not every builtin tells it
        return
    listed = features if isinstance(features, (list, tuple)) else []
    for feature in [None, *(word for word in listed if isinstance(word, str))]:
        tensors = ["o", *_TENSORS_OF.get(feature, [])]
        try:
            signature.bind_partial("problem", "q", "k", "v", **dict.fromkeys(tensors))
        except TypeError as error:
            cause = f", and its manifest lists {feature}" if feature else ""
            raise LoadError(
                f"{name}{signature} cannot be called: {error}{cause}\n"
                f"def {name.rsplit('.', 1)[-1]}(problem, q, k, v, **tensors): o, and what else a problem has, come by name"
            ) from error


class Kernel:
    """A module's manifest text, forward function and optional supports and backward."""

    def __init__(self, module_name, function_name):
        module = _import(module_name, function_name)
        self.forward = getattr(module, function_name, None)
        if not callable(self.forward):
            near = difflib.get_close_matches(function_name, dir(module), 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise LoadError(f"{module_name} has no function {function_name}{hint}")
        manifest = getattr(module, "ATTEST", None)
        if not isinstance(manifest, dict):
            raise LoadError(
                f"{module_name} has no dict ATTEST, the kernel's manifest\n"
                f'ATTEST = {{"name": "{function_name}", "version": "1", "formats": ["f32"]}}'
            )
        try:
            self._declared = self._with_backward(module, manifest)
            _require_callable_as_asked(self.forward, f"{module_name}.{function_name}", manifest.get("features"))
            self.manifest = self.manifest_now()
        except (TypeError, ValueError) as error:
            raise LoadError(f"{module_name}.ATTEST is not JSON: {error}") from error
        self.supports = getattr(module, "supports", None)

    def manifest_now(self):
        """With what was imported up to now."""
        made_of = {**sources(), **self._declared.get("sources", {})}
        return json.dumps({**self._declared, "sources": made_of}, allow_nan=False)

    def _with_backward(self, module, manifest):
        """The manifest with its gradients listed, where a framework makes the backward of the forward."""
        self.backward = getattr(module, "backward", None)
        gradients = manifest.get("gradients")
        method, *more = gradients if isinstance(gradients, dict) else [gradients]
        if not isinstance(method, str) or more:
            if gradients and not callable(self.backward):
                raise LoadError(
                    f"{module.__name__} has no function backward\n"
                    "its manifest lists gradients; of a forward alone PyTorch or JAX makes them: "
                    '"gradients": "autograd" or "vjp"'
                )
            return manifest
        from attest_worker import derived

        if method not in derived.METHODS:
            known = " or ".join(derived.METHODS)
            raise LoadError(f'{module.__name__}.ATTEST: "gradients": "{method}" is no way to them: {known}, or a list')
        try:
            framework = derived.METHODS[method]()
        except ImportError as error:
            package = derived.METHODS[method].package
            raise LoadError(
                f'{module.__name__}.ATTEST has "gradients": "{method}", '
                f"and {interpreter()} has no {package}: {error}"
            ) from error
        listed = gradients[method] if isinstance(gradients, dict) else derived.gradients_of(manifest)
        self.forward, self.backward = derived.pair(framework, self.forward)
        return {**manifest, "gradients": listed}
