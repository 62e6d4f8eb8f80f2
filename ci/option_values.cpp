// The values of options that have a syntax, or words, of their own.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <thread>
#include <vector>

#include "ci/typed_options.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/text.hpp"

namespace attest::ci {

double parse_duration(const std::string& option, const std::string& text) {
    const std::size_t unit = text.find_first_not_of("0123456789.");
    const std::string word = unit == std::string::npos ? "" : text.substr(unit);
    const double factor = word == "ms"  ? 1e-3
                          : word == "s" ? 1
                          : word == "m" ? 60
                          : word == "h" ? 3600
                                        : 0;
    const auto number = parse_decimal(std::string_view(text).substr(0, unit));
    constexpr double seconds_max = 1e9;  // thirty years, which every clock can count
    if (factor == 0 || !number)
        throw BadInput(option + " " + text + ": a number and a unit, such as 60s or 5m");
    if (!(*number > 0) || !(*number * factor <= seconds_max))
        throw BadInput(option + " " + text + ": more than 0s, and at most 277777h");
    return *number * factor;
}

namespace {

// Which part this is, by the variables of whoever runs us: index, its least value, count.
struct ShardVariables {
    const char *index, *first, *count;
    std::int64_t least;
};
constexpr ShardVariables shard_variables[] = {
    {"ATTEST_SHARD_INDEX", nullptr, "ATTEST_SHARD_COUNT", 0},
    {"TEST_SHARD_INDEX", nullptr, "TEST_TOTAL_SHARDS", 0},    // Bazel
    {"GTEST_SHARD_INDEX", nullptr, "GTEST_TOTAL_SHARDS", 0},  // GoogleTest
    {"CI_NODE_INDEX", nullptr, "CI_NODE_TOTAL", 1},           // GitLab, from 1
    {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT", 0},
};

std::int64_t number_in(const char* variable) {
    const char* text = std::getenv(variable);
    const auto value = parse_integer<std::int64_t>(text == nullptr ? "" : text);
    if (!value)
        throw BadInput(std::string("--shard auto: ") + variable + " is " +
                           (text == nullptr ? "not set" : "no whole number: " + printable(text)),
                       {"--shard i/n says it without variables"});
    return *value;
}

void shard_of_environment(std::int64_t& index, std::int64_t& count) {
    for (const ShardVariables& v : shard_variables) {
        if (std::getenv(v.index) == nullptr) continue;
        count = number_in(v.count);
        index = number_in(v.index) - (v.first == nullptr ? v.least : number_in(v.first));
        if (count < 1 || index < 0 || index >= count)
            throw BadInput(std::string("--shard auto: ") + v.index + " and " + v.count +
                               " say part " + std::to_string(index) + ", from 0, of " +
                               std::to_string(count),
                           {"--shard i/n says it without variables"});
        return;
    }
    throw BadInput("--shard auto: none of the variables is set that say which part this is",
                   {"they are those of GitLab, Bazel, GoogleTest and Slurm, or",
                    "ATTEST_SHARD_INDEX, from 0, and ATTEST_SHARD_COUNT"});
}

}  // namespace

void parse_shard(const std::string& text, std::int64_t& index, std::int64_t& count) {
    if (text == "auto") return shard_of_environment(index, count);
    const std::size_t slash = text.find('/');
    const auto i = parse_integer<std::int64_t>(std::string_view(text).substr(0, slash));
    const auto n = slash == std::string::npos
                       ? std::nullopt
                       : parse_integer<std::int64_t>(std::string_view(text).substr(slash + 1));
    if (!i || !n || *n < 1 || *i < 0 || *i >= *n)
        throw BadInput("--shard " + text + ": i/n with 0 <= i < n, such as 0/4, or auto");
    index = *i;
    count = *n;
}

void check_words(const CommandOptions& o) {
    const auto one_of = [](const std::string& option, const std::string& value,
                           const std::vector<std::string>& words) {
        if (std::find(words.begin(), words.end(), value) != words.end()) return;
        std::string all;
        for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
        throw BadInput(option + " " + value + ": one of " + all);
    };
    one_of("--color", o.colour, {"auto", "always", "never"});
    const std::size_t colon = o.source.rfind(':');
    if (!o.source.empty() &&
        (colon == std::string::npos || colon == 0 ||
         parse_integer<std::int64_t>(std::string_view(o.source).substr(colon + 1)).value_or(0) < 1))
        throw BadInput("--source " + o.source + ": FILE:LINE, such as kernels/mine.cu:120");
    for (const std::string& name : o.variables)
        if (name.find('=') != std::string::npos)
            throw BadInput("--env " + name + ": the name of a variable, without a value",
                           {"it is given as it is set here"});
}

namespace {

std::int64_t parse_count(const std::string& option, const std::string& text) {
    const auto value = parse_integer<std::int64_t>(text);
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
    if (!value && digits)
        throw BadInput(option + " " + text + ": a whole number from 1 to " +
                       std::to_string(std::numeric_limits<std::int64_t>::max()));
    if (!value || *value < 1) throw BadInput(option + " " + text + ": a whole number, at least 1");
    return *value;
}

}  // namespace

std::string default_profile(const std::string& command) {
    return command == "certify" ? "serving" : "quick";
}

void convert(CommandOptions& o, const TypedOptions& t) {
    o.profile = !t.profile.empty() ? t.profile : default_profile(o.command);
    if (t.seed == "random") {
        o.seed_random = true;
    } else if (!t.seed.empty()) {
        o.seed = parse_integer<std::uint64_t>(t.seed);
        if (!o.seed)
            throw BadInput("--seed " + t.seed +
                           ": a whole number from 0 to 18446744073709551615, or random");
    }
    if (!t.time.empty()) o.seconds = parse_duration("--time", t.time);
    if (!t.rerun.empty()) o.rerun = parse_count("--rerun", t.rerun);
    if (!t.cases.empty()) o.cases = parse_count("--cases", t.cases);
    if (!t.shapes.empty()) o.shapes = parse_count("--shapes", t.shapes);
    if (!t.seeds.empty()) o.seeds = parse_count("--seeds", t.seeds);
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    o.jobs = t.jobs.empty()
                 ? static_cast<int>(cores)
                 : static_cast<int>(std::min<std::int64_t>(1024, parse_count("--jobs", t.jobs)));
    if (!t.shard.empty()) parse_shard(t.shard, o.shard_index, o.shard_count);
    if (!t.timeout.empty())
        o.timeout = std::chrono::milliseconds(
            static_cast<std::int64_t>(std::ceil(1000 * parse_duration("--timeout", t.timeout))));
    if (!t.colour.empty()) o.colour = t.colour;
    if (o.command == "report" || o.command == "bench") o.out = t.out;
    o.profile_given = !t.profile.empty();
    if (!t.accuracy.empty()) {
        const auto factor = parse_decimal(t.accuracy);
        if (!factor || !(*factor >= 1 && *factor <= 1e6))
            throw BadInput("--accuracy " + t.accuracy + ": a factor, at least 1, such as 1.5");
        o.accuracy = *factor;
    }
    if (o.command == "gate" && (!t.time.empty() || !t.shard.empty()))
        throw BadInput("gate: --time and --shard leave no cases that can be repeated",
                       {"--cases N bounds both runs"});
    if (!t.record.empty() && t.record != "cases")
        throw BadInput("--record " + t.record + ": cases is all that can be recorded");
    o.record_cases = !t.record.empty();
    check_words(o);
}

}  // namespace attest::ci
