#include "properties/diagnosis/condition.hpp"

#include <algorithm>
#include <ranges>

#include "reference/problem/feature.hpp"

namespace attest::diagnosis {

namespace {

using Holds = std::function<bool(const Case&)>;

bool power_of_two(std::int64_t n) {
    return n > 0 && (n & (n - 1)) == 0;
}

void add_lengths(std::vector<Condition>& list) {
    const auto add = [&list](std::string condition, std::function<bool(const Problem&)> holds) {
        list.push_back({"when " + condition, "len_kv", "len_q",
                        [holds = std::move(holds)](const Case& c) { return holds(c.problem); },
                        condition});
    };
    add("Tq ≠ Tk", [](const Problem& p) { return p.len_q != p.len_kv; });
    add("Tq > Tk", [](const Problem& p) { return p.len_q > p.len_kv; });
    add("Tq < Tk", [](const Problem& p) { return p.len_q < p.len_kv; });
    add("Tq = Tk", [](const Problem& p) { return p.len_q == p.len_kv; });
    add("Tq = 1", [](const Problem& p) { return p.len_q == 1; });
    add("Tq > 1", [](const Problem& p) { return p.len_q > 1; });
    add("Tk = 1", [](const Problem& p) { return p.len_kv == 1; });
    add("Tk > 1", [](const Problem& p) { return p.len_kv > 1; });
}

// Above a power of two, on a tile's edge, next to it: where kernels change their path.
void add_sizes(std::vector<Condition>& list) {
    struct Axis {
        const char *name, *symbol;
    };
    for (const Axis axis :
         {Axis{"len_kv", "Tk"}, Axis{"len_q", "Tq"}, Axis{"dim_qk", "D"}, Axis{"dim_v", "Dv"}}) {
        const std::string id = axis.name, symbol = axis.symbol;
        const auto add = [&](const std::string& says, std::function<bool(std::int64_t)> holds) {
            const std::string condition = symbol + " " + says;
            list.push_back({"when " + condition, id, "",
                            [id, holds = std::move(holds)](const Case& c) {
                                return holds(quantity_of(c.problem, id));
                            },
                            condition});
        };
        constexpr std::int64_t sizes[] = {2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048};
        // The largest first: of limits that nothing was tried between it says the least.
        for (const std::int64_t n : std::views::reverse(sizes))
            add("> " + std::to_string(n), [n](std::int64_t x) { return x > n; });
        for (const std::int64_t n : sizes) {
            const std::string text = std::to_string(n);
            add("≤ " + text, [n](std::int64_t x) { return x <= n; });
            add("mod " + text + " ≠ 0", [n](std::int64_t x) { return x % n != 0; });
            add("mod " + text + " = 0", [n](std::int64_t x) { return x % n == 0; });
            add("mod " + text + " = 1", [n](std::int64_t x) { return x % n == 1; });
        }
    }
}

void add_heads(std::vector<Condition>& list) {
    const auto add = [&list](std::string condition, std::string axis, std::string other,
                             std::function<bool(const Problem&)> holds) {
        list.push_back({"when " + condition, std::move(axis), std::move(other),
                        [holds = std::move(holds)](const Case& c) { return holds(c.problem); },
                        condition});
    };
    for (const std::int64_t n : {1, 2, 4, 8, 16, 32}) {
        const std::string more = " > " + std::to_string(n);
        add("batch" + more, "batch", "", [n](const Problem& p) { return p.batch > n; });
        add("Hq" + more, "heads_q", "", [n](const Problem& p) { return p.heads_q > n; });
        add("Hkv" + more, "heads_kv", "", [n](const Problem& p) { return p.heads_kv > n; });
    }
    add("Hq / Hkv is no power of two", "heads_q", "heads_kv",
        [](const Problem& p) { return !power_of_two(group_size(p)); });
    add("Hq / Hkv ≠ Hkv", "heads_q", "heads_kv",
        [](const Problem& p) { return group_size(p) != p.heads_kv; });
    add("Dv ≠ D", "dim_qk", "dim_v", [](const Problem& p) { return value_dim(p) != p.dim_qk; });
    add("splits > 1", "splits", "len_kv", [](const Problem& p) { return p.splits > 1; });
    const auto paged = [](const Problem& p) { return p.cache.page_size > 0; };
    add("the cache fills its last page", "page_size", "len_kv",
        [paged](const Problem& p) { return paged(p) && p.cache.len % p.cache.page_size == 0; });
    add("the keys do not fill their last page", "page_size", "len_kv",
        [paged](const Problem& p) { return paged(p) && p.len_kv % p.cache.page_size != 0; });
}

std::string feature_words(Feature f) {
    switch (f) {
        case Feature::window:
            return "a window";
        case Feature::causal:
            return "a causal mask";
        case Feature::lens_q:
            return "query lengths";
        case Feature::lens_kv:
            return "key lengths";
        case Feature::mask_bool:
            return "a boolean mask";
        case Feature::mask_additive:
            return "an additive mask";
        case Feature::documents:
            return "packed documents";
        case Feature::softcap:
            return "a soft cap";
        case Feature::sink:
            return "a sink";
        case Feature::alibi:
            return "ALiBi";
        case Feature::rope:
            return "RoPE";
        case Feature::gqa:
            return "grouped heads";
        case Feature::dim_v:
            return "Dv ≠ D";
        case Feature::scale:
            return "an explicit scale";
        case Feature::negative_scale:
            return "a negative scale";
        case Feature::cache:
            return "a cache";
        case Feature::paged:
            return "a paged cache";
        case Feature::ring:
            return "a ring buffer";
        case Feature::layout:
            return "a layout of its own";
        case Feature::lse:
            return "the log-sum-exp asked for";
        case Feature::mixed_formats:
            return "mixed formats";
        case Feature::d_lse:
            return "a gradient of the log-sum-exp";
        default:
            return std::string(name(f));
    }
}

void add_features(std::vector<Condition>& list) {
    for (int n = 0; n < feature_count; ++n) {
        const Feature f = static_cast<Feature>(n);
        list.push_back({"with " + feature_words(f), "", "",
                        [f](const Case& c) { return features_of(c.problem).has(f); }});
        list.push_back({"without " + feature_words(f), "", "",
                        [f](const Case& c) { return !features_of(c.problem).has(f); }});
    }
    for (const auto& [says, style] : {std::pair{"with interleaved RoPE", RopeStyle::interleaved},
                                      {"with RoPE in halves", RopeStyle::half}})
        list.push_back({says, "", "", [style](const Case& c) {
                            return features_of(c.problem).has(Feature::rope) &&
                                   c.problem.rope.style == style;
                        }});
    list.push_back({"with a window to the left", "", "",
                    [](const Case& c) { return c.problem.mask.window.left >= 0; }});
    list.push_back({"with a window to the right", "", "",
                    [](const Case& c) { return c.problem.mask.window.right >= 0; }});
    list.push_back({"with a mask tensor", "", "",
                    [](const Case& c) { return c.problem.mask.tensor.kind != MaskKind::none; }});
    list.push_back(
        {"with lengths of its own for each sequence or document", "", "", [](const Case& c) {
             const Mask& m = c.problem.mask;
             return !m.lens_q.empty() || !m.lens_kv.empty() || !m.documents_q.empty();
         }});
}

void add_shared_mask_axes(std::vector<Condition>& list) {
    const auto add = [&list](const std::string& axis, bool MaskTensor::*shared) {
        list.push_back({"with one mask for every " + axis, "", "", [shared](const Case& c) {
                            const MaskTensor& tensor = c.problem.mask.tensor;
                            return tensor.kind != MaskKind::none && tensor.*shared;
                        }});
    };
    add("sequence", &MaskTensor::shared_batch);
    add("head", &MaskTensor::shared_heads);
    add("query", &MaskTensor::shared_queries);
    add("key", &MaskTensor::shared_keys);
}

void add_formats_and_values(std::vector<Condition>& list) {
    for (const Precision p : {Precision::f64, Precision::f32, Precision::f16, Precision::bf16})
        list.push_back({"in " + std::string(name(p)), "", "",
                        [p](const Case& c) { return c.problem.format_q == p; }});
    list.push_back({"in f16, bf16", "", "", [](const Case& c) {
                        return c.problem.format_q == Precision::f16 ||
                               c.problem.format_q == Precision::bf16;
                    }});
    for (int n = 0; n < value_kind_count; ++n) {
        const ValueKind kind = static_cast<ValueKind>(n);
        list.push_back({"for values " + std::string(name(kind)), "", "",
                        [kind](const Case& c) { return c.values.kind == kind; }, "", true});
    }
    list.push_back({"for large logits", "", "",
                    [](const Case& c) {
                        return c.values.kind == ValueKind::logit1e3 ||
                               c.values.kind == ValueKind::logit1e4 ||
                               c.values.kind == ValueKind::negative_logits;
                    },
                    "", true});
}

}  // namespace

std::int64_t quantity_of(const Problem& p, const std::string& axis) {
    if (axis == "len_q") return p.len_q;
    if (axis == "len_kv") return p.len_kv;
    if (axis == "dim_qk") return p.dim_qk;
    if (axis == "dim_v") return value_dim(p);
    if (axis == "batch") return p.batch;
    if (axis == "heads_q") return p.heads_q;
    if (axis == "heads_kv") return p.heads_kv;
    if (axis == "group") return group_size(p);
    if (axis == "splits") return p.splits;
    return p.cache.page_size;
}

void lower(Problem& p, const std::string& axis) {
    if (axis == "len_q") --p.len_q;
    if (axis == "len_kv") --p.len_kv;
    if (axis == "dim_v") p.dim_v = std::max<std::int64_t>(value_dim(p) - 1, 1);
    if (axis == "dim_qk") {
        p.dim_v = value_dim(p);
        --p.dim_qk;
    }
    if (axis == "batch") --p.batch;
    if (axis == "heads_q") --p.heads_q;
    if (axis == "heads_kv") --p.heads_kv;
    if (axis == "splits") --p.splits;
    if (axis == "page_size") --p.cache.page_size;
}

std::vector<Condition> conditions() {
    std::vector<Condition> list;
    add_lengths(list);
    add_features(list);
    add_shared_mask_axes(list);
    add_heads(list);
    add_formats_and_values(list);
    add_sizes(list);
    return list;
}

}  // namespace attest::diagnosis
