"""The answer of a kernel that has no supports(): what its manifest declares, and nothing more."""

# Memory in any order is numpy's matter: every kernel is given views with their strides.
UNASKED = {"layout"}


def declared_answer(declared, problem):
    """True, or the reason why not."""
    for field in ("format_q", "format_kv", "format_o"):
        name = getattr(problem, field).name
        if name not in declared.get("formats", ()):
            return f"{field} is {name}, which the manifest does not list"
    known = declared.get("features", ())
    for feature in problem.features:
        if feature not in known and feature not in UNASKED:
            return f"the manifest does not list the feature {feature}"
    limits = declared.get("limits", {})
    dim_max, len_max = limits.get("dim_max", 0), limits.get("len_max", 0)
    if dim_max and max(problem.dim_qk, problem.dim_v) > dim_max:
        return f"dimensions end at {dim_max}"
    if len_max and max(problem.len_q, problem.len_kv) > len_max:
        return f"lengths end at {len_max}"
    return True
