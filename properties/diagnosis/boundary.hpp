#pragma once
// When a law fails: the relation of lengths, dimensions, features and formats that best separates
// the cases that fail from those that hold, such as "only when Tq != Tk".

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "properties/search/judge.hpp"

namespace attest::diagnosis {

struct Boundary {
    bool found = false;  ///< a relation separates; else `says` tells what is known
    std::string says;    ///< "only when Tq ≠ Tk"
    std::int64_t inside_failed = 0, inside = 0, outside_failed = 0, outside = 0;  ///< cases
    std::vector<std::string> axes;                    ///< the two quantities it is drawn over
    std::vector<std::array<std::int64_t, 3>> points;  ///< x, y, 1 where a case there fails
    /// Of a relation that every failing case fulfils, and that is of the problem alone.
    std::function<bool(const Problem&)> holds{};

    /// A call that no law drew, and in which the kernel is wrong as well: where it does not fulfil
    /// the relation, no pattern was found.
    void hear(const Problem& wrong);
};

/// A relation is reported where every failing case fulfils it, or else ("mostly") at least half
/// more of the cases that fulfil it fail than of the others, and so good a separation would come by
/// chance in less than one run of a hundred: over all relations there are, or over those of
/// features and sizes that `smallest`, a failing case too, could not be shrunk without; each of the
/// searches errs so often. None that `smallest` does not fulfil; none of which one side alone was
/// tried.
Boundary find_boundary(const std::vector<search::CaseRecord>& records,
                       const Case* smallest = nullptr);

/// The same for the cases of several laws that fail for one cause, each of which draws its own as
/// it needs them; the first is that of `smallest`. Nothing "mostly".
Boundary find_boundary(const std::vector<const std::vector<search::CaseRecord>*>& laws,
                       const Case* smallest);

}  // namespace attest::diagnosis
