#pragma once
// The one name that the library of the GPU oracle exports.

#include "reference/oracle/device_rows.hpp"

extern "C" __attribute__((visibility("default"))) attest::oracle::DeviceRows* attest_device_rows(
    const attest::oracle::DoubleDoubleConstants& constants, std::string& why);
