#pragma once
// Which blocks of a launch come before the one that runs. Only atomics on global memory order them
// (release and acquire): that is how "the last block combines" is right.

#include <cstdint>
#include <map>
#include <set>

namespace simt {

class BlockOrder {
public:
    void runs(std::uint32_t block) {
        if (running_ == block) return;
        running_ = block;
        before_.clear();
    }
    /// The running block's atomic on `address`: behind all that met there, and all behind those.
    void meet(std::uintptr_t address) {
        auto& met = met_[address];
        before_.insert(met.begin(), met.end());
        met.insert(before_.begin(), before_.end());
        met.insert(running_);
    }
    bool before_running(std::uint32_t block) const { return before_.count(block) != 0; }

private:
    std::map<std::uintptr_t, std::set<std::uint32_t>> met_;
    std::set<std::uint32_t> before_;
    std::uint32_t running_ = ~0u;
};

}  // namespace simt
