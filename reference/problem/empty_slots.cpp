#include "reference/problem/empty_slots.hpp"

#include <cmath>
#include <limits>

namespace attest {

double in_empty_slots(const Dialect& dialect) noexcept {
    return dialect.nonfinite == Nonfinite::unspecified ? 2
                                                       : std::numeric_limits<double>::quiet_NaN();
}

void fill_empty_slots(Tensor& keys, const Problem& problem, const Dialect& dialect) {
    const double number = in_empty_slots(dialect);
    const std::vector<std::int64_t>& lens = problem.mask.lens_kv;
    if (std::isnan(number) || !problem.cache.present || lens.empty()) return;
    const Shape& shape = keys.shape();
    for (std::int64_t b = 0; b < shape[0]; ++b)
        for (std::int64_t h = 0; h < shape[1]; ++h)
            for (std::int64_t t = lens[static_cast<std::size_t>(b)]; t < shape[2]; ++t)
                for (std::int64_t c = 0; c < shape[3]; ++c)
                    if (const std::int64_t at = keys.flat(b, h, t, c); std::isnan(keys.get(at)))
                        keys.set(at, number);
}

}  // namespace attest
