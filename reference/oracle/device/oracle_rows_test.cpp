// The GPU oracle on a simulated GPU, in both of its builds: it agrees with the CPU's within both
// certified errors, its bounds are the CPU's, and no schedule changes a bit.

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "kernels/simt/check.hpp"
#include "kernels/simt/options.hpp"
#include "reference/bound/kernel_model.hpp"
#include "reference/oracle/device/make_device_rows.hpp"
#include "reference/oracle/device_oracle.hpp"
#include "reference/oracle/double_double_constants.hpp"
#include "reference/oracle/emulated_kernel.hpp"
#include "reference/oracle/long_context.hpp"
#include "reference/oracle/random_problem.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::oracle {
namespace {

std::unique_ptr<DeviceRows> simulated() {
    std::string why;
    std::unique_ptr<DeviceRows> device(attest_device_rows(double_double_constants(), why));
    EXPECT_TRUE(device) << why;
    return device;
}

/// Fewer in the checked build, where each access costs a look.
std::uint64_t cases(std::uint64_t fast) {
    return simt::checker() == nullptr ? fast : fast / 10;
}

void expect_clean() {
    for (const simt::Diagnostic& d : simt::last_report().diagnostics)
        ADD_FAILURE() << d.kind << ": " << d.text;
}

struct Agreed {
    std::int64_t elements = 0, differ = 0;
    double bound_low = INFINITY, bound_high = 0;  ///< the device's over the CPU's
    double single_low = INFINITY;  ///< the same where the CPU sums in single precision, upward
};

void compare(const std::vector<bound::ExpectedElement>& cpu,
             const std::vector<bound::ExpectedElement>& device, const std::string& what,
             bool single, Agreed& sum) {
    ASSERT_EQ(cpu.size(), device.size());
    for (std::size_t x = 0; x < cpu.size(); ++x) {
        const bound::ExpectedElement &a = cpu[x], &b = device[x];
        ++sum.elements;
        if (a.value == b.value || (std::isnan(a.value) && std::isnan(b.value))) {
            EXPECT_EQ(std::isnan(a.bound), std::isnan(b.bound));
        } else {
            ++sum.differ;
            ASSERT_LE(std::abs(a.value - b.value), a.error + b.error) << what << " " << x;
        }
        ASSERT_EQ(std::isinf(a.bound), std::isinf(b.bound)) << what << " " << x;
        ASSERT_LT(b.error, 1e-12 * (1 + std::abs(b.value)) + 0x1p-8 * b.bound) << what;
        if (!(a.bound > 0) || std::isinf(a.bound)) continue;
        double& low = single ? sum.single_low : sum.bound_low;
        low = std::min(low, b.bound / a.bound);
        sum.bound_high = std::max(sum.bound_high, b.bound / a.bound);
    }
}

TEST(oracle_rows, is_confirmed) {
    simt::clear_report();
    const auto device = simulated();
    EXPECT_EQ(confirm_device(*device), "");
    expect_clean();
}

TEST(oracle_rows, agrees_with_the_cpu) {
    simt::clear_report();
    const auto device = simulated();
    Agreed sum;
    std::uint64_t computed = 0;
    for (std::uint64_t number = 0; computed < cases(200); ++number) {
        const RandomCase random = random_case(number, 70, 40);
        Case c = random.tried;
        Problem& p = c.problem;
        p.mask.tensor = {};
        p.rope = {};
        p.cache.keys_rotated = false;
        const TensorSet inputs = make_inputs(c);
        const Numerics numerics = declared(random_emulation(number));
        simt::options().schedule = static_cast<simt::Schedule>(number % 4);
        simt::options().seed = number;
        const auto seen = attend_on_device(*device, p, random.dialect, numerics, inputs, {});
        if (!seen) continue;  // non-finite inputs
        ++computed;
        const bound::Expected truth =
            attend(p, random.dialect, numerics, inputs, Arithmetic::double_double);
        EXPECT_EQ(truth.row_empty, seen->row_empty);
        const bool single = bound::resolve(p, numerics).weight_floor >= 0x1p-126;
        compare(truth.output, seen->output, print(p) + ": o", single, sum);
        compare(truth.lse, seen->lse, print(p) + ": lse", single, sum);
        if (HasFatalFailure()) return;
    }
    expect_clean();
    EXPECT_GT(sum.elements, static_cast<std::int64_t>(cases(20000)));
    // The same sums in another order, of at most 2^8 numbers of one sign.
    EXPECT_GT(sum.bound_low, 1 - 0x1p-40);
    EXPECT_LT(sum.bound_high, 1 + 0x1p-19);  // size is rounded up by 2^-20
    std::printf(
        "%lld elements, %lld not the same double; bounds %.8f to %.8f of the CPU's, from %.3f "
        "where that rounds up\n",
        static_cast<long long>(sum.elements), static_cast<long long>(sum.differ), sum.bound_low,
        sum.bound_high, sum.single_low);
}

TEST(oracle_rows, the_hull_bounds_where_weights_may_be_far_off) {
    Case c;
    c.problem.len_q = 5;
    c.problem.len_kv = 40;
    c.problem.dim_qk = 8;
    c.problem.splits = 1;
    c.problem.scale = 3e5;                // scores are off by more than 1
    const Numerics numerics{.tile = 64};  // and nothing is merged
    const TensorSet inputs = make_inputs(c);
    const auto device = simulated();
    const auto seen = attend_on_device(*device, c.problem, {}, numerics, inputs, {});
    ASSERT_TRUE(seen);
    Agreed sum;
    compare(attend(c.problem, {}, numerics, inputs, Arithmetic::double_double).output, seen->output,
            print(c.problem), false, sum);
    EXPECT_LT(sum.bound_high, 1 + 0x1p-19);
    EXPECT_LT(seen->output.front().bound, 10);
}

/// A device whose every output is a little off.
class Skewed final : public DeviceRows {
public:
    explicit Skewed(DeviceRows& device) : device_(device) {}
    std::string name() const override { return "a skewed device"; }
    void load(const DeviceHead& head) override { device_.load(head); }
    std::int64_t rows_max() const override { return 5; }
    void attend(const DeviceCall& call, std::span<const DeviceRow> rows,
                std::span<const double> queries, std::span<DeviceRowSums> sums,
                std::span<double> output) override {
        device_.attend(call, rows, queries, sums, output);
        for (double& o : output) o *= 1 + off;
    }
    void weigh(std::span<const bound::EntryRule> rules, std::span<bound::EntryTotals> totals,
               std::span<double> spread, std::span<double> size) override {
        if (fails) throw DeviceError("it is gone");
        device_.weigh(rules, totals, spread, size);
    }
    double off = 0x1p-50;
    bool fails = false;

private:
    DeviceRows& device_;
};

TEST(oracle_rows, a_device_that_is_off_is_not_believed) {
    const auto device = simulated();
    Skewed skewed(*device);
    EXPECT_NE(confirm_device(skewed), "");
    skewed.off = 0;  // batches of five rows alone
    EXPECT_EQ(confirm_device(skewed), "");
}

TEST(oracle_rows, serve_long_contexts_until_the_device_fails) {
    Case c;
    c.problem.len_q = 20;
    c.problem.len_kv = 500;
    c.problem.dim_qk = 8;
    const TensorSet inputs = make_inputs(c);
    const auto device = simulated();
    Skewed* offered = nullptr;
    offer_device([&](std::string&) {
        auto made = std::make_unique<Skewed>(*device);
        made->off = 0;
        offered = made.get();
        return made;
    });
    EXPECT_FALSE(device_state().wanted);
    EXPECT_TRUE(attend_affordable(c.problem, {}, {}, inputs, 1, 1).rows.empty());
    EXPECT_EQ(device_state().name, "a skewed device");
    offered->fails = true;
    EXPECT_FALSE(attend_affordable(c.problem, {}, {}, inputs, 1, 1).rows.empty());
    EXPECT_EQ(device_state().why_not, "a skewed device failed: it is gone");
    EXPECT_EQ(device_in_use(), nullptr);
    lose_device("a second thread's call");
    EXPECT_EQ(device_state().why_not, "a skewed device failed: it is gone");
}

}  // namespace
}  // namespace attest::oracle
