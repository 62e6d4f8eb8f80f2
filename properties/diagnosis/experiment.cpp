#include "properties/diagnosis/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "properties/diagnosis/layouts.hpp"

namespace attest::diagnosis {

namespace {

constexpr Role kv_roles[] = {Role::k, Role::v};

// Far from all that laws fill tensors with, in every format: a kernel that sees what is hidden, not
// zero times it, is wrong with it.
constexpr double far_number = 96;

TensorSet with_numbers(TensorSet inputs) {
    for (const Role role : kv_roles)
        for (std::int64_t n = 0; n < inputs[role].size(); ++n)
            if (!std::isfinite(inputs[role].get(n))) inputs[role].set(n, far_number);
    return inputs;
}

/// Elements of the output of which something is claimed.
std::int64_t claimed(const bound::Expected& truth) {
    return std::ranges::count_if(truth.output,
                                 [](const auto& e) { return std::isfinite(e.bound); });
}

/// The call is made, and judged.
std::optional<Evidence> asked_again(search::Kernel& kernel, Specification asked) {
    worker::CallResult result = kernel.forward(asked.problem, asked.inputs);
    return judged_call(std::move(asked), std::move(result));
}

/// Whether the call is answered wrongly with rows so near that no element lies past 2^bits.
std::optional<bool> wrong_within(search::Kernel& kernel, const Evidence& e, int bits) {
    Specification near = e.asked;
    Problem& p = near.problem;
    const std::int64_t rows = p.batch * std::max(p.heads_q, p.heads_kv) *
                              std::max({p.len_q, p.len_kv, p.dim_qk, value_dim(p)});
    const std::int64_t pad = (std::int64_t{1} << bits) / std::max<std::int64_t>(rows, 1);
    for (Layout Problem::*layout : layout_fields)
        (p.*layout).row_pad = std::min((p.*layout).row_pad, pad);
    const std::optional<Evidence> again = asked_again(kernel, std::move(near));
    return again ? std::optional(again->wrong()) : std::nullopt;
}

/// The least power of two past which an element makes the call wrong.
std::optional<int> limit_of_offsets(search::Kernel& kernel, const Evidence& e) {
    constexpr int least_bits = 16, most_bits = 40;
    constexpr std::int64_t far_apart = 1 << 16;
    const auto far = [&](Layout Problem::*layout) {
        return (e.asked.problem.*layout).row_pad >= far_apart;
    };
    if (std::ranges::none_of(layout_fields, far)) return std::nullopt;
    // Now and then right, or wrong, is neither.
    if (wrong_within(kernel, e, least_bits) != false || wrong_within(kernel, e, most_bits) != true)
        return std::nullopt;
    for (int bits = least_bits + 1; bits < most_bits; ++bits) {
        const auto wrong = wrong_within(kernel, e, bits);
        if (!wrong) return std::nullopt;
        if (*wrong) return bits - 1;
    }
    return std::nullopt;
}

std::optional<Evidence> poisoned_evidence(search::Kernel& kernel, const Case& tried,
                                          std::span<const Role> roles) {
    if (kernel.manifest().dialect.nonfinite != Nonfinite::propagate) return std::nullopt;
    return evidence_of(kernel, tried, [roles](const Problem& p, TensorSet& inputs) {
        if (p.len_kv == 0) return;  // there is no last key
        const double nan = std::numeric_limits<double>::quiet_NaN();
        for (const Role role : roles) {
            Tensor& tensor = inputs[role];
            const std::int64_t dim = role == Role::k ? p.dim_qk : value_dim(p);
            for (std::int64_t head = 0; head < p.batch * p.heads_kv; ++head)
                for (std::int64_t c = 0; c < dim; ++c)
                    tensor.set(((head + 1) * p.len_kv - 1) * dim + c, nan);
        }
    });
}

}  // namespace

bool holds_nonfinite(const Evidence& e) {
    for (const Role role : kv_roles) {
        const Tensor& tensor = e.asked.inputs[role];
        for (std::int64_t n = 0; n < tensor.size(); ++n)
            if (!std::isfinite(tensor.get(n))) return true;
    }
    return false;
}

void add_poisoned(AllEvidence& evidence, search::Kernel& kernel, const Case& tried) {
    evidence.add(poisoned_evidence(kernel, tried, kv_roles));
    const Role values[] = {Role::v};
    const Case far{tried.problem, {ValueKind::logit1e3, 1, {}}};
    evidence.add(poisoned_evidence(kernel, far, values));
}

std::optional<Explanation> hidden_leaks(search::Kernel& kernel,
                                        const std::vector<Evidence>& evidence) {
    Explanation d;
    d.id = "hidden_leaks";
    d.tells = law::Tells::leak;
    d.says = "zero times what is hidden, which is NaN where that is, instead of leaving it out";
    d.declared =
        "that what is hidden is left out; by design? declare dialect: nonfinite unspecified";
    for (const Evidence& e : evidence) {
        const bool leaked = nan_for_a_number(e.observed[Role::o], e.truth.output);
        if (!holds_nonfinite(e) || !leaked) return std::nullopt;
        Specification numbers = e.asked;
        numbers.inputs = with_numbers(numbers.inputs);
        const std::optional<Evidence> result = asked_again(kernel, std::move(numbers));
        if (!result || result->output_wrong || claimed(result->truth) == 0) return std::nullopt;
        d.agree += claimed(result->truth);
    }
    d.of = d.agree;
    return d.agree > 0 ? std::optional(d) : std::nullopt;
}

// A kernel that is wrong now and then is right without strides too, now and then.
std::optional<Explanation> strides_ignored(search::Kernel& kernel,
                                           const std::vector<Evidence>& wrong) {
    Explanation d;
    d.id = "strides_ignored";
    d.says = "right answers to contiguous tensors alone: strides are ignored, or are another's";
    for (const Evidence& e : wrong) {
        if (!features_of(e.asked.problem).has(Feature::layout)) return std::nullopt;
        Specification plain = e.asked;
        Problem& p = plain.problem;
        p.layout_q = p.layout_k = p.layout_v = p.layout_o = {};
        const std::optional<Evidence> contiguous = asked_again(kernel, std::move(plain));
        if (!contiguous || contiguous->wrong()) return std::nullopt;
        const std::optional<Evidence> again = asked_again(kernel, e.asked);
        if (!again || !again->wrong()) return std::nullopt;
        d.agree += claimed(contiguous->truth);
    }
    d.of = d.agree;
    return d.agree > 0 ? std::optional(d) : std::nullopt;
}

// Elements of a call lie well within its farthest: the limit is the least that any call shows.
std::optional<Explanation> offsets_cut(search::Kernel& kernel, const std::vector<Evidence>& wrong) {
    Explanation d;
    d.id = "offsets_cut";
    int limit = std::numeric_limits<int>::max();
    for (const Evidence& e : wrong) {
        const auto bits = limit_of_offsets(kernel, e);
        if (!bits) return std::nullopt;
        limit = std::min(limit, *bits);
        d.agree += claimed(e.truth);
    }
    d.says = fmt::format(
        "right answers where no element lies farther than 2^{} from the first of its tensor: "
        "offsets are cut, or overflow",
        limit);
    d.of = d.agree;
    return d.agree > 0 ? std::optional(d) : std::nullopt;
}

bool changes_to_and_fro(search::Kernel& kernel, const Case& tried) {
    constexpr int calls_max = 256;
    std::optional<Tensor> first;
    bool left = false;
    for (int n = 0; n < calls_max; ++n) {
        const std::optional<Evidence> e = evidence_of(kernel, tried);
        if (!e) return false;
        const Tensor& o = e->observed[Role::o];
        if (first && left && o == *first) return true;
        left = left || (first && !(o == *first));
        if (!first) first = o;
    }
    return false;
}

std::optional<Explanation> not_finite(const std::vector<Evidence>& evidence) {
    Explanation d;
    d.id = "not_finite";
    d.general = true;
    d.says = "NaN or infinity in some places; the numbers it returns beside them are right";
    for (const Evidence& e : evidence) {
        const Tensor& observed = e.observed[Role::o];
        for (std::size_t n = 0; n < e.truth.output.size(); ++n) {
            const double seen = observed.get(static_cast<std::int64_t>(n));
            if (!std::isfinite(seen)) continue;
            if (bound::judge(seen, e.truth.output[n], e.asked.problem.format_o) ==
                bound::Agreement::disagrees)
                return std::nullopt;
            ++d.agree;
        }
    }
    d.of = d.agree;
    return d.agree > 0 ? std::optional(d) : std::nullopt;
}

}  // namespace attest::diagnosis
