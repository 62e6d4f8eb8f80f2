#pragma once
// From the sums over keys to what is expected of a row's outputs: loops over columns, vectorised by
// Highway.

#include <cstddef>

#include "reference/bound/expected.hpp"
#include "reference/oracle/own_error.hpp"

namespace attest::oracle {

/// out[c] = unit_of[c] (sum[c] upward + least) + of_centre |centre[c]|.
struct UpwardTask {
    const double *sum = nullptr, *unit_of = nullptr, *centre = nullptr;
    double upward = 1, least = 0, of_centre = 0;
};
void upward_sums(const UpwardTask& task, std::size_t n, double* out);

/// Errors of a row's outputs, rounding to double included. sum_j p_j |v_jc|, the row's mass, is at
/// most share size[c], and at most value_max; total = sum_j |v_jc|.
struct OwnTask {
    const double *value = nullptr, *size = nullptr, *total = nullptr;
    double share = 1, value_max = 0;
};
void output_errors(const OwnError& own, const OwnTask& task, std::size_t n, double* error);

/// sum_r count[r] centred[r]^2 / weight[r] over entries with a weight.
double weighted_squares(const double* count, const double* centred, const double* weight,
                        std::size_t n);

/// From sums in single precision over unit[c], upward (see UpwardTask): size[c] = unit plain, and
/// spread[c] = factor sqrt(max(0, square - (value/unit)^2) + lost square) unit + floor total[c].
struct DeviationTask {
    const float *plain = nullptr, *square = nullptr;
    const double *value = nullptr, *unit = nullptr, *total = nullptr;
    double upward = 1, least = 0, factor = 0, lost = 0, floor = 0;
};
void deviations(const DeviationTask& task, std::size_t n, double* spread, double* size);

/// Writes elements, those whose value is no number with value 0 and infinite error: a kind is
/// claimed only where the inputs have one. Returns the largest of (error - rounding of the value to
/// double) / bound among those with a finite bound, at least 0.
double put_elements(const double* value, const double* error, const double* bound, std::size_t n,
                    bound::ExpectedElement* out);

}  // namespace attest::oracle
