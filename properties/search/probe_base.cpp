#include "properties/search/probe_base.hpp"

#include <utility>

#include "properties/search/features.hpp"

namespace attest::search {

std::vector<Base> bases(FeatureSet offered) {
    using enum Feature;
    std::vector<Base> all;
    for (const FeatureSet set :
         {FeatureSet{}, FeatureSet(causal), FeatureSet(cache), FeatureSet(cache, causal),
          FeatureSet(cache, paged), FeatureSet(cache, paged, causal)}) {
        if (!offered.contains(set)) continue;
        for (const std::int64_t tokens : {64, 256})  // multiples of nearly every tile
            for (const std::int64_t len_q : {set.has(cache) ? tokens / 4 : tokens, std::int64_t{1}})
                for (const auto& [heads_kv, heads_q] :
                     {std::pair{1, 1}, {1, 8}, {2, 8}, {8, 8}, {1, 128}})
                    for (const std::int64_t page_size : {16, 64, 128, 256, 1, 32}) {
                        if (heads_q != heads_kv && !offered.has(gqa)) continue;
                        all.push_back({set, tokens, len_q, heads_kv, heads_q, page_size});
                        if (!set.has(paged)) break;
                    }
    }
    return all;
}

Problem problem_of(const Base& base, const kernel::Formats& formats, const Dims& dims,
                   const Capability& capability) {
    Problem problem;
    problem.len_q = base.len_q;
    problem.len_kv = base.tokens;
    problem.heads_q = base.heads_q;
    problem.heads_kv = base.heads_kv;
    problem.dim_qk = dims.qk;
    problem.dim_v = dims.v;
    problem.mask.causal = base.features.has(Feature::causal);
    problem.cache.present = base.features.has(Feature::cache);
    if (problem.cache.present) problem.cache.len = base.tokens - base.len_q;
    if (base.features.has(Feature::paged)) problem.cache.page_size = base.page_size;
    problem.format_q = formats.q;
    problem.format_kv = formats.kv;
    problem.format_o = formats.o;
    problem.want_lse = false;
    return fitted(std::move(problem), capability);
}

}  // namespace attest::search
