#pragma once
// A planted bug, told: the story of the real one, the laws that must see it, and what the diagnosis
// must answer. How it is wrong is code, and stands beside the story in kernels/mutants and
// kernels/cuda/planted_bugs.hpp, which are linked into the worker's plug-ins alone.

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>

namespace attest::kernel {

/// Up to six law ids; a seventh does not compile in a constant.
class LawIds {
public:
    constexpr LawIds() = default;
    constexpr LawIds(std::initializer_list<std::string_view> ids) {
        for (const std::string_view id : ids) add(id);
    }
    constexpr void add(std::string_view id) { ids_.at(count_++) = id; }
    constexpr const std::string_view* begin() const { return ids_.data(); }
    constexpr const std::string_view* end() const { return ids_.data() + count_; }
    constexpr bool empty() const { return count_ == 0; }

private:
    std::array<std::string_view, 6> ids_{};
    std::size_t count_ = 0;
};

struct Mutant {
    std::string_view id = {};      ///< "M001"; the kernel is `mutant:M001`
    std::string_view kernel = {};  ///< the correct kernel it was made from
    std::string_view bug_class =
        {};  ///< what went wrong, by the classes of kernels/mutants/README.md
    std::string_view operation = {};  ///< "flash forward"
    std::string_view change = {};     ///< the one change
    std::string_view trigger = {};    ///< what a case needs to show it
    std::string_view source = {};     ///< the real bug; empty where it is a class of many
    /// Every one of them must be violated by this mutant. Empty where it is equivalent.
    LawIds must = {};
    std::string_view diagnosis = {};  ///< the id the diagnosis must answer; empty: none is asked
    bool equivalent = false;          ///< not a bug: no law may be violated
};

}  // namespace attest::kernel
