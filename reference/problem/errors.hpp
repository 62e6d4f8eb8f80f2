#pragma once
// The two kinds of error that are exceptions. Bad input from a person or a file carries the place
// and the remedy and is printed once, in ci/, as at most five lines. A broken invariant is a bug in
// attest itself.

#include <stdexcept>
#include <string>
#include <vector>

namespace attest {

/// Input from outside that cannot be used. what() is one line "WHERE: WHAT"; details are up to four
/// further lines (the text, a caret under the place, the remedy), already indented relative to each
/// other. Exit code 2.
class BadInput : public std::runtime_error {
public:
    explicit BadInput(const std::string& line, std::vector<std::string> details = {})
        : std::runtime_error(line), details_(std::move(details)) {}
    const std::vector<std::string>& details() const noexcept { return details_; }

private:
    std::vector<std::string> details_;
};

/// A fault of this program or its surroundings (disk full, cannot start a process). Exit code 4.
class InternalError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// An invariant of ours. The sentence states what must hold.
inline void require(bool condition, const char* sentence) {
    if (!condition) throw InternalError(sentence);
}

}  // namespace attest
