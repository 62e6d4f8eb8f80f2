#include "properties/law/trial.hpp"

#include "reference/problem/counter.hpp"
#include "reference/problem/errors.hpp"

namespace attest::law {

namespace {

// The values of a case come from counter_bits(seed, tensor, index). A law's own randomness must
// differ from them and yet depend on the seed alone: then shrinking a length leaves it as it was.
constexpr std::uint64_t law_stream = 0x6c61770000000000ull;  // "law"

std::uint64_t law_key(const Case& c) noexcept {
    return counter_bits(c.values.seed, law_stream, 0);
}

}  // namespace

std::uint64_t Given::random_bits(std::uint64_t stream, std::uint64_t index) const {
    return counter_bits(law_key(tried()), stream, index);
}

/// bits mod limit. Its bias is below limit / 2^64, which no campaign is long enough to see.
std::int64_t Given::random_below(std::uint64_t stream, std::uint64_t index,
                                 std::int64_t limit) const {
    require(limit > 0, "random_below needs a positive limit");
    return static_cast<std::int64_t>(random_bits(stream, index) %
                                     static_cast<std::uint64_t>(limit));
}

double Given::random_normal(std::uint64_t stream, std::uint64_t index) const {
    return counter_normal(law_key(tried()), stream, index);
}

NotApplicable not_taken(const Problem& problem) {
    return not_applicable("the kernel does not take " + print(problem) +
                          ", which the law makes of a case");
}

}  // namespace attest::law
