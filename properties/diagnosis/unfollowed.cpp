#include "properties/diagnosis/unfollowed.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <vector>

#include "properties/law/visibility.hpp"
#include "properties/search/kernel_trial.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/inputs.hpp"
#include "reference/problem/validity.hpp"

namespace attest::diagnosis {

namespace {

constexpr std::size_t parts_max = 96;  // a call each

/// What is made another by itself: a query, a key, all that the mask says to one head of a
/// sequence, a head's slope or sink.
struct InputPart {
    Role role = Role::q;
    std::int64_t first = 0, count = 0;  ///< flat
    std::string name;                   ///< "the mask of head 1"
};

std::string of_axes(const Shape& s, std::int64_t b, std::int64_t h, const char* head) {
    std::string text;
    if (s[1] > 1) text += fmt::format(" of {} {}", head, h);
    if (s[0] > 1) text += fmt::format(" of sequence {}", b);
    return text;
}

void add_parts(std::vector<InputPart>& parts, Role role, const Shape& s) {
    if (role == Role::sinks || role == Role::alibi_slopes) {
        for (std::int64_t h = 0; h < s[0]; ++h)
            parts.push_back(
                {role, h, 1,
                 fmt::format("the {} of head {}", role == Role::sinks ? "sink" : "slope", h)});
        return;
    }
    for (std::int64_t b = 0; b < s[0]; ++b)
        for (std::int64_t h = 0; h < s[1]; ++h) {
            const std::int64_t first = (b * s[1] + h) * s[2] * s[3];
            if (role == Role::mask)
                parts.push_back({role, first, s[2] * s[3], "the mask" + of_axes(s, b, h, "head")});
            for (std::int64_t t = 0; role != Role::mask && t < s[2]; ++t)
                parts.push_back({role, first + t * s[3], s[3],
                                 role == Role::q
                                     ? fmt::format("query {}", t) + of_axes(s, b, h, "head")
                                     : fmt::format("key {}", t) + of_axes(s, b, h, "key head")});
        }
}

std::vector<InputPart> all_parts(const TensorSet& inputs) {
    std::vector<InputPart> parts;
    for (const Role role : {Role::mask, Role::sinks, Role::alibi_slopes, Role::q, Role::k})
        if (inputs.has(role)) add_parts(parts, role, inputs[role].shape());
    return parts;
}

TensorSet made_another(const TensorSet& inputs, const InputPart& part, const Problem& p) {
    TensorSet other = inputs;
    Tensor& t = other[part.role];
    const bool mask = part.role == Role::mask,
               boolean = mask && p.mask.tensor.kind == MaskKind::boolean;
    for (std::int64_t n = part.first; n < part.first + part.count; ++n)
        t.set(n, boolean ? 1 - t.get(n)
                 : mask && (n - part.first) % 2 == 0
                     ? -infinite
                     : t.get(n) / 2 + 2 + static_cast<double>(n % 3) / 4);
    return other;
}

struct AskedAnswer {
    TensorSet observed;
    bound::Expected truth;
};

/// By less than bounds and roundings are wide, by more, and by many times as much.
enum class Change : std::uint8_t { none, within, beyond, far };

/// Of one row of the output, or one log-sum-exp.
class RowChange {
public:
    explicit RowChange(Precision format) : roundoff_(traits(format).unit_roundoff) {}
    void add(double kernel_before, double kernel_after, const bound::ExpectedElement& before,
             const bound::ExpectedElement& after) {
        kernel_ = std::max(kernel_, change_of(kernel_before, kernel_after, before, after));
        truth_ = std::max(truth_, change_of(before.value, after.value, before, after));
    }
    bool missed() const { return truth_ == Change::far && kernel_ <= Change::within; }
    bool stray() const { return truth_ == Change::none && kernel_ >= Change::beyond; }

private:
    // Apart beyond what the bounds allow and the roundings of both to the format.
    Change change_of(double a, double b, const bound::ExpectedElement& before,
                     const bound::ExpectedElement& after) const {
        constexpr double many = 16;
        if (a == b || (std::isnan(a) && std::isnan(b))) return Change::none;
        if (!std::isfinite(a) || !std::isfinite(b)) return Change::far;
        const double allowed = before.bound + before.error + after.bound + after.error +
                               4 * roundoff_ * std::max(std::abs(a), std::abs(b));
        const double apart = std::abs(a - b);
        return apart > many * allowed ? Change::far
               : apart > allowed      ? Change::beyond
                                      : Change::within;
    }

    double roundoff_;
    Change kernel_ = Change::none, truth_ = Change::none;
};

class Follower {
public:
    Follower(search::Kernel& kernel, const Case& c)
        : problem_(c.problem), trial_(kernel, c), inputs_(trial_.inputs()) {
        // What is hidden is another question (misread.hpp).
        if (problem_.mask.tensor.kind == MaskKind::additive) {
            Tensor& mask = inputs_[Role::mask];
            for (std::int64_t n = 0; n < mask.size(); ++n)
                if (!std::isfinite(mask.get(n))) mask.set(n, 0);
        }
    }

    std::string sentence() {
        const std::vector<InputPart> parts = all_parts(inputs_);
        if (parts.size() > parts_max) return {};
        base_ = answer(inputs_);
        std::string missed, stray, who;
        Role role = Role::q;
        for (const InputPart& part : parts) {
            const std::optional<Seen> seen = look(part);
            if (!seen || (!who.empty() && (seen->who != who || part.role != role))) continue;
            who = seen->who;
            role = part.role;
            std::string& list = seen->missed ? missed : stray;
            if (list.empty()) list = part.name;
        }
        if (who.empty()) return {};
        if (missed.empty()) return who + " follows " + stray + ", with which it has nothing to do";
        if (stray.empty()) return who + " does not follow " + missed;
        return who + " follows " + stray + ", and not " + missed;
    }

private:
    struct Seen {
        std::string who;
        bool missed = false;
    };

    AskedAnswer answer(const TensorSet& inputs) const {
        return {trial_.run(problem_, inputs), trial_.expected(problem_, inputs)};
    }

    /// Whether it is of the row's own query, key head, mask, sink or slope: what the truth makes
    /// nothing of for once, as of the score of an only key, has to do with it all the same.
    bool is_own(const InputPart& part, std::size_t flat) const {
        const auto row = static_cast<std::int64_t>(flat);
        const std::int64_t i = row % problem_.len_q, h = row / problem_.len_q % problem_.heads_q,
                           b = row / problem_.len_q / problem_.heads_q;
        if (part.role == Role::sinks || part.role == Role::alibi_slopes) return part.first == h;
        const Shape& s = inputs_[part.role].shape();
        const std::int64_t of_head = s[2] * s[3], head = part.first / of_head % s[1],
                           own = part.role == Role::k ? h / group_size(problem_) : h;
        const bool same =
            (s[0] == 1 || part.first / of_head / s[1] == b) && (s[1] == 1 || head == own);
        return same && (part.role != Role::q || part.first % of_head / s[3] == i);
    }

    /// The first answer that is wrong about this part.
    std::optional<Seen> look(const InputPart& part) const {
        const AskedAnswer other = answer(made_another(inputs_, part, problem_));
        const std::vector<law::Row> rows = law::all_rows(problem_);
        const auto dim = static_cast<std::size_t>(value_dim(problem_));
        const auto judge =
            [&](Role role, const char* of, std::size_t width,
                const std::vector<bound::ExpectedElement>& before,
                const std::vector<bound::ExpectedElement>& after) -> std::optional<Seen> {
            for (std::size_t r = 0; r < rows.size(); ++r) {
                RowChange compared(precision_of(base_.observed[role].type()));
                for (std::size_t n = r * width; n < (r + 1) * width; ++n) {
                    const auto flat = static_cast<std::int64_t>(n);
                    compared.add(base_.observed[role].get(flat), other.observed[role].get(flat),
                                 before[n], after[n]);
                }
                if (compared.missed() || (compared.stray() && !is_own(part, r)))
                    return Seen{of + law::name_of(problem_, rows[r]), compared.missed()};
            }
            return std::nullopt;
        };
        if (auto seen = judge(Role::o, "", dim, base_.truth.output, other.truth.output))
            return seen;
        if (!base_.observed.has(Role::lse)) return std::nullopt;
        return judge(Role::lse, "the log-sum-exp of ", 1, base_.truth.lse, other.truth.lse);
    }

    Problem problem_;
    search::KernelTrial trial_;
    TensorSet inputs_;
    AskedAnswer base_;
};

}  // namespace

std::string unfollowed(search::Kernel& kernel, const Case& smallest) try {
    Case c = smallest;
    c.problem.dropout = {};
    c.problem.want_grad = false;
    c.problem = canonical(c.problem);
    c.values = {ValueKind::normal, 1, {}};
    require_valid(c.problem);
    c.problem.want_lse = kernel.manifest().features.has(Feature::lse);
    if (!kernel.supports(c.problem, nullptr)) {
        c.problem.want_lse = false;
        if (!kernel.supports(c.problem, nullptr)) return {};
    }
    return Follower(kernel, c).sentence();
} catch (const search::NoAnswer&) {
    return {};
} catch (const BadInput&) {
    return {};
}

}  // namespace attest::diagnosis
