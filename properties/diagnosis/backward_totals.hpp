#pragma once
// The sums of a backward pass, each with the sizes that its roundings are relative to.

#include <cstdint>
#include <vector>

#include "properties/diagnosis/backward_model.hpp"

namespace attest::diagnosis {

/// Adds terms up as `how` says, with the sizes that the sum's roundings are relative to.
class Totals {
public:
    explicit Totals(std::size_t size)
        : sum_(size), size_(size, 0.0), count_(size, 0), owner_(size, none) {}

    static constexpr std::int64_t none = -1;

    /// `owner`: whose terms are one to `last` and `first`; none: each is by itself.
    void add(std::size_t at, Near term, Joining how, std::int64_t owner = none) {
        const bool another = owner == none || owner != owner_[at];
        if (how == Joining::first && count_[at] > 0 && another) return;
        if (how == Joining::last && another) {
            sum_[at] = {};
            size_[at] = 0;
        }
        owner_[at] = owner;
        sum_[at] = sum_[at] + term;
        size_[at] += most(term);
        ++count_[at];
    }
    /// The sums, each with `relative` of its size and `absolute` of error and `unit` of its size a
    /// term, times `factor`.
    std::vector<Near> take(double relative, double absolute, double factor, Joining how,
                           double unit) const {
        std::vector<Near> out(sum_.size());
        for (std::size_t at = 0; at < sum_.size(); ++at) {
            if (count_[at] == 0) continue;
            Near x = sum_[at];
            const auto terms = static_cast<double>(count_[at]);
            x.error += (relative + unit * terms) * size_[at] + absolute;
            if (how == Joining::mean) factor = 1 / terms;
            out[at] = factor * x;
        }
        return out;
    }

private:
    std::vector<Near> sum_;
    std::vector<double> size_;
    std::vector<std::int64_t> count_, owner_;
};

}  // namespace attest::diagnosis
