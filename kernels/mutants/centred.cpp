// Smoothing, as SageAttention does it: the mean over a sequence's keys, or values, is taken off
// first and the difference rounded to the format of the weights; q times the mean is added to the
// log-sum-exp, the mean itself to the output. Around cpu_flash_plain, which sees the differences.
// M482 and M483 are right and declare it; the others forget a part.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/mutants/planted.hpp"

namespace attest::museum {
namespace {

enum class Back : std::uint8_t {
    right,
    no_key_mean,        ///< the log-sum-exp stays that of the differences
    unscaled_key_mean,  ///< q.mean(k) without the scale
    first_value_mean,   ///< every sequence gets the mean of the first
    to_empty_rows       ///< also a row that sees no key gets the mean
};

struct Centring {
    bool keys = false, values = false;
    Back back = Back::right;
};

/// A tensor [a, b, c, d] of f32 without gaps.
struct Dense {
    std::vector<float> numbers;
    std::int64_t shape[4], strides[4];
    DLTensor header{};
    Dense(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d, int axes = 4)
        : numbers(static_cast<std::size_t>(a * b * c * d)),
          shape{a, b, c, d},
          strides{b * c * d, c * d, d, 1} {
        header = {.data = numbers.data(),
                  .device = {.device_type = ATTEST_DL_CPU, .device_id = 0},
                  .ndim = axes,
                  .dtype = {.code = ATTEST_DL_FLOAT, .bits = 32, .lanes = 1},
                  .shape = shape,
                  .strides = strides,
                  .byte_offset = 0};
    }
    Dense(const Dense&) = delete;
    Dense& operator=(const Dense&) = delete;
    float* at(std::int64_t b, std::int64_t h, std::int64_t i) {
        return numbers.data() + b * strides[0] + h * strides[1] + i * strides[2];
    }
};

/// The rows of `from` less their mean, which goes to `mean`; the rows themselves, and a mean of
/// zeros, where nothing is taken off.
void take_off(const cpu::Call& call, const cpu::Operand& from, bool centres, Dense& rows,
              Dense& mean) {
    const std::int64_t dim = rows.shape[3];
    for (std::int64_t b = 0; b < call.problem.batch; ++b) {
        const std::int64_t keys = cpu::segment_at(call, b).keys;
        for (std::int64_t h = 0; h < call.problem.heads_kv; ++h) {
            float* m = mean.at(b, h, 0);
            for (std::int64_t j = 0; j < keys; ++j) {
                cpu::load_row(from.at(b, h, j), from.format, from.stride[3], dim, rows.at(b, h, j));
                for (std::int64_t c = 0; centres && c < dim; ++c)
                    m[c] += rows.at(b, h, j)[c] / static_cast<float>(keys);
            }
            for (std::int64_t j = 0; centres && j < keys; ++j)
                for (std::int64_t c = 0; c < dim; ++c)
                    rows.at(b, h, j)[c] = cpu::rounded(rows.at(b, h, j)[c] - m[c], call.format_q);
        }
    }
}

/// scale q.mean(k), which every score of the row lacks.
float lacking(const cpu::Call& call, const Dense& keys, const float* mean, std::int64_t b,
              std::int64_t h, std::int64_t i, bool scaled) {
    std::vector<float> query(static_cast<std::size_t>(keys.shape[3]));
    cpu::load_row(call.q.at(b, h, i), call.q.format, call.q.stride[3], keys.shape[3], query.data());
    float dot = 0;
    for (std::size_t c = 0; c < query.size(); ++c) dot += query[c] * mean[c];
    return scaled ? dot * static_cast<float>(call.problem.scale) : dot;
}

/// A cap and a sink see the scores themselves, and dropout leaves weights that do not sum to one.
template <Centring how>
int centred(void* state, const attest_call* from, char* error, std::size_t cap) {
    cpu::Call call;
    if (!read_call(from, call, error, cap)) return 1;
    attest_problem p = call.problem;
    const bool of_keys = how.keys && p.softcap == 0 && p.sink == 0;
    const bool of_values = how.values && p.sink == 0 && p.dropout_p == 0;
    Dense k(p.batch, p.heads_kv, p.len_kv, p.dim_qk), v(p.batch, p.heads_kv, p.len_kv, p.dim_v);
    Dense k_mean(p.batch, p.heads_kv, 1, p.dim_qk), v_mean(p.batch, p.heads_kv, 1, p.dim_v);
    Dense o(p.batch, p.heads_q, p.len_q, p.dim_v), lse(p.batch, p.heads_q, p.len_q, 1, 3);
    take_off(call, call.k, of_keys, k, k_mean);
    take_off(call, call.v, of_values, v, v_mean);
    p.format_kv = p.format_o = ATTEST_F32;
    p.want_lse = 1;
    attest_call inner = *from;
    inner.problem = &p;
    inner.tensor[ATTEST_ROLE_K] = &k.header;
    inner.tensor[ATTEST_ROLE_V] = &v.header;
    inner.tensor[ATTEST_ROLE_O] = &o.header;
    inner.tensor[ATTEST_ROLE_LSE] = &lse.header;
    const int failed = correct_kernel("cpu_flash_plain").forward(state, &inner, error, cap);
    if (failed != 0) return failed;
    for (std::int64_t b = 0; b < p.batch; ++b)
        for (std::int64_t h = 0; h < p.heads_q; ++h)
            for (std::int64_t i = 0; i < p.len_q; ++i) {
                float* output = o.at(b, h, i);
                float& sum = *lse.at(b, h, i);
                const bool query = i < cpu::segment_at(call, b).queries;
                const bool sees = query && sum != -INFINITY;
                const std::int64_t owner = how.back == Back::first_value_mean ? 0 : b;
                const float* m = v_mean.at(owner, h / call.group, 0);
                if (sees || (query && how.back == Back::to_empty_rows))
                    for (std::int64_t c = 0; c < p.dim_v; ++c) output[c] += m[c];
                if (sees && how.back != Back::no_key_mean)
                    sum += lacking(call, k, k_mean.at(b, h / call.group, 0), b, h, i,
                                   how.back != Back::unscaled_key_mean);
                cpu::write_row(call, b, h, i, output, sum);
            }
    return 0;
}

PlantedBug row(const kernel::Mutant& about, const char* declares, WholeForward forward) {
    PlantedBug bug{about, forward, declares};
    bug.about.operation = "flash forward";
    return bug;
}

constexpr const char* keys_declared = R"("centred_keys": true, )";
constexpr const char* values_declared = R"("centred_values": true, )";

}  // namespace

std::vector<PlantedBug> centred() {
    constexpr Centring keys{.keys = true}, values{.values = true};
    constexpr Centring bare{.keys = true, .back = Back::no_key_mean};
    constexpr Centring unscaled{.keys = true, .back = Back::unscaled_key_mean};
    constexpr Centring of_first{.values = true, .back = Back::first_value_mean};
    constexpr Centring to_empty{.values = true, .back = Back::to_empty_rows};
    return {row({.id = "M482",
                 .bug_class = "N4",
                 .change = "keys less their mean, rounded; q.mean added to the log-sum-exp",
                 .trigger = "none: it is declared",
                 .equivalent = true},
                keys_declared, centred<keys>),
            row({.id = "M483",
                 .bug_class = "N4",
                 .change = "values less their mean, rounded; the mean added to the output",
                 .trigger = "none: it is declared",
                 .equivalent = true},
                values_declared, centred<values>),
            row({.id = "M490",
                 .bug_class = "I9",
                 .change = "keys less their mean; the log-sum-exp is left without it",
                 .trigger = "a log-sum-exp, keys whose mean is not 0",
                 .source = "https://github.com/thu-ml/SageAttention",
                 .must = {"reference.lse"}},
                keys_declared, centred<bare>),
            row({.id = "M491",
                 .bug_class = "I9",
                 .change = "keys less their mean; q.mean is added without the scale",
                 .trigger = "a log-sum-exp, a scale other than 1",
                 .must = {"reference.lse"}},
                keys_declared, centred<unscaled>),
            row({.id = "M492",
                 .bug_class = "I3",
                 .change = "values less their mean; that of the first sequence is added",
                 .trigger = "two sequences",
                 .must = {"reference.output"}},
                values_declared, centred<of_first>),
            row({.id = "M493",
                 .bug_class = "M3",
                 .change = "values less their mean, which is added to rows that see no key, too",
                 .trigger = "a row that sees no key",
                 .must = {"masking.empty_row"}},
                values_declared, centred<to_empty>)};
}

}  // namespace attest::museum
