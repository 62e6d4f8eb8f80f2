#pragma once
// Whether a failure was seen again, and what it takes: only what fails again in a process that has
// done nothing else is proven.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "properties/search/kernel.hpp"

namespace attest::search {

enum class Confirmation : std::uint8_t {
    none,      ///< not tried again: the run was cut before
    alone,     ///< the case fails by itself in a fresh process
    sequence,  ///< it depends on what ran before: it fails after certain cases, in a fresh process
    schedule,  ///< it depends on the thread schedule: by itself, but never on one processor
    alike,     ///< not tried again: it ended as a proven case of another law did
    elsewhere, ///< it answers otherwise at each call: not this case as it was found but another
               ///< one of the law failed by itself
    flaky       ///< neither by itself nor after what ran before
};
std::string_view name(Confirmation how) noexcept;

/// Whether it was seen in a fresh process. Nothing else fails a run.
constexpr bool is_proven(Confirmation how) noexcept {
    return how != Confirmation::none && how != Confirmation::flaky;
}

/// Of a case, each in a fresh process.
struct Replays {
    std::int64_t failed = 0, of = 0;
    bool operator==(const Replays&) const = default;
};

/// A case that has to be judged before another, in the same process.
struct EarlierCase {
    std::string law;
    Case tried;
    PlacementOrder placement = PlacementOrder::even;
    bool operator==(const EarlierCase&) const = default;
};

struct Confirmed {
    Confirmation how = Confirmation::none;
    Replays alone, one_processor;
    std::vector<EarlierCase> before;  ///< in order; of `sequence`
};

}  // namespace attest::search
