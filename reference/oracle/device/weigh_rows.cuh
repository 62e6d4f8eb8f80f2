#pragma once
// The sums of bound (a) over the keys of rows that oracle_attend() computed.

#include "reference/oracle/device/block.cuh"

namespace attest::oracle {

using bound::EntryRule;
using bound::EntryTotals;

__device__ inline EntryTotals added(const EntryTotals& a, const EntryTotals& b) {
    return {fmax(a.relative_max, b.relative_max), a.h1 + b.h1, a.lost + b.lost,
            a.centred_sum + b.centred_sum};
}

struct ColumnSum {
    double spread, size;
};

__global__ void __launch_bounds__(oracle_threads)
    oracle_weigh(DeviceHead head, const DeviceRow* all, const EntryRule* rules, std::int64_t count,
                 const DeviceRowSums* sums, const double* output, double* scratch,
                 EntryTotals* totals, double* spread, double* size) {
    SIMT_DYNAMIC_SHARED(carver);
    unsigned char* shared =
        carver.take<unsigned char>(oracle_threads * sizeof(EntryTotals), "room");
    const BlockRows rows(all, count);
    for (int r = 0; r < rows.live; ++r) {
        const std::int64_t row = rows.first_row + r;
        const RowScratch of(scratch, row, head.len_kv);
        EntryTotals mine;
        for (std::int64_t j = rows.row[r].first + threadIdx.x; j < rows.row[r].last;
             j += oracle_threads) {
            const bound::EntryCoefficients w = bound::weigh_entry(
                rules[row], of.score[j], of.weight[j] / sums[row].sum.hi, of.error[j], mine);
            of.error[j] = w.centred;
            of.low[j] = w.plain;
        }
        const EntryTotals every = over_threads(mine, shared, added);
        if (threadIdx.x == 0) totals[row] = every;
    }
    __syncthreads();
    ColumnSum* room = reinterpret_cast<ColumnSum*>(shared);
    for (std::int64_t c0 = 0; c0 < head.dim_v; c0 += oracle_threads) {
        const ColumnPlace place(c0, head.dim_v);
        ColumnSum total[block_rows] = {};
        double centre[block_rows] = {};
        for (int r = 0; r < rows.live; ++r)
            centre[r] = output[(rows.first_row + r) * head.dim_v + place.column];
        for (std::int64_t j = rows.first + place.part; place.active() && j < rows.last;
             j += place.parts) {
            const double v = head.values[j * head.dim_v + place.column], v_size = fabs(v);
            for (int r = 0; r < block_rows; ++r) {
                if (!rows.sees(r, j)) continue;
                const RowScratch of(scratch, rows.first_row + r, head.len_kv);
                total[r].spread += of.error[j] * fabs(v - centre[r]);
                total[r].size += of.low[j] * v_size;
            }
        }
        for (int r = 0; r < rows.live; ++r) {
            __syncthreads();
            room[threadIdx.x] = total[r];
            __syncthreads();
            if (place.part != 0) continue;
            for (std::int64_t part = 1; part < place.parts; ++part) {
                const ColumnSum& other = room[part * place.width + place.column - c0];
                total[r].spread += other.spread;
                total[r].size += other.size;
            }
            const std::int64_t at = (rows.first_row + r) * head.dim_v + place.column;
            spread[at] = total[r].spread;
            size[at] = total[r].size;
        }
    }
}

}  // namespace attest::oracle
