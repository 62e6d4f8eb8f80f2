"""The headers of a CUDA source: those that declare shared memory or launch a kernel are translated too.

A header named in quotes and found beside the file that includes it is read. Where it, or what it includes so, needs
translating, its translation stands beside the output and is included in its place. CUDA's own headers that the
simulation has not are refused: a toolkit on this machine would bring declarations that clash with it.
"""
import hashlib
import os

from cuda_tokens import Refusal, refuse, solid, text_of, tokens_of

SIMULATED = ("cooperative_groups.h", "cooperative_groups/reduce.h", "cuda.h", "cuda_bf16.h", "cuda_fp16.h",
             "cuda_runtime.h")
OF_CUDA = ("cooperative_groups", "crt/", "cub/", "cublas", "cuda.h", "cuda/", "cuda_", "cudnn", "cufft", "curand",
           "cusolver", "cusparse", "device_", "math_constants.h", "mma.h", "nvrtc", "nvtx", "sm_", "surface_", "texture_",
           "thrust/", "vector_functions", "vector_types")


def includes_of(tokens):
    """(index of the name's first token, index behind it, name, in quotes) of each #include."""
    for i, t in enumerate(tokens):
        if not (t.directive and t.text == "include" and tokens[solid(tokens, i - 1, -1)].text == "#"):
            continue
        at = solid(tokens, i + 1)
        if at >= len(tokens):
            continue
        if tokens[at].kind == "string":
            yield at, at + 1, tokens[at].text[1:-1], True
        elif tokens[at].text == "<":
            end = next((j for j in range(at, len(tokens)) if tokens[j].text == ">"), at)
            yield at, end + 1, text_of(tokens[at + 1:end]), False


class Headers:
    def __init__(self, translate, folder):
        self.translate, self.folder = translate, folder
        self.files = []  # all that were read
        self._known = {}

    def read(self, path):
        """The translation of a source."""
        with open(path, encoding="utf-8") as file:
            text = file.read()
        return self.translate(self._with_includes(text, path, False))

    def _with_includes(self, text, path, moved):
        """The text, what it includes in quotes exchanged where that is translated; or where it is `moved` itself."""
        tokens = tokens_of(text)
        for at, _, name, quoted in includes_of(tokens):
            beside = os.path.join(os.path.dirname(path), name)
            if quoted and os.path.exists(beside):
                other = self._translated(os.path.realpath(beside))
                if other or moved:
                    tokens[at].text = '"' + (other or os.path.realpath(beside)) + '"'
            elif name.startswith(OF_CUDA) and name not in SIMULATED:
                refuse(tokens[at], f"{name} is a header of CUDA that the simulation does not have; it has "
                                   + ", ".join(SIMULATED))
        return text_of(tokens)

    def _translated(self, path):
        """Where the header's translation stands; None where it needs none."""
        if path in self._known:
            return self._known[path]
        self._known[path] = None  # a header that includes itself
        self.files.append(path)
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            plain = self._with_includes(text, path, False)
            needed = any(t.text in ("__shared__", "<<<") for t in tokens_of(text)) or plain != text
            if not needed:
                return None
            body = self.translate(self._with_includes(text, path, True))
        except Refusal as refusal:
            refusal.file = refusal.file or path
            raise
        mark = hashlib.sha256(path.encode()).hexdigest()[:12]
        output = os.path.join(self.folder, f"{mark}_{os.path.basename(path)}")
        with open(output, "w", encoding="utf-8") as file:
            file.write(f'#line 1 "{path}"\n{body}')
        self._known[path] = output
        return output
