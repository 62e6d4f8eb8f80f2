// Whether a device is believed, and the one that is offered.

#include <fmt/format.h>

#include <cmath>
#include <mutex>
#include <utility>

#include "reference/oracle/device_oracle.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::oracle {

namespace {

/// Set up once, asked by many threads. Never destroyed: at exit the driver may be gone first.
struct DeviceOffer {
    std::mutex guard;
    OpenDevice open;
    std::unique_ptr<DeviceRows> device;
    DeviceRows* in_use = nullptr;
    DeviceState state;
};

DeviceOffer& offer() {
    static DeviceOffer& one = *new DeviceOffer;
    return one;
}

/// The device, or null and why.
std::unique_ptr<DeviceRows> opened(const OpenDevice& open, std::string& why) {
    why = "none is offered";
    if (!open) return nullptr;
    try {
        std::unique_ptr<DeviceRows> device = open(why);
        if (!device) return nullptr;
        why = confirm_device(*device);
        if (why.empty()) return device;
        why = device->name() + " disagrees with the CPU: " + why;
    } catch (const DeviceError& failed) {
        why = failed.what();
    }
    return nullptr;
}

/// Few enough multiplications for any machine, with everything the device knows: heads that share
/// keys, windows, a sink, ALiBi, a cap, more columns than threads.
std::vector<Problem> small_problems() {
    Problem p;
    p.batch = 2;
    p.heads_q = 4;
    p.heads_kv = 2;
    p.len_q = 9;
    p.len_kv = 300;
    p.dim_qk = 24;
    p.dim_v = 33;
    p.mask.causal = true;
    Problem full = p;
    full.mask.causal = false;
    full.len_q = full.len_kv = 70;
    full.alibi = true;
    full.softcap = 30;
    full.sink = true;
    Problem wide = p;
    wide.dim_v = 300;
    wide.len_kv = 40;
    wide.mask.window.left = 5;
    return {p, full, wide};
}

std::string disagreement(const std::vector<bound::ExpectedElement>& a,
                         const std::vector<bound::ExpectedElement>& b, const char* what) {
    for (std::size_t x = 0; x < a.size(); ++x) {
        const bool same = a[x].value == b[x].value ||
                          std::abs(a[x].value - b[x].value) <= a[x].error + b[x].error;
        if (!same)
            return fmt::format("{} element {}: {} on the CPU, {} on the device", what, x,
                               a[x].value, b[x].value);
    }
    return "";
}

}  // namespace

std::string confirm_device(DeviceRows& device) {
    for (const Problem& p : small_problems()) {
        Case c;
        c.problem = p;
        c.values.seed = 7;
        const TensorSet inputs = make_inputs(c);
        const auto seen = attend_on_device(device, p, {}, {}, inputs, {});
        if (!seen) return "it declines a problem it should know";
        const bound::Expected truth = attend(p, {}, {}, inputs, Arithmetic::double_double);
        for (const std::string& said : {disagreement(truth.output, seen->output, "o"),
                                        disagreement(truth.lse, seen->lse, "lse")})
            if (!said.empty()) return said;
    }
    return "";
}

void offer_device(OpenDevice open) {
    DeviceOffer& o = offer();
    const std::lock_guard lock(o.guard);
    o.open = std::move(open);
}

DeviceRows* device_in_use() {
    DeviceOffer& o = offer();
    const std::lock_guard lock(o.guard);
    if (!std::exchange(o.state.wanted, true)) {
        o.device = opened(o.open, o.state.why_not);
        if (o.device) o.state.name = o.device->name();
        o.in_use = o.device.get();
    }
    return o.in_use;
}

void lose_device(const std::string& why) {
    DeviceOffer& o = offer();
    const std::lock_guard lock(o.guard);
    if (o.in_use == nullptr) return;  // another thread's call failed first
    o.in_use = nullptr;
    o.state.why_not = o.state.name + " failed: " + why;
    o.state.name.clear();
}

DeviceState device_state() {
    DeviceOffer& o = offer();
    const std::lock_guard lock(o.guard);
    return o.state;
}

}  // namespace attest::oracle
