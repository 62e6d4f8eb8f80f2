// A GPU as the oracle's DeviceRows. No contraction of products and sums: error-free transformations
// would not survive it.

#include <algorithm>
#include <string>
#include <utility>

#include "reference/oracle/device/attend_rows.cuh"
#include "reference/oracle/device/make_device_rows.hpp"
#include "reference/oracle/device/weigh_rows.cuh"

namespace attest::oracle {
namespace {

void check(cudaError_t code, const char* what) {
    if (code != cudaSuccess) throw DeviceError(std::string(what) + ": " + cudaGetErrorString(code));
}

/// Memory of the device that grows.
template <typename T>
class DeviceArray {
public:
    DeviceArray() = default;
    ~DeviceArray() { cudaFree(data_); }
    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;

    T* room(std::size_t count) {
        if (count <= count_) return data_;
        cudaFree(std::exchange(data_, nullptr));
        count_ = 0;
        check(cudaMalloc(&data_, count * sizeof(T)), "memory");
        count_ = count;
        return data_;
    }
    T* take(const T* from, std::size_t count) {
        check(cudaMemcpy(room(count), from, count * sizeof(T), cudaMemcpyHostToDevice), "copy in");
        return data_;
    }
    void give(T* to, std::size_t count) const {
        check(cudaMemcpy(to, data_, count * sizeof(T), cudaMemcpyDeviceToHost), "copy out");
    }
    T* get() const { return data_; }

private:
    T* data_ = nullptr;
    std::size_t count_ = 0;
};

class CudaRows final : public DeviceRows {
public:
    CudaRows(const DoubleDoubleConstants& constants, const cudaDeviceProp& device)
        : name_(device.name), scratch_bytes_(device.totalGlobalMem / 8) {
        constants_.take(&constants, 1);
    }

    std::string name() const override { return name_; }

    void load(const DeviceHead& head) override {
        head_ = head;
        const auto size = [](std::int64_t a, std::int64_t b) {
            return static_cast<std::size_t>(a * b);
        };
        head_.keys = keys_.take(head.keys, size(head.dim_qk, head.len_kv));
        head_.values = values_.take(head.values, size(head.len_kv, head.dim_v));
    }

    std::int64_t rows_max() const override {
        const auto row_bytes = 4 * sizeof(double) * static_cast<std::size_t>(head_.len_kv);
        return std::max<std::int64_t>(
            block_rows, static_cast<std::int64_t>(std::min<std::size_t>(
                            scratch_bytes_ / std::max<std::size_t>(row_bytes, 1), 1 << 16)));
    }

    void attend(const DeviceCall& call, std::span<const DeviceRow> rows,
                std::span<const double> queries, std::span<DeviceRowSums> sums,
                std::span<double> output) override {
        rows_.take(rows.data(), rows.size());
        scratch_.room(rows.size() * 4 * static_cast<std::size_t>(head_.len_kv));
        sums_.room(rows.size());
        output_.room(output.size());
        const std::size_t shared =
            16 + static_cast<std::size_t>(block_rows * head_.dim_qk) * sizeof(double) +
            oracle_threads * sizeof(SeenScores);
        check(
            simt::launch(oracle_attend, blocks(rows), dim3(oracle_threads), shared, cudaStream_t{},
                         head_, call, rows_.get(), queries_.take(queries.data(), queries.size()),
                         static_cast<std::int64_t>(rows.size()), constants_.get(), scratch_.get(),
                         sums_.get(), output_.get()),
            "launch");
        sums_.give(sums.data(), sums.size());
        output_.give(output.data(), output.size());
    }

    void weigh(std::span<const EntryRule> rules, std::span<EntryTotals> totals,
               std::span<double> spread, std::span<double> size) override {
        totals_.room(totals.size());
        spread_.room(spread.size());
        size_.room(size.size());
        check(simt::launch(oracle_weigh, blocks(rules), dim3(oracle_threads),
                           oracle_threads * sizeof(EntryTotals), cudaStream_t{}, head_, rows_.get(),
                           rules_.take(rules.data(), rules.size()),
                           static_cast<std::int64_t>(rules.size()), sums_.get(), output_.get(),
                           scratch_.get(), totals_.get(), spread_.get(), size_.get()),
              "launch");
        totals_.give(totals.data(), totals.size());
        spread_.give(spread.data(), spread.size());
        size_.give(size.data(), size.size());
    }

private:
    template <typename T>
    static dim3 blocks(std::span<T> rows) {
        return dim3(static_cast<unsigned>((rows.size() + block_rows - 1) / block_rows));
    }

    std::string name_;
    std::size_t scratch_bytes_ = 0;
    DeviceHead head_;
    DeviceArray<DoubleDoubleConstants> constants_;
    DeviceArray<double> keys_, values_, queries_, scratch_, output_, spread_, size_;
    DeviceArray<DeviceRow> rows_;
    DeviceArray<DeviceRowSums> sums_;
    DeviceArray<EntryRule> rules_;
    DeviceArray<EntryTotals> totals_;
};

}  // namespace
}  // namespace attest::oracle

attest::oracle::DeviceRows* attest_device_rows(
    const attest::oracle::DoubleDoubleConstants& constants, std::string& why) {
    int devices = 0;
    cudaDeviceProp device{};
    const cudaError_t code = cudaGetDeviceCount(&devices);
    if (code != cudaSuccess || devices == 0) {
        why = code != cudaSuccess ? cudaGetErrorString(code) : "no CUDA device";
        return nullptr;
    }
    attest::oracle::check(cudaGetDeviceProperties(&device, 0), "properties");
    return new attest::oracle::CudaRows(constants, device);
}
