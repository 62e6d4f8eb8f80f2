#include "properties/diagnosis/narrow_output.hpp"

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "properties/diagnosis/agreement.hpp"
#include "properties/diagnosis/scope.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

/// An f32 result that was computed in half or bfloat16 is a member of that format, everywhere, and
/// as far from the truth as one rounding to it.
struct NarrowOutput {
    std::string id, says;
    std::function<Precision(const Problem&)> of;
};

std::vector<NarrowOutput> narrow_outputs() {
    std::vector<NarrowOutput> list;
    for (const Precision narrow : {Precision::bf16, Precision::f16, Precision::f32})
        list.push_back({"output_" + std::string(name(narrow)),
                        "an output of the precision of " + std::string(name(narrow)),
                        [narrow](const Problem&) { return narrow; }});
    list.push_back({"output_own", "an output of the precision of the queries",
                    [](const Problem& p) { return p.format_q; }});
    return list;
}

NumberFormat number_format_of(Precision format) {
    return format == Precision::bf16  ? NumberFormat::bf16
           : format == Precision::f16 ? NumberFormat::f16
                                      : NumberFormat::f32;
}

std::optional<Explanation> explains(const NarrowOutput& narrow,
                                    const std::vector<Evidence>& wrong) {
    Explanation d;
    d.id = narrow.id;
    d.says = narrow.says;
    bool wide_truth = false;
    for (const Evidence& e : wrong) {
        const Precision format = e.asked.problem.format_o, own = narrow.of(e.asked.problem);
        if (traits(format).significand_bits <= traits(own).significand_bits) return std::nullopt;
        Numerics lower = e.asked.numerics;
        lower.weights = lower.output = number_format_of(own);
        const bound::Expected truth =
            oracle::attend(e.asked.problem, e.asked.dialect, lower, e.asked.inputs);
        for (std::size_t n = 0; n < truth.output.size(); ++n) {
            const double seen = e.observed[Role::o].get(static_cast<std::int64_t>(n));
            const double value = truth.output[n].value;
            ++d.of;
            if (!std::isnan(seen) && round_to(seen, own) != seen) return std::nullopt;
            wide_truth = wide_truth || round_to(value, own) != round_to(value, format);
            d.agree +=
                bound::judge(seen, truth.output[n], own) != bound::Agreement::disagrees ? 1 : 0;
        }
    }
    const bool all = wide_truth && d.agree == d.of && d.of >= telling_elements_min;
    return all ? std::optional(d) : std::nullopt;
}

bool is_member(const Evidence& e, Precision format) {
    const Tensor& o = e.observed[Role::o];
    for (std::int64_t n = 0; n < o.size(); ++n)
        if (std::isfinite(o.get(n)) && round_to(o.get(n), format) != o.get(n)) return false;
    return true;
}

}  // namespace

std::vector<Explanation> narrower_outputs(const AllEvidence& evidence) {
    std::vector<Explanation> list;
    for (const NarrowOutput& narrow : narrow_outputs()) {
        std::optional<Explanation> found = explains(narrow, evidence.wrong);
        if (!found) continue;
        std::vector<Problem> wrong, refuting;
        for (const Evidence& e : evidence.wrong) wrong.push_back(e.asked.problem);
        for (const Evidence& e : evidence.right)
            if (!is_member(e, narrow.of(e.asked.problem))) refuting.push_back(e.asked.problem);
        if (!refuting.empty()) {
            const std::optional<Scope> scope = scope_of(wrong, refuting);
            if (!scope) continue;
            found->refuted = true;
            limit(*found, scope);
        }
        list.push_back(std::move(*found));
    }
    return list;
}

}  // namespace attest::diagnosis
