#pragma once
// The backward pass as its definition reads, every step of it exchangeable: a wrong backward is the
// right one with a step exchanged. Each number carries how far a kernel of declared numerics may be
// from it, so that what is predicted can be held against what was observed.
//
//   P = exp(S - L),  dP = dO.v,  D = dO.O - dL,  dS = P (dP - D),  dX = dS cap'(X)
//   dQ = scale sum dX k,  dK = scale sum dX q,  dV = sum P dO,  dbias = sum dS,  dsink = -sum P D
//   dslope = -sum |i + off - j| dbias
//
// O and L are those that the kernel's own forward returned, dL is the gradient of L, 0 where none
// is given. Dropout multiplies dP, and P in dV.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "properties/diagnosis/backward_call.hpp"

namespace attest::diagnosis {

/// What backward recomputes of a score; each may be left out.
struct ScoreParts {
    double scale = 1;
    bool mask = true, alibi = true, cap = true;
};

struct ModelRow {
    const BackwardCall& call;
    std::int64_t b = 0, h = 0, i = 0;
    const BackwardCall::RowFacts& facts;
    Near lse, delta;  ///< delta: to the step of its own dO.O, then that less dL
};

struct ModelPair {
    const ModelRow& row;
    std::int64_t j = 0;
    const BackwardScore& facts;
    Near score, capped;  ///< capped: as the cap gives it
    double biased = 0;   ///< what went into the cap
    Near p{}, dp{}, ds{};
};

/// Element by element, in the gradient's own shape. Untold: of nothing is claimed.
struct Predicted {
    std::map<Role, std::vector<Near>> of;
    std::vector<Near>& operator[](Role role) { return of[role]; }
};

/// How what belongs together becomes one element.
enum class Joining : std::uint8_t { sum, last, first, mean };

struct ModelSteps {
    ScoreParts parts{};  ///< scale: a factor on the right one
    std::function<bool(const ModelRow&, std::int64_t j, bool is)> sees{};
    std::function<Near(const ModelRow&)> lse{}, delta{}, d_lse{};
    std::function<Near(const ModelPair&)> probability{}, ds{}, slope{}, value_weight{};
    std::function<Near(const ModelPair&)> dp{};  ///< before dropout, given the right one
    std::function<double(const ModelPair&)> dp_kept{}, value_kept{};  ///< dropout's factor on each
    /// dX as the sums of dQ and dK take it.
    std::function<Near(const ModelPair&, Near dx)> stored{};
    std::function<Near(const ModelPair&, Near term)> mask_term{};
    std::function<Near(const ModelRow&, Near weight)> sink_term{};
    /// Of the gradient of the pair's bias.
    std::function<Near(const ModelPair&, Near)> slope_term{};
    /// Of which key head what is: K and V as read, V in dP alone, K in dQ alone; the sums of dK and
    /// dV; and of which query head the sums of sinks and slopes.
    using HeadOf = std::function<std::int64_t(const BackwardCall&, std::int64_t h)>;
    HeadOf read_head{}, value_head{}, product_head{}, key_head{}, shared_head{};
    /// Of which sequence the sums of dK and dV are.
    std::function<std::int64_t(const BackwardCall&, std::int64_t b)> key_sequence{};
    /// Whether a query head adds to dK and dV.
    std::function<bool(const BackwardCall&, std::int64_t h)> into_keys{};
    std::function<const BackwardCall::RowFacts&(const ModelRow&)> d_o{};  ///< whose dO is read
    std::function<std::int64_t(const BackwardCall&)> dp_channels{};       ///< that dP is a sum of
    /// How often a pair that is seen adds to every sum: twice where two tiles have it.
    std::function<int(const ModelRow&, std::int64_t j)> times{};
    /// Whose terms of a bias gradient are one to `mask`: `last` and `first` are of these. Each term
    /// by itself where it is empty.
    std::function<std::int64_t(const ModelRow&)> mask_owner{};
    Joining groups = Joining::sum, mask = Joining::sum, sinks = Joining::sum, slopes = Joining::sum;
    double sum_unit = 0;  ///< of the format that gradients are summed in, beside the declared one
    static constexpr std::int64_t all_rows = -1;
    /// Rows up to the next multiple of it, or all of them, are rows like any other.
    std::int64_t past_lengths = 0;
    int turns_back = 1;                        ///< 0: not at all, -1: the other way
    std::function<void(Problem&)> turns_as{};  ///< the problem whose RoPE is turned back
    std::optional<Precision> turn_table{};     ///< cosines and sines that turn back are rounded to
    bool turns_across = false;  ///< style half: channel c with c + dim_qk / 2, not + dims / 2
    bool plain_queries = false, plain_keys = false;  ///< not turned: in dK, in dQ
    std::function<void(const BackwardCall&, Predicted&)> afterwards{};
};

Predicted run_backward(const BackwardCall& call, const ModelSteps& steps);

/// x rounded to a format: an interval where it lies across two of its members.
Near rounded_to(Near x, Precision format);

/// Whether the row is of the last sequence, of the last document where these are packed.
bool of_last_packed(const ModelRow& row);

/// The largest score that the row sees, the sink's included.
Near largest_score(const ModelRow& row);

/// A sum over the channels of the row's dO, as delta is one.
Near sum_of_channels(const ModelRow& row, const std::function<Near(std::size_t channel)>& term);

/// The log-sum-exp of the keys that the row sees, the sink not among them.
Near lse_of_keys(const ModelRow& row);

/// The right steps, for the model and for deviations to build on.
void set_score(ModelPair& pair, const ScoreParts& parts);
Near weight_of(Near score, const ModelRow& row);
Near plain_probability(const ModelPair& pair);
Near plain_ds(const ModelPair& pair, Near delta);
Near plain_slope(const ModelPair& pair);
/// D as sum P dP of the keys that are seen, each term times `kept`: right with forward's.
Near delta_of_weights(const ModelRow& row, double (*kept)(const ModelPair&));
double as_forward_kept(const ModelPair& pair);
Near plain_slope_term(const ModelPair& pair, Near of_bias);
/// dQ and dK out of RoPE's frame.
void turn_back(const BackwardCall& call, const ModelSteps& steps, Predicted& out);

}  // namespace attest::diagnosis
