#pragma once
// The oracle on a GPU: every row of a long context at the GPU's speed, in double-double.
//
// The device multiplies and adds; what a row may differ by is derived here, by the same functions
// as everywhere. So the two agree within their certified errors, which confirm_device() asks of a
// device before it is believed.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reference/oracle/device_rows.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::oracle {

/// As attend_rows(), or attend() where `rows` is empty. Nothing where the device does not compute
/// it: RoPE, a mask tensor, non-finite inputs, values below 2^-400. Throws what the device throws.
std::optional<bound::Expected> attend_on_device(DeviceRows& device, const Problem& problem,
                                                const Dialect& dialect, const Numerics& numerics,
                                                const TensorSet& inputs,
                                                const std::vector<std::int64_t>& rows);

/// Compares the device with the CPU on a few small problems. Empty, or where they disagree.
std::string confirm_device(DeviceRows& device);

/// How a device is had, when one is first wanted; null, and why, where there is none.
using OpenDevice = std::function<std::unique_ptr<DeviceRows>(std::string& why)>;
void offer_device(OpenDevice open);

/// The device offered, once it is confirmed; null: none. Opened when first asked for; any thread.
DeviceRows* device_in_use();
/// It failed: nothing asks it any more.
void lose_device(const std::string& why);

/// What became of the offer.
struct DeviceState {
    bool wanted = false;  ///< anything has asked
    std::string name;     ///< of the device in use; empty: none
    std::string why_not;
};
DeviceState device_state();

}  // namespace attest::oracle
