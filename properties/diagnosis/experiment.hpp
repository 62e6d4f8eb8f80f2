#pragma once
// What no wrong specification says and an experiment on the kernel shows: the same calls again with
// something changed, and whether they come out right then.

#include <algorithm>
#include <optional>
#include <vector>

#include "properties/diagnosis/diagnose.hpp"
#include "properties/search/kernel.hpp"

namespace attest::diagnosis {

/// The case with NaN in the last keys and values, for kernels that promise that what is hidden
/// never shows, and in the last values alone beside scores of which most weigh nothing. Rows that
/// see those keys are to be NaN, by the reference as well.
void add_poisoned(AllEvidence& evidence, search::Kernel& kernel, const Case& tried);

/// NaN or infinity among its keys or values.
bool holds_nonfinite(const Evidence& evidence);

/// "hidden_leaks": every failing call holds NaN in k or v, answers NaN where none is seen, and is
/// right with numbers in their place. Such a kernel multiplies what is hidden by zero instead of
/// leaving it out.
std::optional<Explanation> hidden_leaks(search::Kernel& kernel,
                                        const std::vector<Evidence>& evidence);

/// "strides_ignored": the same numbers in contiguous tensors are answered rightly, in every failing
/// call, none of which has such tensors and each of which fails again. Whose strides are taken
/// instead shows in no number.
std::optional<Explanation> strides_ignored(search::Kernel& kernel,
                                           const std::vector<Evidence>& wrong);

/// "offsets_cut": the same tensors, their rows nearer to each other, are answered rightly, in every
/// call, up to a number of elements from the first that is a power of two.
std::optional<Explanation> offsets_cut(search::Kernel& kernel, const std::vector<Evidence>& wrong);

/// The same call, again and again, is answered otherwise and then as before: what no call before it
/// explains.
bool changes_to_and_fro(search::Kernel& kernel, const Case& tried);

/// "workspace_read": some answers are NaN of what the workspace held before the call.
template <typename Call>
std::optional<Explanation> workspace_read(const std::vector<Call>& wrong) {
    if (std::ranges::none_of(wrong, &Call::workspace_read)) return std::nullopt;
    Explanation d;
    d.id = "workspace_read";
    d.tells = law::Tells::memory;
    d.says =
        "with what its workspace held before the call: some of that is read before it is "
        "written";
    return d;
}

/// "not_finite": what is wrong is NaN or infinity, and every number beside it is right.
std::optional<Explanation> not_finite(const std::vector<Evidence>& evidence);

}  // namespace attest::diagnosis
