#include "reference/oracle/instruction_set.hpp"

#include <algorithm>

#include "hwy/targets.h"
#include "reference/oracle/lanes.hpp"
#include "reference/problem/errors.hpp"

namespace attest::oracle {

namespace {

/// Highway's targets are bits, better ones lower. Those this library is compiled for are told by
/// its loops, not by this file, which has none.
std::vector<std::int64_t> targets() {
    std::vector<std::int64_t> all;
    for (std::int64_t rest = hwy::SupportedTargets() & compiled_targets(); rest != 0;
         rest &= rest - 1)
        all.push_back(rest & -rest);
    return all;
}

}  // namespace

std::vector<std::string> instruction_sets() {
    std::vector<std::string> names;
    for (const std::int64_t target : targets()) names.emplace_back(hwy::TargetName(target));
    return names;
}

std::string instruction_set() {
    return instruction_sets().front();
}

void use_instruction_set(const std::string& name) {
    hwy::SetSupportedTargetsForTest(0);  // what the machine has
    std::string all;
    for (const std::int64_t target : targets()) {
        if (name == hwy::TargetName(target)) {
            hwy::SetSupportedTargetsForTest(target);
            hwy::GetChosenTarget().DeInit();
            return;
        }
        all += (all.empty() ? "" : ", ") + std::string(hwy::TargetName(target));
    }
    throw BadInput("no instruction set " + name + " here", {"one of " + all});
}

}  // namespace attest::oracle
