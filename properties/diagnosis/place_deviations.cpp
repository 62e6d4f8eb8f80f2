// Right numbers in wrong places: tensors exchanged, strides of another tensor, one sequence's or
// head's gradients for all; and backward of another problem than forward.

#include <fmt/format.h>

#include <algorithm>

#include "properties/diagnosis/backward_deviation.hpp"
#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/full_tiles.hpp"

namespace attest::diagnosis {

namespace {

using Afterwards = std::function<void(const BackwardCall&, Predicted&)>;

BackwardDeviation moved(std::string id, std::string says, Afterwards change, bool strays = false) {
    return {.id = std::move(id),
            .says = std::move(says),
            .change = [change = std::move(change)](const BackwardCall&,
                                                   ModelSteps& s) { s.afterwards = change; },
            .strays = strays};
}

Shape shape_in(const BackwardCall& call, Role role) {
    return shape_of(call.problem(), role).value();
}

/// Element (b, h, t, c) is that at `from`.
template <typename From>
void gather(const BackwardCall& call, Role role, Predicted& out, From from) {
    const Shape s = shape_in(call, role);
    const std::vector<Near> old = out[role];
    std::size_t at = 0;
    for (std::int64_t b = 0; b < s[0]; ++b)
        for (std::int64_t h = 0; h < s[1]; ++h)
            for (std::int64_t t = 0; t < s[2]; ++t)
                for (std::int64_t c = 0; c < s[3]; ++c)
                    out[role][at++] = old[static_cast<std::size_t>(from(s, b, h, t, c))];
}

bool contiguous(const Problem& p) {
    return p.layout_q == Layout{} && p.layout_k == Layout{} && p.layout_v == Layout{};
}

constexpr Role plain_roles[] = {Role::d_q, Role::d_k, Role::d_v};

/// Whether strides of another tensor are those of rows alone, or of heads and sequences too.
enum class Restrided : std::uint8_t { rows, all };

/// Rows of numbers written `stride` apart. What is written over, or not at all, is what the last
/// write left, or unknown.
void restride(const BackwardCall& call, Role role, std::int64_t stride, Restrided which,
              Predicted& out) {
    const Shape s = shape_in(call, role);
    if (stride == s[3]) return;
    const Problem& p = call.problem();
    if ((role == Role::d_k ? p.layout_k : p.layout_v) != Layout{})
        return out.of.clear();  // nothing is said of it
    const std::vector<Near> old = out[role];
    const std::int64_t size = static_cast<std::int64_t>(old.size());
    std::vector<Near>& now = out[role];
    for (Near& x : now) x.error = infinite;
    for (std::int64_t head = 0; head < s[0] * s[1]; ++head)
        for (std::int64_t t = 0; t < s[2]; ++t)
            for (std::int64_t c = 0; c < s[3]; ++c) {
                const std::int64_t at = head * s[2] * s[3];
                const std::int64_t first = which == Restrided::all ? head * s[2] * stride : at;
                const std::int64_t to = first + t * stride + c;
                if (to < size)
                    now[static_cast<std::size_t>(to)] =
                        old[static_cast<std::size_t>(at + t * s[3] + c)];
            }
}

/// Rows summed up `stride` apart, each over the end of the one before.
void overlap(const BackwardCall& call, Role role, std::int64_t stride, Predicted& out) {
    const Shape s = shape_in(call, role);
    if (stride >= s[3]) return;
    const std::vector<Near> old = out[role];
    for (std::int64_t head = 0; head < s[0] * s[1]; ++head)
        for (std::int64_t t = 0; t < s[2]; ++t)
            for (std::int64_t c = 0; c < s[3]; ++c) {
                Near sum;
                for (std::int64_t other = 0; other < s[2]; ++other) {
                    const std::int64_t channel = c + (t - other) * stride;
                    if (channel < 0 || channel >= s[3]) continue;
                    sum = sum +
                          rounded(
                              old[static_cast<std::size_t>((head * s[2] + other) * s[3] + channel)],
                              2 * call.model.ua, 0);
                }
                out[role][static_cast<std::size_t>((head * s[2] + t) * s[3] + c)] = sum;
            }
}

/// Of each plain gradient element (b, h, t, c), that one of the head's rows at `from`.
template <typename From>
BackwardDeviation gathered(std::string id, std::string says, From from) {
    return moved(std::move(id), std::move(says), [from](const BackwardCall& call, Predicted& out) {
        for (const Role role : plain_roles) gather(call, role, out, from);
    });
}

void add_places(std::vector<BackwardDeviation>& list) {
    using Index = std::int64_t;
    list.push_back(gathered("first_sequence", "the gradients of the first sequence for all of them",
                            [](const Shape& s, Index, Index h, Index t, Index c) {
                                return (h * s[2] + t) * s[3] + c;
                            }));
    list.push_back(gathered("first_head", "the gradients of the first head for all of them",
                            [](const Shape& s, Index b, Index, Index t, Index c) {
                                return (b * s[1] * s[2] + t) * s[3] + c;
                            }));
    list.push_back(moved(
        "heads_lengths", "gradients with heads and lengths exchanged in memory",
        [](const BackwardCall& call, Predicted& out) {
            if (!contiguous(call.problem())) return out.of.clear();
            for (const Role role : plain_roles)
                gather(call, role, out, [](const Shape& s, Index b, Index h, Index t, Index c) {
                    const Index n = h * s[2] + t;
                    return ((b * s[1] + n % s[1]) * s[2] + n / s[1]) * s[3] + c;
                });
        }));
    list.push_back(gathered("transposed", "each head's gradient transposed",
                            [](const Shape& s, Index b, Index h, Index t, Index c) {
                                const Index n = t * s[3] + c;
                                return ((b * s[1] + h) * s[2] + n % s[2]) * s[3] + n / s[2];
                            }));
    list.push_back(gathered("rows_reversed", "each head's gradient with its rows in reverse order",
                            [](const Shape& s, Index b, Index h, Index t, Index c) {
                                return ((b * s[1] + h) * s[2] + s[2] - 1 - t) * s[3] + c;
                            }));
    for (const Index by : {1, -1})
        list.push_back(gathered(by > 0 ? "row_below" : "row_above",
                                by > 0 ? "in each row the gradient of the next"
                                       : "in each row the gradient of the one before",
                                [by](const Shape& s, Index b, Index h, Index t, Index c) {
                                    const Index n = (t + by + s[2]) % s[2];
                                    return ((b * s[1] + h) * s[2] + n) * s[3] + c;
                                }));
}

/// Sums that begin with what is left of those before: of one for all heads in turn, or of one each.
struct KeptSums {
    std::string id, says;
    bool each_head = false;
    /// Whether they are 0 again before this head of this sequence or document.
    bool (*cleared)(std::size_t segment, std::int64_t head);
    std::int64_t tile = 0;  ///< those of whole tiles are 0 again before every head
};

void keep_sums(const BackwardCall& call, Role role, const KeptSums& kept, Predicted& out) {
    const Shape s = shape_in(call, role);
    const Problem& p = call.problem();
    const Mask& mask = p.mask;
    const bool packed = !mask.documents_q.empty(), queries = role == Role::d_q;
    std::vector<std::int64_t> lens = packed    ? queries ? mask.documents_q : mask.documents_kv
                                     : queries ? mask.lens_q
                                               : mask.lens_kv;
    if (lens.empty()) lens.assign(static_cast<std::size_t>(s[0]), s[2]);
    // What is left takes part in each addition of this one's own terms.
    const auto terms = static_cast<double>(queries ? p.len_kv : p.len_q * group_size(p));
    const auto numbers = static_cast<std::size_t>(s[2] * s[3]);
    std::vector<std::vector<Near>> sums(static_cast<std::size_t>(s[1]), std::vector<Near>(numbers));
    std::int64_t first = 0;
    for (std::size_t segment = 0; segment < lens.size(); ++segment) {
        const std::int64_t above = packed ? 0 : static_cast<std::int64_t>(segment) * s[1];
        for (std::int64_t head = 0; head < s[1]; ++head) {
            auto& sum = sums[kept.each_head ? static_cast<std::size_t>(head) : 0];
            if (kept.cleared(segment, head)) std::ranges::fill(sum, Near{});
            if (kept.tile > 0)
                std::fill_n(sum.begin(), lens[segment] / kept.tile * kept.tile * s[3], Near{});
            const std::int64_t at = ((above + head) * s[2] + first) * s[3];
            const std::int64_t own_numbers = lens[segment] * s[3];
            for (std::int64_t n = 0; n < own_numbers; ++n) {
                Near& own = out[role][static_cast<std::size_t>(at + n)];
                Near& before = sum[static_cast<std::size_t>(n)];
                own = before = rounded(before + own, (terms + 1) * call.model.ua, 0);
            }
            // Whether what lies behind stays, or is new memory the next time, is not known.
            for (std::size_t n = static_cast<std::size_t>(own_numbers); n < numbers; ++n)
                if (sum[n].value != 0) sum[n].error = infinite;
        }
        if (packed) first += lens[segment];
    }
}

void add_kept_sums(std::vector<BackwardDeviation>& list) {
    const char* sequences =
        "gradients added to those of the sequence before: sums that are not cleared between "
        "sequences";
    const char* heads =
        "gradients added to those of the head before: sums that are not cleared between heads";
    const auto never = [](std::size_t, std::int64_t) { return false; };
    const auto of_each = [](std::size_t, std::int64_t head) { return head == 0; };
    std::vector<KeptSums> all{
        {"kept_sequences", sequences, true, never},
        {"kept_sequences", sequences, false,
         [](std::size_t segment, std::int64_t head) { return segment == 0 || head > 0; }},
        {"kept_heads", heads, false, of_each},
        {"kept_heads", heads, false, never}};
    for (const std::int64_t tile : {8, 16, 32, 64, 128})
        for (const auto cleared : {+never, +of_each})
            all.push_back({fmt::format("kept_heads_last_tile_{}", tile),
                           fmt::format("{}, in a last tile of less than {}", heads, tile), false,
                           cleared, tile});
    for (const KeptSums& kept : all)
        list.push_back(moved(kept.id, kept.says, [kept](const BackwardCall& call, Predicted& out) {
            for (const Role role : plain_roles) keep_sums(call, role, kept, out);
        }));
}

void add_exchanged(std::vector<BackwardDeviation>& list) {
    struct Exchange {
        Role a, b;
        const char *id, *says;
    };
    for (const Exchange x :
         {Exchange{Role::d_k, Role::d_v, "d_k_d_v_exchanged", "dK and dV exchanged"},
          Exchange{Role::d_q, Role::d_k, "d_q_d_k_exchanged", "dQ and dK exchanged"},
          Exchange{Role::d_q, Role::d_v, "d_q_d_v_exchanged", "dQ and dV exchanged"}})
        list.push_back(moved(x.id, x.says, [x](const BackwardCall& call, Predicted& out) {
            if (shape_in(call, x.a) == shape_in(call, x.b)) std::swap(out[x.a], out[x.b]);
        }));
    list.push_back(moved("value_rows_overlap",
                         "dV summed in rows of as many channels as keys have, which overlap",
                         [](const BackwardCall& call, Predicted& out) {
                             overlap(call, Role::d_v, call.problem().dim_qk, out);
                         }));
    list.push_back(moved("key_rows_overlap",
                         "dK summed in rows of as many channels as values have, which overlap",
                         [](const BackwardCall& call, Predicted& out) {
                             overlap(call, Role::d_k, call.call.dim_v, out);
                         }));
    for (const Restrided which : {Restrided::rows, Restrided::all}) {
        list.push_back(moved(
            "value_strides", "dV with the strides of K",
            [which](const BackwardCall& call, Predicted& out) {
                restride(call, Role::d_v, call.problem().dim_qk, which, out);
            },
            true));
        list.push_back(moved(
            "key_strides", "dK with the strides of V",
            [which](const BackwardCall& call, Predicted& out) {
                restride(call, Role::d_k, call.call.dim_v, which, out);
            },
            true));
    }
}

/// Rows of which forward saw no key, told by their LSE, are left out whatever backward sees.
void without_empty_rows(const BackwardCall&, ModelSteps& steps) {
    steps.sees = [](const ModelRow& row, std::int64_t, bool is) {
        return is && row.lse.value != -infinite;
    };
}

/// D is taken from the weights that backward has, not from forward's output.
void with_delta_of_weights(const BackwardCall&, ModelSteps& steps) {
    steps.delta = [](const ModelRow& row) { return delta_of_weights(row, as_forward_kept); };
}

/// What forward may do wrong backward may do alone.
void add_of_forward(std::vector<BackwardDeviation>& list, std::span<const Deviation> forward) {
    for (const Deviation& d : forward) {
        if (!d.respecify) continue;
        const BackwardDeviation alone{.id = "backward_" + d.id,
                                      .says = "in backward alone: " + d.says,
                                      .respecify = d.respecify,
                                      .in_forward = d.id};
        BackwardDeviation renewed = alone, guarded = alone, weighed = alone, both = alone;
        renewed.renewed = true;
        guarded.change = without_empty_rows;
        weighed.change = with_delta_of_weights;
        both.change = [](const BackwardCall& call, ModelSteps& steps) {
            without_empty_rows(call, steps);
            with_delta_of_weights(call, steps);
        };
        list.insert(list.end(), {alone, renewed, guarded, weighed, both});
    }
}

}  // namespace

std::vector<BackwardDeviation> place_deviations() {
    std::vector<BackwardDeviation> list;
    add_exchanged(list);
    add_kept_sums(list);
    add_of_forward(list, deviations());
    add_of_forward(list, numbers_of_other_heads());
    add_of_forward(list, window_limits());
    constexpr std::int64_t queries[] = {1, 8, 16, 32, 64}, keys[] = {8, 16, 32, 64, 128};
    add_of_forward(list, full_tiles(queries, keys, false));
    add_places(list);
    return list;
}

}  // namespace attest::diagnosis
