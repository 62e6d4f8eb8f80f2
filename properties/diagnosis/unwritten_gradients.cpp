#include "properties/diagnosis/unwritten_gradients.hpp"

#include <cmath>

#include "properties/diagnosis/respecify.hpp"
#include "properties/law/compare.hpp"
#include "properties/law/gradient_run.hpp"

namespace attest::diagnosis {

namespace {

/// The truth is 0 by what the problem says: nothing rounds to it.
bool exactly_zero(const BackwardEvidence& e, Role role, std::int64_t n) {
    const bound::ExpectedElement& t = e.truth[role][static_cast<std::size_t>(n)];
    return t.value == 0 && t.bound == 0;
}

bool past_length(const BackwardEvidence& e, Role role, std::int64_t n) {
    const Problem& p = e.asked.problem;
    const Shape at = law::index_of(e.observed[role].shape(), n);
    if (role == Role::d_q) return at[2] >= length_of(p.mask.lens_q, p.len_q, at[0]);
    if (role == Role::d_k || role == Role::d_v)
        return at[2] >= length_of(p.mask.lens_kv, p.len_kv, at[0]);
    return false;
}

struct KindOfPlace {
    const char *id, *says;
    bool (*is)(const BackwardEvidence&, Role, std::int64_t n);
};

constexpr KindOfPlace kinds[] = {
    {"unwritten_past_length", "nothing in the rows past a sequence's length, which are to be 0",
     past_length},
    {"unwritten_unseen",
     "nothing in the rows of queries that see no key, or of keys that none sees, which are to be 0",
     [](const BackwardEvidence& e, Role role, std::int64_t n) {
         return exactly_zero(e, role, n) && !past_length(e, role, n);
     }},
    {"unwritten_zeros", "nothing in the rows that are to be 0", exactly_zero},
};

/// How many elements are unwritten and of the kind; none where one is the one and not the other.
std::optional<std::int64_t> unwritten(const KindOfPlace& kind, const BackwardEvidence& e,
                                      Role role) {
    std::int64_t count = 0;
    const Tensor& seen = e.observed[role];
    const Precision format = law::gradient_format(e.asked.problem, role);
    for (std::int64_t n = 0; n < seen.size(); ++n) {
        const bool is = kind.is(e, role, n);
        const bool wrong = outside(seen.get(n), e.truth[role][static_cast<std::size_t>(n)], format);
        if (is != wrong || (wrong && !std::isnan(seen.get(n)))) return std::nullopt;
        count += is;
    }
    return count;
}

}  // namespace

std::optional<Explanation> unwritten_gradients(const std::vector<BackwardEvidence>& wrong,
                                               const std::vector<Role>& roles) {
    for (const KindOfPlace& kind : kinds) {
        Explanation found;
        found.id = kind.id;
        found.says = kind.says + (" (seen in " + text_of(roles) + ")");
        bool fits = true;
        for (const BackwardEvidence& e : wrong)
            for (const Role role : roles) {
                if (!fits || !e.observed.has(role)) continue;
                const auto count = unwritten(kind, e, role);
                fits = count.has_value();
                if (fits) found.of += *count;
            }
        found.agree = found.of;
        if (fits && found.of >= telling_elements_min) return found;
    }
    return std::nullopt;
}

}  // namespace attest::diagnosis
