// Deviations that read the numbers of another row: its delta, its LSE, both, its dLSE, or its dO.

#include <fmt/format.h>

#include <utility>

#include "properties/diagnosis/backward_deviation.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"

namespace attest::diagnosis {

namespace {

using RowNumbers = BackwardCall::RowFacts;

struct OtherRow {
    std::string id, whose;
    std::function<const RowNumbers&(const ModelRow&)> of;
};

const RowNumbers& row_at(const ModelRow& row, std::int64_t h, std::int64_t i) {
    return row.call.row(row.b, h, i);
}

/// The row `up` rows above in memory, its own before the first.
const RowNumbers& row_above(const ModelRow& row, std::int64_t up) {
    const Problem& p = row.call.problem();
    const std::int64_t flat = (row.b * p.heads_q + row.h) * p.len_q + row.i - up;
    if (flat < 0 || flat >= p.batch * p.heads_q * p.len_q) return row.facts;
    return row.call.row(flat / p.len_q / p.heads_q, flat / p.len_q % p.heads_q, flat % p.len_q);
}

void add_neighbours(std::vector<OtherRow>& list) {
    for (const std::int64_t up : {1, -1, 2, 4, 8, 16, 32, 64, -2, -4, -8, -16}) {
        const char* where = up > 0 ? "above" : "below";
        const std::string id = fmt::format("row_{}_{}", where, std::abs(up)),
                          whose = fmt::format("the row {} {} its own", std::abs(up), where);
        // At the first or last rows: their own, those of the head before, or from the other end.
        list.push_back({id, whose, [up](const ModelRow& row) -> const RowNumbers& {
                            const std::int64_t i = row.i - up;
                            if (i < 0 || i >= row.call.problem().len_q) return row.facts;
                            return row_at(row, row.h, i);
                        }});
        list.push_back({id, whose, [up](const ModelRow& row) -> const RowNumbers& {
                            return row_above(row, up);
                        }});
        list.push_back({id, whose, [up](const ModelRow& row) -> const RowNumbers& {
                            const std::int64_t n = row.call.problem().len_q;
                            return row_at(row, row.h, ((row.i - up) % n + n) % n);
                        }});
    }
}

std::int64_t queries_of(const ModelRow& row) {
    const Problem& p = row.call.problem();
    return length_of(p.mask.lens_q, p.len_q, row.b);
}

void add_rows(std::vector<OtherRow>& list) {
    list.push_back(
        {"first_row", "the head's first row",
         [](const ModelRow& row) -> const RowNumbers& { return row_at(row, row.h, 0); }});
    list.push_back(
        {"last_row", "the head's last row", [](const ModelRow& row) -> const RowNumbers& {
             return row_at(row, row.h, std::max<std::int64_t>(queries_of(row) - 1, 0));
         }});
    list.push_back({"in_document", "the row of the axis with its number in its document",
                    [](const ModelRow& row) -> const RowNumbers& {
                        const KeyExtent own = segment_of(row.call.problem(), row.b, row.i).queries;
                        return row_at(row, row.h, row.i - own.begin);
                    }});
    for (const std::int64_t tile : {4, 8, 16, 32, 64, 128})
        list.push_back({fmt::format("first_of_{}", tile), fmt::format("the first of {} rows", tile),
                        [tile](const ModelRow& row) -> const RowNumbers& {
                            return row_at(row, row.h, row.i / tile * tile);
                        }});
    for (const std::int64_t tile : {4, 8, 16, 32, 64, 128})
        list.push_back({fmt::format("in_tile_{}", tile), fmt::format("row i mod {}", tile),
                        [tile](const ModelRow& row) -> const RowNumbers& {
                            return row_at(row, row.h, row.i % tile);
                        }});
    for (const std::int64_t tile : {16, 32, 64, 128})
        for (const std::int64_t up : {1, -1})
            list.push_back(
                {fmt::format("over_{}_of_{}", up > 0 ? "start" : "end", tile),
                 fmt::format("the row {} in the {} of each {} rows", up > 0 ? "above" : "below",
                             up > 0 ? "first" : "last", tile),
                 [tile, up](const ModelRow& row) -> const RowNumbers& {
                     const std::int64_t i = row.i - up, edge = up > 0 ? row.i : row.i + 1;
                     const bool other = edge % tile == 0 && i >= 0 && i < queries_of(row);
                     return other ? row_at(row, row.h, i) : row.facts;
                 }});
    for (const std::int64_t tile : {8, 16, 32, 64, 128})
        list.push_back(
            {fmt::format("moved_tile_{}", tile),
             fmt::format("the rows from Tq - {0} on in a last tile of less than {0}", tile),
             [tile](const ModelRow& row) -> const RowNumbers& {
                 const std::int64_t n = queries_of(row), own = n % tile;
                 const bool moved = n > tile && row.i < n && row.i >= n - own;
                 return moved ? row_at(row, row.h, row.i + own - tile) : row.facts;
             }});
    list.push_back(
        {"of_pair", "the other row of each two", [](const ModelRow& row) -> const RowNumbers& {
             const std::int64_t i = row.i ^ 1;
             return i < queries_of(row) ? row_at(row, row.h, i) : row.facts;
         }});
    list.push_back({"reversed", "the row as far from the end as its own is from the start",
                    [](const ModelRow& row) -> const RowNumbers& {
                        const std::int64_t i = queries_of(row) - 1 - row.i;
                        return i >= 0 ? row_at(row, row.h, i) : row.facts;
                    }});
}

void add_heads(std::vector<OtherRow>& list) {
    const auto head = [&list](std::string id, std::string whose, ModelSteps::HeadOf of) {
        list.push_back({std::move(id), std::move(whose),
                        [of = std::move(of)](const ModelRow& row) -> const RowNumbers& {
                            const std::int64_t n = row.call.problem().heads_q;
                            return row_at(row, (of(row.call, row.h) + n) % n, row.i);
                        }});
    };
    using Index = std::int64_t;
    head("first_head", "the first head", [](const BackwardCall&, Index) { return Index{0}; });
    head("key_head", "the head with its key head's number",
         [](const BackwardCall& call, Index h) { return h / call.call.group; });
    head("first_of_group", "the group's first head",
         [](const BackwardCall& call, Index h) { return h / call.call.group * call.call.group; });
    head("last_of_group", "the group's last head", [](const BackwardCall& call, Index h) {
        return (h / call.call.group + 1) * call.call.group - 1;
    });
    head("head_modulo", "head h mod Hkv",
         [](const BackwardCall& call, Index h) { return h % call.problem().heads_kv; });
    head("next_head", "the next head", [](const BackwardCall&, Index h) { return h + 1; });
    head("head_before", "the head before", [](const BackwardCall&, Index h) { return h - 1; });
    list.push_back({"heads_sequences", "the place with heads and sequences exchanged in memory",
                    [](const ModelRow& row) -> const RowNumbers& {
                        const Problem& p = row.call.problem();
                        const Index n = row.h * p.batch + row.b;
                        return row.call.row(n / p.heads_q, n % p.heads_q, row.i);
                    }});
    list.push_back({"heads_rows", "the place with heads and rows exchanged in memory",
                    [](const ModelRow& row) -> const RowNumbers& {
                        const Problem& p = row.call.problem();
                        const Index n = row.i * p.heads_q + row.h;
                        return row.call.row(row.b, n / p.len_q, n % p.len_q);
                    }});
    list.push_back(
        {"first_sequence", "the first sequence",
         [](const ModelRow& row) -> const RowNumbers& { return row.call.row(0, row.h, row.i); }});
}

std::vector<OtherRow> other_rows() {
    std::vector<OtherRow> list;
    add_neighbours(list);
    add_rows(list);
    add_heads(list);
    return list;
}

/// Whether a kernel takes a row for one without keys where the LSE that it read says so is not
/// known.
Near plain_unless_empty(const ModelPair& pair) {
    return pair.row.lse.value == -infinite ? Near{0, infinite} : plain_probability(pair);
}

/// Numbers that one pass keeps with as many rows a head as the axis has, and the other with as many
/// as that rounded up.
struct PaddedRows {
    std::int64_t tile = 1;
    bool written = true;  ///< it is what was written that is rounded up
    /// The row whose number is read; none: one of nothing.
    const RowNumbers* of(const ModelRow& row) const {
        const Problem& p = row.call.problem();
        const std::int64_t up = (p.len_q + tile - 1) / tile * tile, read = written ? p.len_q : up,
                           kept = written ? up : p.len_q;
        const std::int64_t at = (row.b * p.heads_q + row.h) * read + row.i, head = at / kept,
                           i = at % kept;
        if (head >= p.batch * p.heads_q || i >= p.len_q) return nullptr;
        const RowNumbers& found = row.call.row(head / p.heads_q, head % p.heads_q, i);
        return found.is_query ? &found : nullptr;
    }
};

void add_padded_rows(std::vector<BackwardDeviation>& list) {
    const auto add = [&list](const PaddedRows& rows, bool lse, bool delta, const char* what,
                             bool d_lse) {
        const auto number = [rows](Near RowNumbers::*which) {
            return [rows, which](const ModelRow& row) {
                const RowNumbers* found = rows.of(row);
                return found != nullptr ? found->*which : Near{0, infinite};
            };
        };
        list.push_back(exchanged_step(
            fmt::format("padded_rows_{}_{}", what, rows.tile),
            fmt::format("the {} of another row: Tq is rounded up to a multiple of {} where it is "
                        "{}, and not where it is {}",
                        what, rows.tile, rows.written ? "written" : "read",
                        rows.written ? "read" : "written"),
            [=](const BackwardCall&, ModelSteps& s) {
                if (lse) {
                    s.lse = number(&RowNumbers::lse);
                    s.probability = plain_unless_empty;
                }
                if (!delta) return;
                s.delta = number(&RowNumbers::delta);
                if (d_lse) s.d_lse = number(&RowNumbers::d_lse);
            }));
    };
    for (const std::int64_t tile : {8, 16, 32, 64, 128})
        for (const bool written : {true, false}) {
            add({tile, written}, true, false, "LSE", false);
            for (const bool d_lse : {false, true}) {
                add({tile, written}, false, true, "delta", d_lse);
                add({tile, written}, true, true, "LSE and delta", d_lse);
            }
        }
}

}  // namespace

std::vector<BackwardDeviation> other_row_deviations() {
    std::vector<BackwardDeviation> list;
    add_padded_rows(list);
    for (const OtherRow& other : other_rows()) {
        const auto add = [&](const char* id, const char* what, BackwardDeviation::StepChange step) {
            list.push_back(exchanged_step(fmt::format("{}_{}", id, other.id),
                                          fmt::format("{} of {}", what, other.whose),
                                          std::move(step)));
        };
        const auto lse = [of = other.of](const BackwardCall&, ModelSteps& s) {
            s.lse = [of](const ModelRow& row) { return of(row).lse; };
            s.probability = plain_unless_empty;
        };
        const auto delta = [of = other.of](const BackwardCall&, ModelSteps& s) {
            s.delta = [of](const ModelRow& row) { return of(row).delta; };
        };
        const auto d_lse = [of = other.of](const BackwardCall&, ModelSteps& s) {
            s.d_lse = [of](const ModelRow& row) { return of(row).d_lse; };
        };
        // dO.O of its own dO, and of the O of the other.
        add("output", "a delta of the O", [of = other.of](const BackwardCall&, ModelSteps& s) {
            s.delta = [of](const ModelRow& row) {
                const std::vector<Near>& o = of(row).output;
                return sum_of_channels(row, [&](std::size_t c) { return row.facts.d_o[c] * o[c]; });
            };
        });
        add("delta", "the delta", delta);
        // As kernels keep it: one number of a row.
        add("delta", "the delta", [=](const BackwardCall& call, ModelSteps& s) {
            delta(call, s);
            d_lse(call, s);
        });
        add("lse_gradient", "the gradient of the LSE", d_lse);
        add("lse", "the LSE", lse);
        add("lse_and_delta", "LSE and delta", [=](const BackwardCall& call, ModelSteps& s) {
            lse(call, s);
            delta(call, s);
        });
        add("d_o", "the dO", [of = other.of](const BackwardCall&, ModelSteps& s) { s.d_o = of; });
    }
    return list;
}

}  // namespace attest::diagnosis
