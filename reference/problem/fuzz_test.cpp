// Texts from outside, mutated: a parser returns or throws BadInput, and nothing else happens. The
// mutations start from valid texts, so that most of them fail deep inside. What is accepted reads
// back. Meant to run under the address sanitizer as well.

#include <gtest/gtest.h>

#include <vector>

#include "reference/problem/counter.hpp"
#include "reference/problem/generators_test.hpp"
#include "reference/problem/refusal_test.hpp"

namespace attest {
namespace {

constexpr int mutations_a_text = 300;

/// Pieces that mean something to one of the grammars, or to number readers.
constexpr std::string_view pieces[] = {" ",
                                       ",",
                                       "[",
                                       "]",
                                       "{",
                                       "}",
                                       ":",
                                       "\"",
                                       "\\",
                                       "\\u",
                                       "\\ud800",
                                       "-",
                                       "-1",
                                       "0",
                                       "1e999",
                                       "1e-999",
                                       "nan",
                                       "-inf",
                                       "0x",
                                       "0x1p+0",
                                       "p",
                                       "9223372036854775807",
                                       "18446744073709551616",
                                       "causal ",
                                       "window ",
                                       "lens_q ",
                                       "cache ",
                                       "page ",
                                       "rope half ",
                                       "docs_q ",
                                       "seed ",
                                       "q [",
                                       "values ",
                                       "b0 ",
                                       "tq0 ",
                                       "null",
                                       "true",
                                       "[[[[[[[[",
                                       "\"q\":",
                                       "\"problem\":{",
                                       "\"values\":{",
                                       "\"shape\":[",
                                       "\"data_offsets\":[0,0]",
                                       "\"__metadata__\":{",
                                       "\t",
                                       "\n",
                                       "\x80\xff"};

/// A stream of choices made from one seed.
class Choices {
public:
    explicit Choices(std::uint64_t seed) : seed_(seed) {}
    std::size_t below(std::size_t limit) {
        return limit == 0 ? 0 : counter_bits(seed_, 0, next_++) % limit;
    }

private:
    std::uint64_t seed_, next_ = 0;
};

std::string mutated(std::string text, Choices& choose) {
    for (std::size_t n = 1 + choose.below(4); n > 0; --n) {
        const std::size_t at = choose.below(text.size() + 1);
        const std::size_t length = choose.below(std::min<std::size_t>(text.size() - at, 12) + 1);
        switch (choose.below(6)) {
            case 0:
                if (at < text.size()) text[at] = static_cast<char>(choose.below(256));
                break;
            case 1:
                if (at < text.size()) text[at] ^= static_cast<char>(1 << choose.below(8));
                break;
            case 2:
                text.erase(at, length);
                break;
            case 3:
                text.insert(at, text.substr(choose.below(text.size() + 1), length));
                break;
            case 4:
                text.insert(at, pieces[choose.below(std::size(pieces))]);
                break;
            default:
                text.resize(at);
                break;
        }
    }
    return text;
}

template <typename Parse>
void mutate(const std::string& text, std::uint64_t seed, Parse parse) {
    Choices choose(seed);
    for (int n = 0; n < mutations_a_text; ++n) {
        // Without spare capacity or a terminator, so that a sanitizer sees one byte too many.
        const std::string bad = mutated(text, choose);
        const std::vector<char> exact(bad.begin(), bad.end());
        try {
            parse(std::string_view(exact.data(), exact.size()));
        } catch (const BadInput& error) {
            RC_ASSERT(std::string_view(error.what()) != "");
            RC_ASSERT(error.details().size() <= 4u);
        }
    }
}

/// A fuzzer that only ever makes rubbish, or never does, would test nothing.
TEST(Fuzz, reaches_both_ends) {
    Choices choose(1);
    const std::string line = "b2 hq4 hkv2 tq4 tk9 d8 causal lens_kv 7,9 cache 5 page 2 f16 seed 7";
    int accepted = 0;
    for (int n = 0; n < 1000; ++n) {
        const std::string text = mutated(line, choose);
        accepted += refusal([&] { parse_case(text); }).empty();
    }
    EXPECT_GT(accepted, 50);
    EXPECT_LT(accepted, 950);
}

RC_GTEST_PROP(FuzzLaw, lines, (std::uint64_t seed)) {
    mutate(print(*any_case()), seed, [](std::string_view text) {
        const Case c = parse_case(text);
        RC_ASSERT(parse_case(print(c)) == c);
    });
    mutate(print(*any_problem()), seed, [](std::string_view text) {
        const Problem p = parse_problem(text);
        RC_ASSERT(parse_problem(print(p)) == p);
    });
}

RC_GTEST_PROP(FuzzLaw, json, (std::uint64_t seed)) {
    mutate(to_json(*any_case()), seed, [](std::string_view text) {
        const Case c = case_from_json(text, "fuzz.json");
        RC_ASSERT(case_from_json(to_json(c), "again") == c);
    });
}

}  // namespace
}  // namespace attest
