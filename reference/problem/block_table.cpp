#include "reference/problem/block_table.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "reference/problem/counter.hpp"
#include "reference/problem/draw.hpp"

namespace attest {

void fill_block_table(const Problem& problem, std::uint64_t seed, Tensor& table) {
    const std::int64_t pages = (*cache_shape_of(problem, Role::k))[0];
    std::vector<std::int64_t> order(static_cast<std::size_t>(pages));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    const auto rank = [&](std::int64_t page) {
        const auto stream = static_cast<std::uint64_t>(Stream::page_order);
        return counter_bits(seed, stream, static_cast<std::uint64_t>(page));
    };
    std::sort(order.begin(), order.end(), [&](auto x, auto y) { return rank(x) < rank(y); });
    const std::vector<std::int64_t>& lens = problem.mask.lens_kv;
    const std::int64_t a_sequence = table.shape()[1], size = problem.cache.page_size;
    for (std::int64_t b = 0, used = 0; b < problem.batch; ++b) {
        const auto keys = lens.empty() ? problem.len_kv : lens[static_cast<std::size_t>(b)];
        for (std::int64_t page = 0; page < a_sequence; ++page) {
            const auto next = page * size < keys ? order[static_cast<std::size_t>(used++)] : -1;
            table.set(b * a_sequence + page, static_cast<double>(next));
        }
    }
}

}  // namespace attest
