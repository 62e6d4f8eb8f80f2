#pragma once
// How a matrix unit adds products, for the tests of the bounds (kernel_model.cpp).

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace attest::oracle {

/// sum + the n products, `block` at a time; a product is an exact double.
template <typename Product>
double sum_by_unit(std::int64_t block, std::size_t n, double sum, Product product) {
    const auto cut = [](double x, double size) {  // below the 24 bits of `size`, toward zero
        const double unit = std::ldexp(1.0, std::ilogb(size) - 23);
        return std::trunc(x / unit) * unit;
    };
    const std::size_t width = static_cast<std::size_t>(block);
    for (std::size_t first = 0; first < n; first += width) {
        const std::size_t last = std::min(n, first + width);
        double most = std::abs(sum), total = 0;
        for (std::size_t x = first; x < last; ++x) most = std::max(most, std::abs(product(x)));
        if (most == 0) continue;
        for (std::size_t x = first; x < last; ++x) total += cut(product(x), most);
        total += cut(sum, most);
        sum = total == 0 ? 0 : cut(total, total);
    }
    return sum;
}

}  // namespace attest::oracle
