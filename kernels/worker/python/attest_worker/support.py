"""The answer of a kernel that has no supports(): what its manifest declares, and nothing more."""

import math

from attest_worker.protocol import FLAG_PACKED


def _default_scale(problem):
    exact = 1 / math.sqrt(problem.dim_qk) if problem.dim_qk else math.inf
    return math.isclose(problem.scale, exact, rel_tol=2.0**-23)  # it may be rounded to f32


def features_of(problem):
    """The features that scalars tell. Lengths of sequences and memory layouts do not show."""
    uses = {
        "causal": problem.causal,
        "window": problem.window_left >= 0 or problem.window_right >= 0,
        "mask_bool": problem.mask_kind == 1,
        "mask_additive": problem.mask_kind == 2,
        "documents": problem.flags & FLAG_PACKED,
        "softcap": problem.softcap != 0,
        "sink": problem.sink,
        "alibi": problem.alibi,
        "rope": problem.rope_kind,
        "dropout": problem.dropout_p != 0,
        "gqa": problem.heads_q != problem.heads_kv,
        "dim_v": problem.dim_v != problem.dim_qk,
        "scale": not _default_scale(problem),
        "cache": problem.cache_len,
        "paged": problem.page_size,
        "splits": problem.splits,
        "lse": problem.want_lse,
        "mixed_formats": not problem.format_q == problem.format_kv == problem.format_o,
    }
    return [name for name, used in uses.items() if used]


def declared_answer(declared, problem):
    """True, or the reason why not."""
    for field in ("format_q", "format_kv", "format_o"):
        name = getattr(problem, field).name
        if name not in declared.get("formats", ()):
            return f"{field} is {name}, which the manifest does not list"
    known = declared.get("features", ())
    for feature in features_of(problem):
        if feature not in known:
            return f"the manifest does not list the feature {feature}"
    limits = declared.get("limits", {})
    dim_max, len_max = limits.get("dim_max", 0), limits.get("len_max", 0)
    if dim_max and max(problem.dim_qk, problem.dim_v) > dim_max:
        return f"dimensions end at {dim_max}"
    if len_max and max(problem.len_q, problem.len_kv) > len_max:
        return f"lengths end at {len_max}"
    return True
