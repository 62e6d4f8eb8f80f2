// Online softmax: attention may be computed a part of the keys at a time, in any order, with a
// running maximum and a running sum. These laws look at what that can get wrong: merging, tile
// edges, the order in which the maximum rises, and numbers at the edge of the format.

#include "properties/law/property.hpp"
#include "properties/partition_checks.hpp"

namespace attest::laws {

namespace {

constexpr FeatureSet attention = FeatureSet::all().without(Feature::dropout);
/// Keys have no place: a part of them, or another order, has the same meaning.
constexpr FeatureSet placeless = attention.without(Feature::causal)
                                     .without(Feature::window)
                                     .without(Feature::documents)
                                     .without(Feature::cache)
                                     .without(Feature::paged)
                                     .without(Feature::alibi)
                                     .without(Feature::rope)
                                     .without(Feature::lens_kv);

/// A sink would be counted once a part.
CaseSpace merge_space() {
    return {.allow = placeless.without(Feature::sink),
            .require = FeatureSet(Feature::lse),
            .kinds = {ValueKind::normal, ValueKind::uniform, ValueKind::small_int, ValueKind::flat,
                      ValueKind::ties, ValueKind::one_hot, ValueKind::logit50, ValueKind::const_v,
                      ValueKind::ascending, ValueKind::descending, ValueKind::negative_logits},
            .scores_max = 2048,
            .len_max = 300,
            .dim_max = 64};
}

/// Lengths follow from the edge, so nothing that lists lengths or needs equal ones is drawn.
CaseSpace edge_space() {
    return {.allow = attention.without(Feature::lens_q)
                         .without(Feature::lens_kv)
                         .without(Feature::documents)
                         .without(Feature::alibi)
                         .without(Feature::rope),
            .scores_max = 4096,
            .len_max = 300,
            .dim_max = 64,
            .batch_max = 2};
}

CaseSpace order_space() {
    return {.allow = placeless,
            .kinds = {ValueKind::normal, ValueKind::uniform, ValueKind::small_int, ValueKind::flat},
            .scores_max = 2048,
            .len_max = 300,
            .dim_max = 48};
}

CaseSpace stability_space() {
    return {.allow = attention,
            .kinds = {ValueKind::logit50, ValueKind::logit1e3, ValueKind::logit1e4,
                      ValueKind::negative_logits, ValueKind::ties, ValueKind::flat, ValueKind::tiny,
                      ValueKind::wide, ValueKind::one_hot, ValueKind::qk_cancel},
            .scores_max = 4096,
            .len_max = 300,
            .dim_max = 128};
}

}  // namespace

std::vector<Property> partition() {
    return {
        {
            .id = "partition.merge",
            .statement = "Keys split anywhere, run in parts and merged by L, give the whole.",
            .statement_short = "parts of the keys merged by L give the whole",
            .why =
                "exp(L) of the whole is the sum of exp(L_p) over the parts, and O = sum_p "
                "exp(L_p - L) O_p. The parts are known within their bounds; an error common to all "
                "L_p cancels, so each counts with |O_p - O|. Parts that see no key have L = -inf "
                "and drop out.",
            .source = "Milakov and Gimelshein 2018; Dao 2023 (Flash-Decoding)",
            .compares = Compares::bound,
            .needs = {.lse = true},
            .cases = merge_space(),
            .check = check_merge,
            .file = "properties/partition.cpp",
        },
        {
            .id = "partition.tile_edges",
            .statement = "At tile edges, one key less and one key more, every output is in bounds.",
            .statement_short = "outputs are within bounds at every tile edge +-1",
            .why =
                "Where keys are cut into tiles does not enter the definition. Lengths 16, 32, 64, "
                "80, 96, 112, 128, 176, 256 and their neighbours are where the last tile is full, "
                "empty or holds one key; the outputs there must be within the same bounds as "
                "anywhere.",
            .source = "Dao et al. 2022, algorithm 1",
            .compares = Compares::bound,
            .needs = {},
            .cases = edge_space(),
            .check = check_tile_edges,
            .file = "properties/partition.cpp",
        },
        {
            .id = "partition.order",
            .statement = "The running maximum may rise late, never, or on the last key: no matter.",
            .statement_short = "when the running maximum rises does not matter",
            .why =
                "Softmax is symmetric in its (score, value) pairs. Keys ordered by rising scores "
                "make a running maximum rise in every tile, falling ones never after the first, "
                "and "
                "with the largest last every earlier term must be rescaled at the end. All orders "
                "have one truth, and each run is held to its bound.",
            .source = "Milakov and Gimelshein 2018, algorithm 3",
            .compares = Compares::bound,
            .needs = {},
            .cases = order_space(),
            .check = check_order_of_keys,
            .file = "properties/partition.cpp",
        },
        {
            .id = "partition.stability",
            .statement = "Extreme scores and values give finite outputs within their bounds.",
            .statement_short = "extreme scores give finite outputs within bounds",
            .why =
                "With the maximum subtracted every exponent is at most 0 and the sum at least 1: "
                "nothing overflows for scores to 1e4 of either sign, ties, one outlier or "
                "subnormals, and the bound holds as it stands.",
            .source = "Higham, Blanchard and Higham 2021 (log-sum-exp and softmax)",
            .compares = Compares::bound,
            .needs = {},
            .cases = stability_space(),
            .check = check_stability,
            .file = "properties/partition.cpp",
        },
    };
}

}  // namespace attest::laws
