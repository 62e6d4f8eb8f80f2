#include "ci/golden.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace attest::ci {

std::string read_golden(const std::string& name) {
    std::ifstream file(golden_directory() + "/" + name, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::string golden_difference(const std::string& name, const std::string& text) {
    if (std::getenv("ATTEST_UPDATE_GOLDEN") != nullptr) {
        std::ofstream(golden_directory() + "/" + name, std::ios::binary) << text;
        return "";
    }
    std::istringstream expected(read_golden(name)), observed(text);
    std::string e, o;
    for (int line = 1;; ++line) {
        const bool more_e = static_cast<bool>(std::getline(expected, e));
        const bool more_o = static_cast<bool>(std::getline(observed, o));
        if (!more_e && !more_o) return "";
        if (more_e != more_o || e != o)
            return name + ":" + std::to_string(line) + ": expected \"" + (more_e ? e : "(end)") +
                   "\", observed \"" + (more_o ? o : "(end)") + "\"";
    }
}

}  // namespace attest::ci
