#pragma once
// From the address of an instruction to the line of the kernel's source.

#include <string>

namespace simt {

/// "flash.cuh:66", through addr2line; remembered. "an unknown line (build with -g)" where there is
/// no debug information.
const std::string& line_of(const void* pc);

}  // namespace simt
