#pragma once
// The one name that the library of the GPU oracle exports.

#include "reference/oracle/device_rows.hpp"

extern "C" __attribute__((visibility("default"))) attest::DeviceRows* attest_device_rows(
    const attest::DoubleDoubleConstants& constants, std::string& why);
