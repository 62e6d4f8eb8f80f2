#pragma once
// A deviation is a wrong specification that real kernels were once found to compute: another mask
// alignment, another scale, another head. Each maps what was asked to what such a kernel would
// answer, with the same error bounds as the truth has. diagnose() looks for the one that explains
// an output.

#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "properties/law/property.hpp"
#include "reference/bound/expected.hpp"
#include "reference/problem/dialect.hpp"
#include "reference/problem/problem.hpp"
#include "reference/problem/tensor.hpp"

namespace attest::diagnosis {

/// Everything the reference needs to answer one call.
struct Specification {
    Problem problem;
    Dialect dialect;
    Numerics numerics;
    TensorSet inputs;
};

struct Deviation {
    std::string id;    ///< what is wrong, snake_case: "causal_top_left"
    std::string says;  ///< completes "it computes ...": "a causal mask aligned top-left"

    /// The call such a kernel answers instead; none where this call gives the deviation nothing to
    /// change. Empty where `formula` is given.
    std::function<std::optional<Specification>(const Specification&)> respecify{};

    /// The answer itself, where no specification of attention gives it; `truth` is the reference's
    /// answer. An empty output or lse is not judged.
    std::function<std::optional<bound::Expected>(const Specification&,
                                                 const bound::Expected& truth)>
        formula{};

    /// Whether the log-sum-exp that was observed refutes `formula`, where that takes less to see.
    std::function<bool(const Specification&, const bound::Expected& truth, const Tensor& lse)>
        lse_refutes{};

    /// What the kernel declares of this point, in words; empty where the problem alone says it.
    std::function<std::string(const Specification&)> declares{};

    law::Tells tells = law::Tells::nothing;  ///< what a law has to tell to show it best

    /// Of several forms of one defect, what they have in common; empty: it is none of several.
    std::string form_of{};

    /// The deviations that are what it makes of some calls: found beside it, they are no others.
    std::vector<std::string> entails{};

    /// `formula` is right of calls that drop weights. Others are asked of values of which nothing
    /// is dropped (reference/oracle/undropped.hpp).
    bool takes_dropout = false;

    /// What it does depends on how keys are parted. Where no splits are asked for that is the
    /// kernel's own choice, and an answer agrees that does so with keys parted in some way.
    bool by_parts = false;
};

inline Deviation as_form_of(std::string defect, Deviation deviation) {
    deviation.form_of = std::move(defect);
    return deviation;
}

inline Deviation of_parts(Deviation deviation) {
    deviation.by_parts = true;
    return deviation;
}

/// All known deviations. Where two explain an output equally well, the earlier one is reported, so
/// the more particular stand first.
std::span<const Deviation> deviations();

/// The families the list is made of; each in a file of its own.
std::vector<Deviation> mask_deviations();  ///< with those of the mask tensor and of key lengths
std::vector<Deviation> key_length_deviations();
std::vector<Deviation> mask_tensor_deviations();
std::vector<Deviation> score_deviations();  ///< with those of the soft cap and the sink
std::vector<Deviation> softcap_deviations();
std::vector<Deviation> sink_deviations();
std::vector<Deviation> cache_deviations();
std::vector<Deviation> position_deviations();  ///< with those of a rotation
std::vector<Deviation> rotation_deviations();
std::vector<Deviation> head_deviations();
std::vector<Deviation> hidden_deviations();
std::vector<Deviation> hidden_at_scores();
std::vector<Deviation> maximum_deviations();
std::vector<Deviation> output_deviations();
std::vector<Deviation> lse_deviations();
std::vector<Deviation> online_deviations();
std::vector<Deviation> rounding_deviations();
std::vector<Deviation> input_deviations();

/// What a deviation expects of a call; none where it does not apply.
std::optional<bound::Expected> predict(const Deviation& deviation, const Specification& asked,
                                       const bound::Expected& truth);

/// The first of the tile that n lies in, below 0 too.
inline std::int64_t tile_begin(std::int64_t n, std::int64_t tile) noexcept {
    return (n < 0 ? n - tile + 1 : n) / tile * tile;
}

/// n >= 1.
inline std::int64_t power_of_two_at_least(std::int64_t n) noexcept {
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
}

}  // namespace attest::diagnosis
