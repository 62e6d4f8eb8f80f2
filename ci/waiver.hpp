#pragma once
// Known failures that a team has accepted for a while: what, of which kernel, why, who says so, and
// until when. A waiver hides nothing: what it covers is shown as waived.

#include <string>
#include <string_view>
#include <vector>

namespace attest::ci {

struct Waiver {
    std::string subject;  ///< a glob on laws and other subjects; empty: any
    std::string cause;    ///< a glob on the title of a cause; empty: any
    std::string kernel;   ///< a glob on the kernel's name
    std::string reason, who;
    std::string expires;  ///< YYYY-MM-DD: the last day on which it counts
    std::string name() const { return subject.empty() ? "cause \"" + cause + "\"" : subject; }
};

/// {"waivers": [{"law": "masking.*", "kernel": "mine", "reason": "...", "who": "...", "expires":
/// "2026-12-31"}]}. Strict: an unknown, missing or empty key, or a day that is none, is BadInput at
/// its place. `law` or `cause` is required, or both.
std::vector<Waiver> parse_waivers(std::string_view json, const std::string& source_name);
std::vector<Waiver> load_waivers(const std::string& path);

}  // namespace attest::ci
