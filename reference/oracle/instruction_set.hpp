#pragma once
// Which instruction set the vectorised loops run on. They choose the best there is; measuring and
// testing choose another.

#include <string>
#include <vector>

namespace attest::oracle {

/// What this machine has and these loops are compiled for, best first: Highway's names, such as
/// AVX3 (AVX-512), AVX2, EMU128.
std::vector<std::string> instruction_sets();

/// The one in use.
std::string instruction_set();

/// Uses one of instruction_sets() from here on. BadInput for another name.
void use_instruction_set(const std::string& name);

}  // namespace attest::oracle
