#pragma once
// Sums of many double-doubles and of products.

#include "reference/oracle/double_double.hpp"

namespace attest::oracle {

/// The compensated sum of Ogita, Rump and Oishi (Dot2, SIAM J. Sci. Comput. 26, 2005), kept as a
/// pair. The error terms |e_i| <= u |partial sum| and |pi_i| <= u |x_i y_i| are exact, and add up
/// to at most gamma_(n+1) sum |x y|; summing 4n of them in double loses gamma_4n of that. Thus the
/// pair is within gamma_4n^2 sum |x y|, in whatever order parts are added to parts.
class DoubleDoubleSum {
public:
    constexpr void add_product(double a, double b) noexcept { add(two_prod(a, b)); }
    constexpr void add_product(DoubleDouble a, double b) noexcept {
        const DoubleDouble p = two_prod(a.hi, b);
        add({p.hi, p.lo + a.lo * b});
    }
    constexpr void add_product(DoubleDouble a, DoubleDouble b) noexcept {
        const DoubleDouble p = two_prod(a.hi, b.hi);
        add({p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi)});
    }
    constexpr void add(DoubleDouble p) noexcept {
        const DoubleDouble s = two_sum(hi_, p.hi);
        hi_ = s.hi;
        lo_ += s.lo + p.lo;
    }
    constexpr DoubleDouble value() const noexcept { return two_sum(hi_, lo_); }

private:
    double hi_ = 0, lo_ = 0;
};

}  // namespace attest::oracle
