#include "properties/law/planted_deviation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "properties/law/compare.hpp"

namespace attest::law::planted {

namespace {

PlantedDeviation asks(std::string id, std::function<void(Question&)> change) {
    return {.id = std::move(id), .asks = std::move(change)};
}

/// Rows [from, ...) of the token axis of one tensor become zero.
void forget_from(Tensor& tensor, std::int64_t from) {
    const Shape shape = tensor.shape();
    for (std::int64_t b = 0; b < shape[0]; ++b)
        for (std::int64_t h = 0; h < shape[1]; ++h)
            for (std::int64_t t = std::max<std::int64_t>(from, 0); t < shape[2]; ++t)
                for (std::int64_t c = 0; c < shape[3]; ++c) tensor.put(b, h, t, c, 0);
}

void forget_last(Question& q, Role role) {
    forget_from(q.inputs[role], q.inputs[role].shape()[2] - 1);
}

}  // namespace

std::string with_number(const char* id, double number) {
    std::string text = fmt::format("{}_{:g}", id, number);
    std::replace(text.begin(), text.end(), '.', '_');
    std::replace(text.begin(), text.end(), '-', 'm');
    return text;
}

PlantedDeviation answers_times(double factor) {
    return {.id = with_number("answers_times", factor),
            .answers = [factor](const bound::ExpectedElement& right, std::int64_t) {
                return right.value * factor;
            }};
}

PlantedDeviation answers_not_a_number() {
    return {.id = "answers_not_a_number",
            .answers = [](const bound::ExpectedElement&, std::int64_t) {
                return std::numeric_limits<double>::quiet_NaN();
            }};
}

PlantedDeviation answers_by_the_call() {
    return {.id = "answers_by_the_call",
            .answers = [](const bound::ExpectedElement& right, std::int64_t call) {
                return call % 2 == 0 ? right.value : right.value * (1 + 0x1p-4);
            }};
}

PlantedDeviation last_key_scores_zero() {
    return asks("last_key_scores_zero", [](Question& q) { forget_last(q, Role::k); });
}

PlantedDeviation last_key_forgotten() {
    return asks("last_key_forgotten", [](Question& q) { forget_last(q, Role::v); });
}

PlantedDeviation last_query_forgotten() {
    return asks("last_query_forgotten", [](Question& q) { forget_last(q, Role::q); });
}

PlantedDeviation newest_key_not_cached() {
    return asks("newest_key_not_cached", [](Question& q) {
        if (q.problem.cache.present) forget_last(q, Role::v);
    });
}

PlantedDeviation pages_in_physical_order() {
    return asks("pages_in_physical_order", [](Question& q) {
        const Problem& p = q.problem;
        if (p.cache.page_size == 0) return;
        const Tensor& table = q.inputs[Role::block_table];
        const std::int64_t pages = table.size() / p.batch;
        const TensorSet given = q.inputs;
        for (std::int64_t b = 0; b < p.batch; ++b) {
            std::vector<std::pair<double, std::int64_t>> order;  // physical page, its place
            for (std::int64_t n = 0; n < pages; ++n)
                if (table.get(b * pages + n) >= 0) order.emplace_back(table.get(b * pages + n), n);
            std::sort(order.begin(), order.end());
            for (std::int64_t t = 0; t < p.len_kv; ++t) {
                const std::int64_t page = t / p.cache.page_size;
                if (page >= static_cast<std::int64_t>(order.size())) break;
                const std::int64_t from =
                    order[static_cast<std::size_t>(page)].second * p.cache.page_size +
                    t % p.cache.page_size;
                if (from >= p.len_kv) continue;
                for (const Role role : {Role::k, Role::v})
                    for (std::int64_t g = 0; g < p.heads_kv; ++g)
                        for (std::int64_t c = 0; c < given[role].shape()[3]; ++c)
                            q.inputs[role].put(b, g, t, c, given[role].at(b, g, from, c));
            }
        }
    });
}

PlantedDeviation keys_of_an_earlier_call() {
    return {.id = "keys_of_an_earlier_call",
            .remembers = [](Question& q, std::span<const Question> before) {
                const Problem& p = q.problem;
                for (const Question& earlier : before.subspan(before.size() - !before.empty()))
                    if (earlier.problem.batch == p.batch && earlier.problem.heads_q == p.heads_q)
                        forget_from(q.inputs[Role::v], earlier.problem.len_kv);
            }};
}

PlantedDeviation first_sequence_doubled() {
    return asks("first_sequence_doubled", [](Question& q) {
        Tensor& v = q.inputs[Role::v];
        if (q.problem.batch < 2) return;
        for (std::int64_t at = 0; at < v.size() / q.problem.batch; ++at) v.set(at, 2 * v.get(at));
    });
}

PlantedDeviation values_of_next_sequence() {
    return asks("values_of_next_sequence", [](Question& q) {
        std::vector<std::int64_t> next;
        for (std::int64_t b = 0; b < q.problem.batch; ++b)
            next.push_back((b + 1) % q.problem.batch);
        q.inputs[Role::v] = gather(q.inputs[Role::v], 0, next);
    });
}

PlantedDeviation one_query_head_for_all() {
    return asks("one_query_head_for_all", [](Question& q) {
        q.inputs[Role::q] =
            gather(q.inputs[Role::q], 1,
                   std::vector<std::int64_t>(static_cast<std::size_t>(q.problem.heads_q), 0));
    });
}

PlantedDeviation heads_by_modulo() {
    return asks("heads_by_modulo", [](Question& q) {
        std::vector<std::int64_t> heads;
        for (std::int64_t h = 0; h < q.problem.heads_q; ++h)
            heads.push_back(h % q.problem.heads_kv);
        q.problem.heads_kv = q.problem.heads_q;
        for (const Role role : {Role::k, Role::v})
            q.inputs[role] = gather(q.inputs[role], 1, heads);
    });
}

PlantedDeviation padded_rows_negated() {
    return asks("padded_rows_negated", [](Question& q) {
        if (q.problem.layout_k.row_pad > 0) each(q.inputs[Role::k], [](double x) { return -x; });
    });
}

PlantedDeviation one_key_counts_twice() {
    return asks("one_key_counts_twice", [](Question& q) {
        if (q.problem.len_kv == 1) each(q.inputs[Role::v], [](double x) { return 2 * x; });
    });
}

PlantedDeviation nan_read_as_zero() {
    return asks("nan_read_as_zero", [](Question& q) {
        for (const Role role : {Role::q, Role::k, Role::v})
            each(q.inputs[role], [](double x) { return std::isnan(x) ? 0 : x; });
    });
}

PlantedDeviation scores_capped(double softcap) {
    return asks(with_number("scores_capped_at", softcap),
                [softcap](Question& q) { q.problem.softcap = softcap; });
}

PlantedDeviation scores_negated() {
    return asks("scores_negated",
                [](Question& q) { q.problem.scale = -effective_scale(q.problem); });
}

PlantedDeviation scale_times(double factor) {
    return asks(with_number("scale_times", factor),
                [factor](Question& q) { q.problem.scale = effective_scale(q.problem) * factor; });
}

PlantedDeviation scale_is(double scale) {
    return asks(with_number("scale_is", scale), [scale](Question& q) { q.problem.scale = scale; });
}

PlantedDeviation soft_cap_ignored() {
    return asks("soft_cap_ignored", [](Question& q) { q.problem.softcap = 0; });
}

PlantedDeviation causal_mask_ignored() {
    return asks("causal_mask_ignored", [](Question& q) { q.problem.mask.causal = false; });
}

PlantedDeviation every_mask_ignored() {
    return asks("every_mask_ignored", [](Question& q) {
        Mask mask;
        mask.lens_q = q.problem.mask.lens_q;
        if (positions_are_indices(q.problem)) mask.lens_kv = q.problem.mask.lens_kv;
        q.problem.mask = mask;
    });
}

PlantedDeviation window_one_wider() {
    return asks("window_one_wider", [](Question& q) {
        if (q.problem.mask.window.left >= 0) ++q.problem.mask.window.left;
    });
}

PlantedDeviation documents_ignored() {
    return asks("documents_ignored", [](Question& q) {
        q.problem.mask.documents_q.clear();
        q.problem.mask.documents_kv.clear();
    });
}

PlantedDeviation query_lengths_ignored() {
    return asks("query_lengths_ignored", [](Question& q) {
        if (!q.problem.cache.present && !positions_are_indices(q.problem))
            q.problem.mask.lens_q.clear();
    });
}

PlantedDeviation shared_masks_ignored() {
    return asks("shared_masks_ignored", [](Question& q) {
        const MaskTensor& m = q.problem.mask.tensor;
        if (m.shared_batch || m.shared_heads || m.shared_queries || m.shared_keys)
            q.problem.mask.tensor = {};
    });
}

PlantedDeviation other_alignment() {
    return asks("other_alignment",
                [](Question& q) { q.dialect.causal = CausalAlignment::top_left; });
}

PlantedDeviation empty_rows_are_nan() {
    return asks("empty_rows_are_nan", [](Question& q) { q.dialect.empty_row = EmptyRow::nan; });
}

}  // namespace attest::law::planted
