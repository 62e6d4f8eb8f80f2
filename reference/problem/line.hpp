#pragma once
// The one-line text form as words with the field each belongs to: the printer makes them, and
// errors point at them.

#include <string>
#include <string_view>
#include <vector>

#include "reference/problem/case.hpp"
#include "reference/problem/validity.hpp"

namespace attest {

struct Word {
    std::string field;  ///< JSON key of the field
    std::string text;
};

std::vector<Word> words_of(const Problem& problem);  ///< of a canonical problem
std::vector<Word> words_of(const Values& values);
std::string join(const std::vector<Word>& words);

/// "this is not a problem: WHAT", the printed line, the caret under the field, the remedy.
[[noreturn]] void refuse(const std::string& tried, const std::vector<Word>& words,
                         const Contradiction& contradiction);

}  // namespace attest
