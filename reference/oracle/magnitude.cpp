#include "reference/oracle/row_arithmetic.hpp"

namespace attest::oracle {

double magnitude(const double* x, const double* y, std::int64_t n) {
    double a = 0, b = 0, c = 0, d = 0;  // four chains: additions need not wait for each other
    std::int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        a += x[i] * y[i];
        b += x[i + 1] * y[i + 1];
        c += x[i + 2] * y[i + 2];
        d += x[i + 3] * y[i + 3];
    }
    for (; i < n; ++i) a += x[i] * y[i];
    return (a + b) + (c + d);
}

}  // namespace attest::oracle
