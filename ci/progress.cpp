#include "ci/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "ci/number.hpp"

namespace attest::ci {

namespace {

constexpr double terminal_every = 0.1, log_every = 30;  // seconds

std::string clock_now() {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    return fmt::format("{:02}:{:02}:{:02}", local.tm_hour, local.tm_min, local.tm_sec);
}

}  // namespace

Progress::Progress(std::FILE* stream, bool terminal, ScreenStyle style)
    : stream_(stream), terminal_(terminal), style_(style) {}

bool Progress::due(double every) {
    const auto now = Clock::now();
    if (std::chrono::duration<double>(now - last_).count() < every) return false;
    last_ = now;
    return true;
}

std::string Progress::line(const ScreenStyle& style, double progress, const std::string& family,
                           std::int64_t cases, double seconds, std::int64_t violated) {
    const Screen screen(style);
    std::string text = screen.bar(progress, style.wide() ? 34 : 20) +
                       fmt::format(" {:3.0f} %  {:<12} {:>7} cases  {}", progress * 100, family,
                                   count_text(cases), time_text(seconds));
    if (style.wide() && seconds > 0 && progress > 0)
        text +=
            fmt::format("  {} a second  about {} left",
                        count_text(static_cast<std::int64_t>(static_cast<double>(cases) / seconds)),
                        time_text(seconds / progress - seconds));
    if (violated > 0) text += "  " + screen.bad(count_text(violated) + " violated");
    return text;
}

void Progress::show(const std::string& text) {
    if (terminal_) {
        const Screen screen(style_);
        const bool fits = columns_of(text) < style_.width;
        std::fprintf(stream_, "\r\x1b[2K%s",
                     (fits ? text : screen.cut(text, style_.width - 1)).c_str());
        shown_ = true;
    } else {
        std::fprintf(stream_, "%s %s\n", clock_now().c_str(), text.c_str());
    }
    std::fflush(stream_);
}

void Progress::say(const std::string& text) {
    clear();
    const std::string time = terminal_ ? "" : clock_now() + " ";
    std::fprintf(stream_, "%s%s\n", time.c_str(), clean(text).c_str());
    std::fflush(stream_);
}

void Progress::clear() {
    if (!shown_) return;
    std::fputs("\r\x1b[2K", stream_);
    std::fflush(stream_);
    shown_ = false;
}

void Progress::on_case(const law::Property& law, double progress) {
    ++cases_;
    progress_ = std::max(progress_, std::clamp(progress, 0.0, 1.0));
    family_ = law.family();
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    const std::int64_t violated = static_cast<std::int64_t>(violated_.size());
    if (terminal_ && due(terminal_every))
        show(line(style_, progress_, family_, cases_, seconds, violated));
    else if (!terminal_ && due(log_every))
        show(fmt::format("{:.0f} %  {}  {} cases{}", progress_ * 100, family_, count_text(cases_),
                         violated > 0 ? "  " + count_text(violated) + " violated" : ""));
}

void Progress::on_violation(const law::Property& law) {
    if (std::find(violated_.begin(), violated_.end(), law.id) != violated_.end()) return;
    violated_.push_back(law.id);
    // A log tells of the first one only: the rest comes with the result.
    if (!terminal_ && violated_.size() == 1)
        show(fmt::format("{} violated after {}, shrinking", law.id, counted(cases_, "case")));
}

void Progress::on_shrink(const law::Property& law, std::int64_t evaluation, const Case& tried) {
    if (!terminal_ || !due(terminal_every)) return;
    const Screen screen(style_);
    show(screen.bad(screen.symbol("✕", "X")) + fmt::format(" {}  shrinking  evaluation {}  {}",
                                                           law.id, evaluation,
                                                           print(tried.problem)));
}

void Progress::on_waiting(double seconds, double limit) {
    if (!terminal_ || !due(terminal_every)) return;
    const Screen screen(style_);
    show(screen.bar(progress_, style_.wide() ? 34 : 20) +
         fmt::format(" {:3.0f} %  {:<12} {:>7} cases  ", progress_ * 100, family_,
                     count_text(cases_)) +
         screen.warn(fmt::format("1 case hangs, {:.0f} s of {:.0f}", seconds, limit)));
}

}  // namespace attest::ci
