// Masking: a query sees its visible keys, all of them and no others. Non-interference is judged by
// overwriting what a row may not see (properties/law/hidden.hpp), influence by changing what it
// may (influence.hpp), and the forms of one mask against each other (mask_forms.hpp).

#include <array>
#include <utility>
#include <vector>

#include "properties/law/case_sets.hpp"
#include "properties/law/hidden.hpp"
#include "properties/law/influence.hpp"
#include "properties/law/mask_forms.hpp"
#include "properties/law/poison.hpp"
#include "properties/law/property.hpp"

namespace attest::law {

namespace {

constexpr std::array finite_fillings = {Filling::fresh, Filling::huge};
constexpr FeatureSet position_free = attention.without(Feature::alibi)
                                         .without(Feature::rope)
                                         .without(Feature::cache)
                                         .without(Feature::paged);

template <Hiding by>
Judgement check_hidden_by(const Trial& trial) {
    return non_interference(Run(trial), by, finite_fillings);
}

Judgement check_influence(const Trial& trial) {
    const Judgement values = values_matter(trial);
    if (values.violated()) return values;
    const Judgement keys = key_channels_matter(trial);
    if (keys.violated()) return keys;
    return nothing_compared(values.elements + keys.elements, 0,
                            "no query sees a key whose influence is certain to show");
}

bool room_to_hide(const Problem& p) {
    return p.len_q >= 2 && p.len_kv >= 2;
}
bool two_documents(const Problem& p) {
    return p.mask.documents_q.size() >= 2;
}
/// Aligned bottom-right, the last query does not reach the first key, or the first the last.
bool window_hides(const Problem& p) {
    const Window& window = p.mask.window;
    return (window.left >= 0 && window.left < p.len_kv - 1) ||
           (window.right >= 0 && window.right < p.len_q - 1);
}
bool alignment_shows(const Problem& p) {
    return p.len_q != p.len_kv && (p.mask.causal || window_hides(p));
}
bool rows_may_be_empty(const Problem& p) {
    const Mask& mask = p.mask;
    const auto has_more_queries = [&] {
        for (std::size_t d = 0; d < mask.documents_q.size(); ++d)
            if (mask.documents_q[d] > 0 &&
                mask.documents_kv[d] < (mask.causal ? mask.documents_q[d] : 1))
                return true;
        return false;
    };
    return mask.tensor.kind != MaskKind::none || !mask.lens_q.empty() ||
           (!mask.lens_kv.empty() && !p.cache.present) || has_more_queries() ||
           (mask.causal && p.len_q > p.len_kv);
}
bool shares_an_axis(const Problem& p) {
    const MaskTensor& m = p.mask.tensor;
    return (m.shared_batch && p.batch > 1) || (m.shared_heads && p.heads_q > 1) ||
           (m.shared_queries && p.len_q > 1) || (m.shared_keys && p.len_kv > 1);
}

// What all laws of non-interference have in common.
Property hiding_law(std::string id, std::string statement, std::string statement_short,
                    std::string why, FeatureSet required, Plan (*check)(const Given&),
                    bool (*admits)(const Problem&), PlantedDeviation turned_red_by) {
    return {
        .id = std::move(id),
        .statement = std::move(statement),
        .statement_short = std::move(statement_short),
        .why = std::move(why),
        .source = "Goguen and Meseguer 1982, noninterference; Vaswani et al. 2017, section 3.2.3",
        .compares = Compares::bits,
        .cases = {.allow = attention, .require = required, .admits = admits},
        .check = check,
        .turned_red_by = {std::move(turned_red_by)},
    };
}

std::vector<Property> hiding_laws() {
    return {
        hiding_law("masking.causal",
                   "Changing keys and values that the causal mask hides changes no bit of the rows "
                   "it hides them from.",
                   "keys behind the causal mask change no bit",
                   "O_i and L_i are functions of q_i and of the visible keys and values alone. The "
                   "two runs differ in hidden numbers only, so a deterministic kernel repeats the "
                   "same operations on the same operands for that row. One that claims no "
                   "determinism is held to the bounds of the common truth.",
                   FeatureSet(Feature::causal), always<check_hidden_by<Hiding::causal>>,
                   room_to_hide, planted::causal_mask_ignored()),
        hiding_law("masking.window",
                   "Changing keys and values outside a row's window changes no bit of the row.",
                   "keys outside the window change no bit",
                   "As masking.causal: a key outside [i + off - left, i + off + right] is no "
                   "operand of row i.",
                   FeatureSet(Feature::window), always<check_hidden_by<Hiding::window>>,
                   window_hides, planted::window_one_wider()),
        hiding_law("masking.document",
                   "Changing the keys and values of one packed document changes no bit of the "
                   "others.",
                   "other documents' keys change no bit",
                   "As masking.causal: queries see the keys of their own document only.",
                   FeatureSet(Feature::documents), always<check_hidden_by<Hiding::document>>,
                   two_documents, planted::documents_ignored()),
    };
}

Property padding() {
    Property law =
        hiding_law("masking.padding",
                   "Keys, values and queries past a sequence's length change no bit of its rows.",
                   "what lies past a sequence's length changes no bit",
                   "As masking.causal: keys j >= lens_kv are hidden from every query, and rows i "
                   ">= lens_q are no queries.",
                   {}, always<padding_changes_nothing>, nullptr, planted::query_lengths_ignored());
    law.cases.require_any = any_of({Feature::lens_kv, Feature::lens_q});
    return law;
}

Property poison() {
    Property law = hiding_law(
        "masking.poison",
        "NaN, infinities and huge numbers in hidden keys and values, and in cache slots that hold "
        "no key, change no bit.",
        "NaN, Inf and huge numbers in hidden places change nothing",
        "As masking.causal, with the numbers that arithmetic cannot hide: 0 * NaN and 0 * inf are "
        "NaN, a masked score of 1e4 beats every visible one, -inf + inf is NaN. A dialect that "
        "leaves non-finite numbers unspecified is tried with finite ones alone.",
        {}, always<poison_changes_nothing>, nullptr, planted::every_mask_ignored());
    law.cases.require_any =
        any_of({Feature::causal, Feature::window, Feature::lens_kv, Feature::lens_q,
                Feature::documents, Feature::mask_bool, Feature::mask_additive, Feature::cache});
    law.cases.cost = 2;
    law.tells = Tells::leak;
    return law;
}

Property empty_row() {
    return {
        .id = "masking.empty_row",
        .statement =
            "A query that sees no key comes out as the kernel declares, and other rows do not "
            "notice.",
        .statement_short = "rows without keys follow the declared policy",
        .why =
            "Over no key at all softmax is 0/0: each kernel declares what it returns. zeros: O = 0 "
            "and L = log 0 = -inf exactly; nan: O = NaN; refuse: nothing to judge. Rows past "
            "lens_q are zeros with L = -inf always. With a sink the denominator is exp(sink): O = "
            "0. Other rows read nothing of an empty one.",
        .source = "reference/problem/README.md, empty row",
        .compares = Compares::property,
        .cases = {.allow = attention,
                  .require_any =
                      any_of({Feature::causal, Feature::window, Feature::lens_kv, Feature::lens_q,
                              Feature::documents, Feature::mask_bool, Feature::mask_additive}),
                  .cost = 2,
                  .more_queries = true,
                  .admits = rows_may_be_empty},
        .check = empty_rows_follow_policy,
        .turned_red_by = {planted::empty_rows_are_nan()},
    };
}

Property influence() {
    return {
        .id = "masking.influence",
        .statement =
            "Every visible key matters: changing a value, or a channel of a key, changes the rows "
            "that see it.",
        .statement_short = "every visible key and channel changes the row",
        .why =
            "dO_ic/dv_jc = P_ij > 0, and a change of k_jc by x moves S_ij by scale q_ic x. The "
            "references of both runs, rounded to the output format, bound both outputs; where they "
            "do not meet, the outputs differ by at least their distance. Spikes in V are 2^10 "
            "times the largest value and are tried with flat scores, so that no visible weight is "
            "small.",
        .source = "the definition: P_ij > 0 for every visible key",
        .compares = Compares::property,
        .tells = Tells::visibility,
        .cases = {.allow = attention,
                  .require_any = {FeatureSet(), FeatureSet(Feature::causal),
                                  FeatureSet(Feature::window), FeatureSet(Feature::lens_kv),
                                  FeatureSet(Feature::mask_bool),
                                  FeatureSet(Feature::mask_additive)},
                  .cost = 2},
        .check = always<check_influence>,
        .turned_red_by = {planted::last_key_forgotten()},
    };
}

Property equivalence() {
    return {
        .id = "masking.equivalence",
        .statement =
            "A built-in mask, the same mask as a boolean tensor, as an additive one with -inf, and "
            "slicing the hidden keys away give the same rows.",
        .statement_short = "built-in = boolean = additive -inf = sliced away",
        .why =
            "All of them leave the same set N(i) of visible keys, and O_i and L_i are sums over "
            "N(i). Different code paths may sum in different orders: the runs agree within the sum "
            "of their bounds.",
        .source = "Vaswani et al. 2017, section 3.2.3",
        .compares = Compares::bound,
        .cases = {.allow = position_free,
                  .require_any =
                      any_of({Feature::causal, Feature::window, Feature::lens_kv,
                              Feature::documents, Feature::mask_bool, Feature::mask_additive}),
                  .cost = 4},
        .check = always<mask_forms_agree>,
        .turned_red_by = {planted::causal_mask_ignored()},
    };
}

Property alignment() {
    return {
        .id = "masking.alignment",
        .statement =
            "With Tq != Tk the diagonal of causal masks and windows lies where the kernel declares "
            "it.",
        .statement_short = "the declared causal alignment, no other",
        .why =
            "Bottom-right: key j is opposite query j - (Tk - Tq); top-left: opposite query j. The "
            "reference of the other alignment is that of the explicit mask it stands for. Where "
            "the two are apart, no row of the output may lie in the other's intervals.",
        .source = "FlashAttention 2.1 changed its alignment; PyTorch and cuDNN have both",
        .compares = Compares::property,
        .cases = {.allow = position_free,
                  .require_any = any_of({Feature::causal, Feature::window}),
                  .kinds = {ValueKind::normal, ValueKind::uniform, ValueKind::small_int,
                            ValueKind::cancel_v, ValueKind::flat, ValueKind::logit50,
                            ValueKind::ascending, ValueKind::descending},
                  .cost = 2,
                  .admits = alignment_shows},
        .check = always<alignment_is_declared>,
        .turned_red_by = {planted::other_alignment()},
    };
}

Property broadcast() {
    return {
        .id = "masking.broadcast",
        .statement =
            "A mask shared along axes that the kernel takes means the same as its expansion.",
        .statement_short = "a broadcast mask equals its expansion",
        .why =
            "Broadcasting is a shorthand: element (b, h, i, j) of the expanded mask is the shared "
            "one. Within bounds, since the two forms may be loaded by different code.",
        .source = "NumPy broadcasting rules",
        .compares = Compares::bound,
        .cases = {.allow = attention,
                  .require_any = any_of({Feature::mask_bool, Feature::mask_additive}),
                  .cost = 2,
                  .admits = shares_an_axis},
        .check = broadcast_agrees,
        .turned_red_by = {planted::shared_masks_ignored()},
    };
}

}  // namespace

std::vector<Property> masking() {
    std::vector<Property> laws = hiding_laws();
    laws.front().tells = Tells::visibility;  // masking.causal
    laws.insert(laws.begin() + 2, padding());
    for (Property (*law)() : {poison, empty_row, influence, equivalence, alignment, broadcast})
        laws.push_back(law());
    return laws;
}

}  // namespace attest::law
