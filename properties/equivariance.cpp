// Equivariance: attention knows its keys by what they hold, not by where they stand. Permuting
// keys, queries, heads, sequences or channels permutes the result and changes nothing else; and
// where a mask or a position does tell places apart, the permutation must show.
//
// A permutation moves a row to another place in a tile and a key to another place in a sum, and a
// correct kernel may round differently there. So these laws hold within the two runs' bounds, and
// to the bit only for whole sequences of a kernel that claims batch invariance.

#include <cmath>
#include <vector>

#include "properties/law/case_sets.hpp"
#include "properties/law/permuting.hpp"
#include "properties/law/placed.hpp"
#include "properties/law/property.hpp"

namespace attest::law {

namespace {

constexpr FeatureSet unmasked = placeless.without(Feature::mask_bool)
                                    .without(Feature::mask_additive)
                                    .without(Feature::lens_q)
                                    .without(Feature::lens_kv)
                                    .without(Feature::cache)
                                    .without(Feature::paged);

bool several_keys(const Problem& p) {
    return keys_everywhere(p) >= 2;
}
bool several_queries(const Problem& p) {
    return queries_everywhere(p) >= 2;
}
bool several_tokens(const Problem& p) {
    return p.len_q >= 2;
}
bool several_heads(const Problem& p) {
    return p.heads_q >= 2;
}
bool several_sequences(const Problem& p) {
    return p.batch >= 2;
}
bool three_tokens(const Problem& p) {
    return p.len_q >= 3;
}
bool pairs_to_show(const Problem& p) {
    return p.len_q >= 2 && value_dim(p) >= 2;
}

constexpr const char* definition = "Vaswani et al. 2017, eq. 1";

Property tokens() {
    return {
        .id = "equivariance.tokens",
        .statement =
            "Without mask and position, reordering the tokens of a sequence reorders the output "
            "rows and changes none of them.",
        .statement_short = "Attn(PX) = P Attn(X) without mask and position",
        .why =
            "O_i = sum_j exp(s_ij) v_j / sum_j exp(s_ij) with s_ij = scale q_i.k_j: the sums run "
            "over a set of keys, so with rows of Q, K and V permuted alike the row of a token is "
            "the same sum in another order. Both runs are within their bounds of it.",
        .source = "Lee et al. 2019, Set Transformer, property 1",
        .compares = Compares::bound,
        .cases = {.allow = unmasked, .cost = 2, .square = true, .admits = several_tokens},
        .check = always<permuted_tokens>,
        .turned_red_by = {planted::last_key_scores_zero()},
    };
}

Property keys() {
    return {
        .id = "equivariance.keys",
        .statement = "Permuting keys and values together leaves the output unchanged.",
        .statement_short = "permuting (K, V) together leaves O unchanged",
        .why =
            "O_i and L_i are sums over the visible keys; a permutation of (k_j, v_j, mask_ij) in j "
            "only reorders the addends. The order changes the rounding, so the two runs agree "
            "within the sum of their bounds, which hold for any order.",
        .source = definition,
        .compares = Compares::bound,
        .cases = {.allow = placeless, .cost = 2, .admits = several_keys},
        .check = always<permuted_keys>,
        .turned_red_by = {planted::last_key_scores_zero()},
    };
}

Property queries() {
    return {
        .id = "equivariance.queries",
        .statement = "Permuting the queries permutes the output rows.",
        .statement_short = "permuting the queries permutes the output rows",
        .why =
            "O_i depends on q_i, on K, V and on row i of the mask alone. Within bounds and not to "
            "the bit: a row at another place in a tile may meet another vector path.",
        .source = definition,
        .compares = Compares::bound,
        .cases = {.allow = placeless, .cost = 2, .admits = several_queries},
        .check = always<permuted_queries>,
        .turned_red_by = {planted::last_query_forgotten()},
    };
}

Property heads() {
    return {
        .id = "equivariance.heads",
        .statement =
            "Permuting the key/value heads with their query heads, and the query heads inside a "
            "group, permutes the output heads.",
        .statement_short = "permuting the heads permutes the output heads",
        .why =
            "Query head h reads key/value head floor(h/g), its own mask, slope and sink, and "
            "nothing of other heads: renaming heads consistently renames the outputs.",
        .source = "Ainslie et al. 2023, GQA",
        .compares = Compares::bound,
        .cases = {.allow = attention, .cost = 2, .admits = several_heads},
        .check = always<permuted_heads>,
        .turned_red_by = {planted::one_query_head_for_all()},
    };
}

Property batch() {
    return {
        .id = "equivariance.batch",
        .statement = "Permuting the sequences of a batch permutes their outputs.",
        .statement_short = "permuting the batch permutes the outputs",
        .why =
            "A sequence's rows depend on that sequence's tensors alone. To the bit for a kernel "
            "that claims deterministic and batch_invariant, within the bounds otherwise.",
        .source = definition,
        .compares = Compares::bound,
        .cases = {.allow = attention.without(Feature::documents),
                  .require_any = {FeatureSet(), FeatureSet(Feature::lens_kv),
                                  FeatureSet(Feature::cache, Feature::paged, Feature::lens_kv)},
                  .cost = 2,
                  .admits = several_sequences},
        .check = always<permuted_batch>,
        .turned_red_by = {planted::first_sequence_doubled()},
    };
}

void first_channel_doubled(Question& q) {
    Tensor& queries = q.inputs[Role::q];
    for (std::int64_t at = 0; at < queries.size(); at += q.problem.dim_qk)
        queries.set(at, 2 * queries.get(at));
}

/// What signed permutations cannot tell from attention.
void channels_cubed(Question& q) {
    Tensor& queries = q.inputs[Role::q];
    for (std::int64_t at = 0; at < queries.size(); ++at)
        queries.set(at, std::pow(queries.get(at), 3));
}

Property features() {
    return {
        .id = "equivariance.features",
        .statement =
            "Permuting the channels of Q and K alike, with common signs, or turning them into each "
            "other changes nothing; permuting channels of V, with signs, does the same to O.",
        .statement_short = "turning channels of Q and K alike changes nothing",
        .why =
            "q.k = (A q).(A k) for orthogonal A, and O(V A) = O(V) A. Signed permutations are "
            "exact in "
            "any format: products keep their bits and only the order of the sum changes. So is "
            "half a Hadamard matrix of order 4, on numbers of few bits: there every product is "
            "another one.",
        .source = definition,
        .compares = Compares::bound,
        .cases = {.allow = attention.without(Feature::rope), .cost = 2},
        .check = always<permuted_features>,
        .turned_red_by = {{.id = "first_channel_doubled", .asks = first_channel_doubled},
                          {.id = "channels_cubed", .asks = channels_cubed}},
    };
}

Property broken() {
    return {
        .id = "equivariance.broken",
        .statement =
            "With a causal mask, a window, ALiBi or RoPE the permutation law for tokens fails: the "
            "places of the tokens show in the output.",
        .statement_short = "a mask or position breaks the token permutation law",
        .why =
            "Let the references of f(X) at token t and of f(PX) where t went be apart: [v1 -+ (b1 "
            "+ e1)] and [v2 -+ (b2 + e2)], rounded to the output format, do not meet. Rounding is "
            "monotone, so outputs that respect both bounds differ by at least the distance of the "
            "intervals. Equal outputs ignore what tells places apart.",
        .source = "Yun et al. 2020, Are Transformers universal approximators, section 2",
        .compares = Compares::property,
        .cases = {.allow = FeatureSet(Feature::causal, Feature::window, Feature::alibi,
                                      Feature::rope, Feature::gqa, Feature::dim_v, Feature::scale,
                                      Feature::lse, Feature::layout, Feature::mixed_formats),
                  .require_any = {FeatureSet(Feature::causal), FeatureSet(Feature::window),
                                  FeatureSet(Feature::alibi), FeatureSet(Feature::rope)},
                  .kinds = {ValueKind::normal, ValueKind::uniform, ValueKind::small_int,
                            ValueKind::flat, ValueKind::cancel_v},
                  .cost = 4,
                  .square = true,
                  .admits = three_tokens},
        .check = always<places_show>,
        .turned_red_by = {planted::causal_mask_ignored()},
    };
}

Property asymmetry() {
    return {
        .id = "equivariance.asymmetry",
        .statement =
            "With Q = K the scores are symmetric and the weights are not: the softmax normalises "
            "each row over its keys.",
        .statement_short = "with Q = K, S is symmetric and P is not",
        .why =
            "S_ab = S_ba, so P_ab / P_ba = exp(L_b - L_a): the weights differ wherever the "
            "log-sum-exps do, and in that direction; a softmax over queries has the opposite "
            "ratio, and doubly normalised weights have none. Columns of V with a single one show "
            "P_ab and P_ba; where the references are apart the outputs must be too.",
        .source = definition,
        .compares = Compares::property,
        .cases = {.allow = unmasked.without(Feature::mixed_formats),
                  .kinds = {ValueKind::normal, ValueKind::uniform, ValueKind::small_int,
                            ValueKind::wide},
                  .cost = 4,
                  .square = true,
                  .admits = pairs_to_show},
        .check = always<softmax_runs_over_keys>,
        .turned_red_by = {planted::scores_negated()},
    };
}

}  // namespace

std::vector<Property> equivariance() {
    return {tokens(), keys(), queries(), heads(), batch(), features(), broken(), asymmetry()};
}

}  // namespace attest::law
