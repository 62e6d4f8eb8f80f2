#pragma once
// How a law is written: data and one function, declared once. Tests, `attest list`, the
// certificate, the report and the docs all come from this declaration.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "properties/law/planted_deviation.hpp"
#include "properties/law/trial.hpp"
#include "properties/law/verdict.hpp"
#include "reference/problem/feature.hpp"

namespace attest::law {

/// The space of cases a law is tried on. Pure data; properties/search draws from it.
struct CaseSpace {
    FeatureSet allow =
        FeatureSet::all();  ///< optional features that may be drawn (if the kernel declares them)
    FeatureSet require{};   ///< features every case has; a kernel without them: not applicable
    std::vector<FeatureSet> require_any{};  ///< at least one of these sets is wholly present
    std::vector<Precision> formats{};       ///< of q; empty: all of them
    std::vector<ValueKind> kinds{};         ///< empty: all of them
    /// How many times one run and its comparison a case costs: of the scores (batch * heads_q *
    /// len_q * len_kv) that a profile names, the law's cases have so many times fewer.
    std::int64_t cost = 1;
    /// What no profile goes beyond, 0: as far as it says; and why, in a few words.
    std::int64_t scores_max = 0, len_max = 0, dim_max = 0, batch_max = 0;
    std::string limited_because{};
    bool len_q_one = false;  ///< decode: one query
    bool square = false;     ///< len_q == len_kv
    /// Where causal is all that hides a key: more queries than keys, and so no cache.
    bool more_queries = false;
    /// The check looks at rows through Trial::compare alone, so that a profile of long contexts may
    /// go further for it than for others.
    bool any_length = false;
    /// Half of the later half of the cases are as large as if a case cost one run, so that queries
    /// and keys alike are cut into several tiles. What smaller ones show is found before.
    bool several_tiles = false;
    bool default_scale = false;  ///< never draw an explicit scale
    bool (*admits)(const Problem&) =
        nullptr;  ///< further precondition; what it refuses is counted as discarded
};

struct Needs {
    bool lse = false;  ///< the kernel must return a log-sum-exp
    bool backward = false;
    bool deterministic = false;  ///< the kernel claims it
    bool batch_invariant = false;
    bool concurrent = false;
    bool simulated = false;  ///< its threads run under a schedule that attest can choose
    bool structure = false;  ///< the kernel declares tile and rounding of the weights; with
                             ///< backward: the rounding of P and dS
    bool d_q = false, d_k = false, d_v = false;  ///< the kernel returns that gradient
};

/// What a violation says of the kernel by itself. Of the counterexamples of one defect a person
/// first reads that of the law that says most of its kind.
enum class Tells : std::uint8_t {
    nothing,
    truth,       ///< how far the answer is from the true one
    visibility,  ///< which key is seen and must not be, or must be and is not
    leak,        ///< that hidden numbers show
    memory,      ///< that an earlier call shows
    death        ///< that the kernel leaves its tensors
};
std::string_view name(Tells tells) noexcept;

/// What all cases of a law say together.
struct Pooled {
    Statistic statistic;
    std::optional<Violation> doubt{};
};

struct Property {
    std::string id;               ///< family.law, snake_case
    std::string statement;        ///< the law in one sentence
    std::string statement_short;  ///< at most 60 characters, for tables
    std::string why;              ///< the proof, in a few lines
    std::string source;
    Compares compares = Compares::bound;
    Tells tells = Tells::nothing;
    bool after_other_calls = false;  ///< compares a call with the same call after others
    Needs needs{};
    CaseSpace cases;
    /// Of a dear law, whose single case says as much as many of others: more are tried only where
    /// the command asks for a number. 0: as many as the profile says.
    std::int64_t cases_enough = 0;
    Plan (*check)(const Given&) = nullptr;  ///< whether it applies, and how it judges
    /// Of a statistic that is pooled over the cases, too: what their samples say as one.
    Pooled (*pool)(const Samples&) = nullptr;
    /// Each must turn the law red; at least one.
    std::vector<PlantedDeviation> turned_red_by{};
    /// Than that answers lie within their bounds: that weights are never negative, that zero times
    /// anything is zero, what is declared beside the bounds, how errors are spread within them. Any
    /// other law holds for every answer within the bounds, also where no two calls agree.
    bool knows_more = false;
    std::string file{};  ///< "properties/masking.cpp"; written by the build

    std::string family() const { return id.substr(0, id.find('.')); }
    std::string law() const { return id.substr(id.find('.') + 1); }
};

/// All laws in catalogue order (properties/CMakeLists.txt). Never empty.
std::span<const Property> catalogue();
const Property* find_property(std::string_view id);
std::string catalogue_digest();  ///< SHA-256 of all declarations

}  // namespace attest::law
