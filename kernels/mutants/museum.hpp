#pragma once
// The museum: every planted bug with the story of the real one, the laws that must see it and what
// the diagnosis must answer. Data alone; the kernels are in the worker, as `mutant:ID`.

#include <span>
#include <string_view>
#include <vector>

namespace attest {

struct Mutant {
    std::string_view id;         ///< "M001"; the kernel is `mutant:M001`
    std::string_view kernel;     ///< the correct kernel it was made from
    std::string_view bug_class;  ///< what went wrong, by the classes of kernels/mutants/README.md
    std::string_view operation;  ///< "flash forward"
    std::string_view change;     ///< the one change
    std::string_view trigger;    ///< what a case needs to show it
    std::string_view source;     ///< the real bug; empty where it is a class of many
    /// Law ids: every one of them must be violated by this mutant. Empty where it is equivalent.
    std::vector<std::string_view> must;
    std::string_view diagnosis =
        {};                   ///< the sentence the diagnosis must contain; empty: none is asked
    bool equivalent = false;  ///< not a bug: no law may be violated
};

std::span<const Mutant> museum();

}  // namespace attest
