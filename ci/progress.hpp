#pragma once
// What a person sees while a campaign runs: on a terminal one line, rewritten ten times a second;
// in a log a line at the first failure and then one every 30 s.

#include <chrono>
#include <cstdio>
#include <string>

#include "ci/screen.hpp"
#include "properties/search/campaign.hpp"

namespace attest::ci {

class Progress {
public:
    /// Writes to `stream`, as a terminal or as a log.
    Progress(std::FILE* stream, bool terminal, ScreenStyle style);
    ~Progress() { clear(); }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void on_case(const law::Property& law, double progress);
    void on_violation(const law::Property& law);
    void on_shrink(const law::Property& law, std::int64_t evaluation, const Case& tried);
    void on_waiting(double seconds, double limit);
    void say(const std::string& text);  ///< a line that stays
    void clear();                       ///< the line is gone

    /// The line itself, for tests.
    static std::string line(const ScreenStyle& style, double progress, const std::string& family,
                            std::int64_t cases, double seconds, std::int64_t violated);

private:
    using Clock = std::chrono::steady_clock;
    bool due(double every);
    void show(const std::string& text);

    std::FILE* stream_;
    bool terminal_;
    ScreenStyle style_;
    Clock::time_point start_ = Clock::now(), last_ = start_;
    double progress_ = 0;
    std::int64_t cases_ = 0;
    std::string family_;
    std::vector<std::string> violated_;
    bool shown_ = false;
};

}  // namespace attest::ci
