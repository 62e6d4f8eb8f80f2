#pragma once
// Ways to write a wrong specification as a right one of another problem, so that the reference
// itself computes it: an explicit additive mask can say any visibility, repeated heads any head
// mapping, added keys of zeros any padding.

#include <functional>
#include <limits>

#include "properties/diagnosis/deviation.hpp"

namespace attest::diagnosis {

/// Where a query and a key stand: sequence, and the packed document where there are any.
struct MaskPlace {
    std::int64_t batch = 0, head = 0, query = 0, key = 0;  ///< axis indices
    /// Both counted in the query's document: a column outside 0..len_kv-1 is another document's.
    std::int64_t row = 0, column = 0;
    std::int64_t len_q = 0, len_kv = 0;  ///< of the sequence or document
    bool in_document = true;             ///< false: the query is in none
};

/// The built-in mask rules of a problem, each open to change. Rows past lens_q stay what they are:
/// the reference knows them by the problem itself.
struct Rules {
    bool causal = false;
    std::int64_t diagonal = 0;     ///< added to the causal limit: 1 shows one key too many
    bool top_left = false;         ///< of the causal mask
    bool window_top_left = false;  ///< of the window
    /// Added to a query's number instead of its own lengths' difference, of both.
    std::optional<std::int64_t> causal_offset, window_offset;
    Window window;
    WindowEnds ends = WindowEnds::inclusive;
    bool key_lengths = true, documents = true, mask_tensor = true;
    std::int64_t key_tile = 1;  ///< lengths of keys are rounded up to its multiples
    /// Keys before and behind those of a sequence or document that are seen too.
    std::int64_t keys_before = 0, keys_behind = 0;
    std::function<bool(const MaskPlace&)> also_hidden;  ///< a further rule; empty: none
};

Rules rules_of(const Specification& s);

/// Where query i of sequence b stands; the key and its column are any.
MaskPlace row_of(const Specification& s, std::int64_t b, std::int64_t i);

/// Keys before row 0 of the place's sequence or document, as the problem and dialect align them.
std::int64_t before_row(const Specification& s, const MaskPlace& place);

/// The first and last query of a place's block of so many rows: of queries where group is 1, else
/// of the rows of all heads of a group, query by query.
struct BlockOfRows {
    std::int64_t first = 0, last = 0;
    std::int64_t first_head = 0;  ///< of its first row, in the group
};
BlockOfRows block_of(const MaskPlace& place, std::int64_t rows, std::int64_t group);
std::string rows_of_block(std::int64_t rows, bool of_group);  ///< "16 rows of all heads of a group"

/// What the mask tensor adds to a score: 0 or -inf where it is boolean.
bool has_mask(const Specification& s);  ///< a mask tensor
double mask_value(const Specification& s, const MaskPlace& place);

/// True where the rules hide the key; the mask tensor apart.
bool hidden(const Rules& rules, const MaskPlace& place);

/// The same problem with these rules written out as an additive mask in f64; a mask tensor the
/// problem has is folded in. Hidden keys get `hidden_bias` instead of -inf where it is given.
Specification with_rules(const Specification& s, const Rules& rules,
                         const std::function<double(const MaskPlace&)>& hidden_bias = {});

/// The same problem with these places hidden, too: where there is no such place that very problem,
/// which a kernel that loses them answers rightly.
Specification hiding(const Specification& s, const std::function<bool(const MaskPlace&)>& lost);

/// The same problem with this added to the scores of the keys that are visible, in f64.
Specification with_bias(const Specification& s,
                        const std::function<double(const MaskPlace&)>& bias);

/// The same problem under these rules, with ALiBi by this distance instead of its own.
Specification with_distances(const Specification& s, const Rules& rules,
                             const std::function<double(const MaskPlace&)>& distance);

/// The same problem without any mask: every key visible to every query.
Specification unmasked(const Specification& s);

/// The problem with its mask tensor mapped element by element: visible as a number where boolean.
Specification with_mask_values(const Specification& s,
                               const std::function<double(double)>& value_of);

/// Another number for each query head: slopes or sinks, in f64.
Specification with_numbers_of_heads(const Specification& s, Role role,
                                    const std::function<double(std::int64_t)>& number_of);

/// Scores of channels [from, to) alone.
Specification with_channels(const Specification& s, std::int64_t to, std::int64_t from = 0);

Specification with_scale(const Specification& s, double scale);

/// The same problem of a call that has a sink, without it.
Specification without_sink(const Specification& s);

/// Each sequence's keys are followed by keys and values of zeros, up to a multiple of `tile`, that
/// the causal mask and window alone can hide. None where no key is added, or where positions
/// matter, or splits, each of which has a last tile.
std::optional<Specification> with_zero_tail(const Specification& s, std::int64_t tile);

/// What is expected of an output, element by element.
using ElementOf = std::function<bound::ExpectedElement(std::int64_t b, std::int64_t h,
                                                       std::int64_t i, std::int64_t c)>;
bound::Expected output_of(const Problem& problem, const ElementOf& element);

/// Q = K = 0 and no bias under these rules: every visible key weighs the same. None with a sink,
/// whose weight would be open.
std::optional<Specification> uniform(const Specification& s, const Rules& rules);

bool has_key_lengths(const Specification& s);
bool has_documents(const Specification& s);

/// Other rules where `has` says that there is something to change.
Deviation rule_deviation(std::string id, std::string says,
                         std::function<bool(const Specification&)> has,
                         std::function<void(Rules&)> change);

Deviation formula_deviation(
    std::string id, std::string says,
    std::function<std::optional<bound::Expected>(const Specification&, const bound::Expected&)>
        formula);

/// A tensor of another shape, element by element.
Tensor remake(
    ElementType type, const Shape& shape,
    const std::function<double(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>& element);

/// Length of sequence b: lens[b], or the axis.
std::int64_t length_of(const std::vector<std::int64_t>& lens, std::int64_t axis, std::int64_t b);

}  // namespace attest::diagnosis
