#include "properties/search/sizes.hpp"

#include <algorithm>

#include "properties/search/landmarks.hpp"
#include "reference/problem/validity.hpp"

namespace attest::search {

namespace {

constexpr std::array<std::string_view, size_axis_count> axis_names = {
    "batch", "heads_q", "heads_kv", "len_q", "len_kv", "dim_qk", "dim_v", "documents"};

/// `total` tokens in so many documents, as even as may be.
std::vector<std::int64_t> even_documents(std::int64_t count, std::int64_t total) {
    std::vector<std::int64_t> lens;
    for (std::int64_t n = 0; n < count; ++n)
        lens.push_back((n + 1) * total / count - n * total / count);
    return lens;
}

}  // namespace

std::string_view name(SizeAxis axis) noexcept {
    return axis_names[static_cast<std::size_t>(axis)];
}

std::string_view short_name(SizeAxis axis) noexcept {
    constexpr std::array<std::string_view, size_axis_count> names = {"b",  "hq", "hkv", "tq",
                                                                     "tk", "d",  "dv",  "docs"};
    return names[static_cast<std::size_t>(axis)];
}

void Sizes::cover(const Sizes& other) noexcept {
    for (std::size_t n = 0; n < of_.size(); ++n) of_[n] = std::max(of_[n], other.of_[n]);
}

bool Sizes::within(const Sizes& most) const noexcept {
    for (std::size_t n = 0; n < of_.size(); ++n)
        if (of_[n] > most.of_[n]) return false;
    return true;
}

Sizes sizes_of(const Problem& p) {
    using enum SizeAxis;
    return {
        {batch, p.batch},       {heads_q, p.heads_q},
        {heads_kv, p.heads_kv}, {len_q, p.len_q},
        {len_kv, p.len_kv},     {dim_qk, p.dim_qk},
        {dim_v, value_dim(p)},  {documents, static_cast<std::int64_t>(p.mask.documents_q.size())}};
}

// GPT-2 has 12 heads, Llama 7B 32; Llama 70B has 64 heads in groups of 8, DeepSeek's latent
// attention 128 over one and 576 channels beside 512, or 192 beside 128; MiniCPM3 96 beside 64;
// Gemma 256 channels.
const std::vector<Sizes>& known_outliers() {
    using enum SizeAxis;
    static const std::vector<Sizes> all = [] {
        std::vector<Sizes> list;
        for (const std::int64_t n : {5, 9, 17, 33}) list.push_back({{batch, n}});
        for (const auto& [q, kv] : {std::pair{32, 8},
                                    {33, 11},
                                    {40, 8},
                                    {64, 8},
                                    {12, 12},
                                    {16, 16},
                                    {32, 32},
                                    {64, 64},
                                    {128, 1}})
            list.push_back({{heads_q, q}, {heads_kv, kv}});
        for (const std::int64_t n : {385, 769, 1537, 3073, 6145}) list.push_back({{len_q, n}});
        for (const std::int64_t n :
             {385, 769, 1537, 3073, 6145, 12289, 24577, 49153, 98305, 131073})
            list.push_back({{len_kv, n}});
        for (const std::int64_t n : {300, 513, 1025}) list.push_back({{len_q, n}, {len_kv, n}});
        for (const std::int64_t n : {129, 161, 193, 257, 320, 513, 576})
            list.push_back({{dim_qk, n}});
        for (const std::int64_t n : {129, 161, 257, 513, 577}) list.push_back({{dim_v, n}});
        for (const auto& [qk, v] : unequal_dims()) list.push_back({{dim_qk, qk}, {dim_v, v}});
        for (const std::int64_t n : {6, 9, 17, 33}) list.push_back({{documents, n}});
        return list;
    }();
    return all;
}

std::int64_t least_products(const Sizes& sizes) {
    using enum SizeAxis;
    const auto of = [&sizes](SizeAxis axis, std::int64_t least) {
        return std::max(sizes[axis], least);
    };
    const std::int64_t scores = of(len_q, 2) * of(len_kv, 2);
    const std::int64_t few = scores > scores_large ? 1 : 2;
    return of(batch, few) * of(heads_q, few) * scores * (of(dim_qk, 2) + of(dim_v, 2));
}

std::optional<Problem> stretched(Problem p, const Sizes& sizes) {
    using enum SizeAxis;
    const auto put = [&](SizeAxis axis, std::int64_t& field) {
        if (sizes[axis] > 0) field = sizes[axis];
    };
    put(batch, p.batch);
    put(heads_q, p.heads_q);
    put(heads_kv, p.heads_kv);
    put(len_q, p.len_q);
    put(len_kv, p.len_kv);
    put(dim_qk, p.dim_qk);
    put(dim_v, p.dim_v);
    if (p.cache.present) {
        p.len_kv = std::max(p.len_kv, p.len_q);
        p.cache.len = p.len_kv - p.len_q;
    }
    if (const std::int64_t count = sizes[documents]; count > 0) {
        p.mask.documents_q = even_documents(count, p.len_q);
        p.mask.documents_kv = even_documents(count, p.len_kv);
    }
    p = canonical(p);
    if (find_contradiction(p)) return std::nullopt;
    return p;
}

}  // namespace attest::search
