#pragma once
// Rows of attention in double-double, as reference/oracle/attention.hpp defines them: scores,
// maximum, weights and outputs, and what the bounds want to know of the scores.

#include "reference/oracle/device/block.cuh"
#include "reference/oracle/double_double_functions.hpp"

namespace attest::oracle {

/// What a thread has seen of one row's scores.
struct SeenScores {
    double error, magnitude, bias, least;
    DoubleDouble most;
};

__device__ inline SeenScores combined(const SeenScores& a, const SeenScores& b) {
    return {fmax(a.error, b.error), fmax(a.magnitude, b.magnitude), fmax(a.bias, b.bias),
            fmin(a.least, b.least), a.most < b.most ? b.most : a.most};
}

/// Score of key j, from its dot product and sum |q_c k_jc|. Written to scratch, and to seen.
__device__ inline void put_score(const DeviceCall& call, const DeviceRow& row, std::int64_t j,
                                 const DoubleDoubleSum& dot, double size,
                                 const DoubleDoubleConstants& table, const RowScratch& out,
                                 SeenScores& seen) {
    DoubleDouble x = dot.value() * DoubleDouble(call.scale), bias(0.0);
    const double distance = fabs(row.origin - static_cast<double>(j));
    if (call.alibi) bias = -(DoubleDouble(row.slope) * DoubleDouble(distance));
    if (call.cap_after_bias) x = x + bias;
    if (call.softcap > 0)
        x = DoubleDouble(call.softcap) * oracle::tanh(x / DoubleDouble(call.softcap), table);
    if (!call.cap_after_bias) x = x + bias;
    const double magnitude = fabs(call.scale) * size;
    const double bias_size = call.alibi ? fabs(row.slope) * distance : 0.0;
    const double error =
        row.error_dot * magnitude + row.error_bias * bias_size + row.error_absolute;
    out.score[j] = x.hi;
    out.low[j] = x.lo;
    out.error[j] = error;
    seen = combined(seen, {error, magnitude, bias_size, x.hi, x});
}

/// How often the maximum rises over the row's scores taken forwards or backwards; see
/// RowBound::begin. Each thread takes a run of keys, knowing the maximum of the runs before.
__device__ inline double rises(const DeviceRow& row, const double* score, double slack,
                               bool forwards, unsigned char* shared) {
    const std::int64_t keys = row.last - row.first;
    const std::int64_t run = (keys + oracle_threads - 1) / oracle_threads;
    const int thread = static_cast<int>(threadIdx.x);
    const std::int64_t begin = thread * run < keys ? thread * run : keys;
    const std::int64_t end = begin + run < keys ? begin + run : keys;
    const auto at = [&](std::int64_t n) {
        return score[forwards ? row.first + n : row.last - 1 - n];
    };
    double most = -INFINITY;
    for (std::int64_t n = begin; n < end; ++n) most = fmax(most, at(n));
    double* room = reinterpret_cast<double*>(shared);
    __syncthreads();
    room[thread] = most;
    __syncthreads();
    most = -INFINITY;
    for (int before = 0; before < thread; ++before) most = fmax(most, room[before]);
    double count = 0;
    for (std::int64_t n = begin; n < end; ++n) {
        if (at(n) + slack < most) continue;
        count += 1;
        most = fmax(most, at(n));
    }
    count = over_threads(count, shared, [](double a, double b) { return a + b; });
    return count - 1;  // the first is no rise
}

/// Maximum, weights and their sum, from the scores.
__device__ inline void put_weights(const DeviceCall& call, const DeviceRow& row,
                                   const SeenScores& seen, const DoubleDoubleConstants& table,
                                   const RowScratch& out, unsigned char* shared,
                                   DeviceRowSums& sums) {
    DoubleDouble max = seen.most;
    if (row.has_sink && max < DoubleDouble(row.sink)) max = DoubleDouble(row.sink);
    DoubleDoubleSum mine;
    for (std::int64_t j = row.first + threadIdx.x; j < row.last; j += oracle_threads) {
        const DoubleDouble w = oracle::exp(DoubleDouble(out.score[j], out.low[j]) - max, table);
        out.weight[j] = w.hi;
        out.low[j] = w.lo;
        mine.add(w);
    }
    const DoubleDouble keys =
        over_threads(mine.value(), shared, [](const DoubleDouble& a, const DoubleDouble& b) {
            DoubleDoubleSum both;
            both.add(a);
            both.add(b);
            return both.value();
        });
    bound::RowMaxima maxima;
    maxima.error = seen.error;
    maxima.score = fmax(fabs(seen.most.hi), fabs(seen.least));
    maxima.score_least = seen.least;
    maxima.magnitude = seen.magnitude;
    maxima.bias = seen.bias;
    double most_rises = 0;
    if (call.count_rises) {
        const double slack = bound::rise_slack(maxima, call.unit);
        most_rises = fmax(rises(row, out.score, slack, true, shared),
                          rises(row, out.score, slack, false, shared));
    }
    if (threadIdx.x != 0) return;
    DoubleDoubleSum all;
    all.add(keys);
    if (row.has_sink) all.add(oracle::exp(DoubleDouble(row.sink) - max, table));
    sums.maxima = maxima;
    sums.max = max;
    sums.sum = all.value();
    sums.rises = most_rises;
}

/// O_c = sum w_j v_jc / l, rounded to double.
__device__ inline void put_outputs(const DeviceHead& head, const BlockRows& rows, double* scratch,
                                   const DeviceRowSums* sums, double* output,
                                   unsigned char* shared) {
    DoubleDouble* room = reinterpret_cast<DoubleDouble*>(shared);
    for (std::int64_t c0 = 0; c0 < head.dim_v; c0 += oracle_threads) {
        const ColumnPlace place(c0, head.dim_v);
        DoubleDoubleSum total[block_rows];
        for (std::int64_t j = rows.first + place.part; place.active() && j < rows.last;
             j += place.parts) {
            const double v = head.values[j * head.dim_v + place.column];
            for (int r = 0; r < block_rows; ++r) {
                if (!rows.sees(r, j)) continue;
                const RowScratch of(scratch, rows.first_row + r, head.len_kv);
                total[r].add_product(DoubleDouble(of.weight[j], of.low[j]), v);
            }
        }
        for (int r = 0; r < rows.live; ++r) {
            __syncthreads();
            room[threadIdx.x] = total[r].value();
            __syncthreads();
            if (place.part != 0) continue;
            for (std::int64_t part = 1; part < place.parts; ++part)
                total[r].add(room[part * place.width + place.column - c0]);
            const std::int64_t row = rows.first_row + r;
            const DoubleDouble o = total[r].value() / sums[row].sum;
            output[row * head.dim_v + place.column] = o.hi + o.lo;
        }
    }
}

__global__ void __launch_bounds__(oracle_threads)
    oracle_attend(DeviceHead head, DeviceCall call, const DeviceRow* all, const double* queries,
                  std::int64_t count, const DoubleDoubleConstants* table, double* scratch,
                  DeviceRowSums* sums, double* output) {
    SIMT_DYNAMIC_SHARED(carver);
    double* query =
        carver.take<double>(static_cast<std::size_t>(block_rows * head.dim_qk), "query");
    unsigned char* shared = carver.take<unsigned char>(oracle_threads * sizeof(SeenScores), "room");
    const BlockRows rows(all, count);
    for (std::int64_t x = threadIdx.x; x < block_rows * head.dim_qk; x += oracle_threads)
        query[x] = x < rows.live * head.dim_qk ? queries[rows.first_row * head.dim_qk + x] : 0.0;
    __syncthreads();

    SeenScores seen[block_rows];
    for (SeenScores& each : seen) each = {0, 0, 0, INFINITY, DoubleDouble(-INFINITY)};
    for (std::int64_t j = rows.first + threadIdx.x; j < rows.last; j += oracle_threads) {
        DoubleDoubleSum dot[block_rows];
        double size[block_rows] = {};
        for (std::int64_t c = 0; c < head.dim_qk; ++c) {
            const double k = head.keys[c * head.len_kv + j], k_size = fabs(k);
            for (int r = 0; r < block_rows; ++r) {
                const double q = query[r * head.dim_qk + c];
                dot[r].add_product(q, k);
                size[r] += fabs(q) * k_size;
            }
        }
        for (int r = 0; r < block_rows; ++r)
            if (rows.sees(r, j))
                put_score(call, rows.row[r], j, dot[r], size[r], *table,
                          RowScratch(scratch, rows.first_row + r, head.len_kv), seen[r]);
    }
    for (int r = 0; r < rows.live; ++r) {
        const SeenScores all_seen = over_threads(seen[r], shared, combined);
        put_weights(call, rows.row[r], all_seen, *table,
                    RowScratch(scratch, rows.first_row + r, head.len_kv), shared,
                    sums[rows.first_row + r]);
    }
    __syncthreads();
    put_outputs(head, rows, scratch, sums, output, shared);
}

}  // namespace attest::oracle
