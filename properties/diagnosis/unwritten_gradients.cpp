#include "properties/diagnosis/unwritten_gradients.hpp"

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/respecify.hpp"
#include "properties/law/compare.hpp"
#include "properties/law/gradient_run.hpp"

namespace attest::diagnosis {

namespace {

bool past_length(const BackwardEvidence& e, Role role, std::int64_t n) {
    const Problem& p = e.asked.problem;
    const Shape at = law::index_of(e.observed[role].shape(), n);
    if (role == Role::d_q) return at[2] >= length_of(p.mask.lens_q, p.len_q, at[0]);
    if (role == Role::d_k || role == Role::d_v)
        return at[2] >= length_of(p.mask.lens_kv, p.len_kv, at[0]);
    return false;
}

/// A query that sees no key, a key that no query sees.
bool unseen(const BackwardEvidence& e, Role role, std::int64_t n) {
    const Shape at = law::index_of(e.observed[role].shape(), n);
    if (role == Role::d_q)
        return !past_length(e, role, n) && !e.call->sees_any(at[0], at[1], at[2]);
    if (role == Role::d_k || role == Role::d_v)
        return !past_length(e, role, n) && !e.call->is_seen(at[0], at[1], at[2]);
    return false;
}

/// An LSE of a query that nothing is in, no sink either.
bool lse_is_empty(const BackwardEvidence& e, Role role, std::int64_t n) {
    if (role != Role::d_q) return unseen(e, role, n);
    const Shape at = law::index_of(e.observed[role].shape(), n);
    return unseen(e, role, n) && e.call->row(at[0], at[1], at[2]).lse.value == -infinite;
}

/// A key of a sequence, or of a document, that has no query.
bool of_no_query(const BackwardEvidence& e, Role role, std::int64_t n) {
    const Mask& mask = e.asked.problem.mask;
    if (role != Role::d_k && role != Role::d_v) return false;
    const Shape at = law::index_of(e.observed[role].shape(), n);
    if (mask.documents_q.empty()) return length_of(mask.lens_q, e.asked.problem.len_q, at[0]) == 0;
    const auto document = static_cast<std::size_t>(document_of(mask.documents_kv, at[2]));
    return document < mask.documents_q.size() && mask.documents_q[document] == 0;
}

struct KindOfPlace {
    const char *id, *says;
    bool (*is)(const BackwardEvidence&, Role, std::int64_t n);
    bool all = true;  ///< such places are unwritten; else some of them
};

constexpr KindOfPlace kinds[] = {
    {"unwritten_past_length", "nothing in the rows past a sequence's length, which are to be 0",
     past_length},
    {"unwritten_unseen",
     "nothing in the rows of queries that see no key, or of keys that none sees, which are to be 0",
     unseen},
    {"unwritten_of_no_query",
     "nothing in dK and dV of a sequence or document without queries, which are to be 0",
     of_no_query},
    {"unwritten_lse_empty",
     "nothing in the rows of queries whose LSE is -inf, or of keys that none sees, which are to be "
     "0",
     lse_is_empty},
    {"unwritten_zeros",
     "nothing in the rows past lengths, of queries that see no key and of keys that none sees",
     [](const BackwardEvidence& e, Role role, std::int64_t n) {
         return past_length(e, role, n) || unseen(e, role, n);
     }},
    {"unwritten_some_zeros",
     "nothing in some of the rows whose gradient is exactly 0: they are never written",
     [](const BackwardEvidence& e, Role role, std::int64_t n) {
         const bound::ExpectedElement& due = e.truth[role][static_cast<std::size_t>(n)];
         return due.value == 0 && due.bound == 0 && due.error == 0;
     },
     false},
};

/// How many elements are unwritten and of the kind; none where one is the one and not the other,
/// but for a kind of which not all are.
std::optional<std::int64_t> unwritten(const KindOfPlace& kind, const BackwardEvidence& e,
                                      Role role) {
    std::int64_t count = 0;
    const Tensor& seen = e.observed[role];
    const Precision format = law::gradient_format(e.asked.problem, role);
    for (std::int64_t n = 0; n < seen.size(); ++n) {
        const bool is = kind.is(e, role, n);
        const bool wrong = outside(seen.get(n), e.truth[role][static_cast<std::size_t>(n)], format);
        if ((is != wrong && (wrong || kind.all)) || (wrong && !std::isnan(seen.get(n))))
            return std::nullopt;
        count += wrong;
    }
    return count;
}

}  // namespace

std::vector<Explanation> unwritten_gradients(const std::vector<BackwardEvidence>& wrong,
                                             const std::vector<Role>& roles) {
    std::vector<Explanation> all;
    if (!std::ranges::all_of(wrong, &BackwardEvidence::unwritten)) return all;
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
        if (fits && found.of >= telling_elements_min) all.push_back(found);
    }
    return all;
}

namespace {

/// Gradients that are asked for in right calls and in no wrong one.
std::vector<Role> never_wanted(const AllBackwardEvidence& evidence) {
    const auto asks = [](Role role) {
        return [role](const BackwardEvidence& e) { return e.observed.has(role); };
    };
    std::vector<Role> roles;
    for (const Role role : gradient_roles)
        if (std::ranges::any_of(evidence.right, asks(role)) &&
            std::ranges::none_of(evidence.wrong, asks(role)))
            roles.push_back(role);
    return roles;
}

}  // namespace

std::optional<Explanation> nan_everywhere(const AllBackwardEvidence& evidence,
                                          const std::vector<Role>& roles) {
    Explanation d;
    d.id = "not_cleared";
    d.general = true;  // what memory that was says more
    for (const BackwardEvidence& e : evidence.wrong)
        for (const Role role : roles) {
            if (!e.observed.has(role)) continue;
            for (std::int64_t n = 0; n < e.observed[role].size(); ++n) {
                if (!std::isnan(e.observed[role].get(n))) return std::nullopt;
                d.of += std::isfinite(e.truth[role][static_cast<std::size_t>(n)].value);
            }
        }
    d.agree = d.of;
    // What memory held before the call is there by no chance.
    const bool unwritten = std::ranges::all_of(evidence.wrong, &BackwardEvidence::unwritten);
    if (d.of < (unwritten ? 1 : telling_elements_min)) return std::nullopt;
    d.says = "NaN in every element of " + text_of(roles) +
             (unwritten ? ", never written or added to memory that nobody cleared"
                        : ", as of sums added to memory that nobody cleared");
    if (const std::vector<Role> absent = never_wanted(evidence); !absent.empty())
        d.says +=
            ", where " + text_of(absent) + (absent.size() > 1 ? " are" : " is") + " not wanted";
    return d;
}

}  // namespace attest::diagnosis
