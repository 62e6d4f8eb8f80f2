#include "kernels/simt/symbol.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>

namespace simt {

const std::string& line_of(const void* pc) {
    static std::map<const void*, std::string> known;
    std::string& line = known[pc];
    if (!line.empty()) return line;
    Dl_info info{};
    if (dladdr(pc, &info) != 0 && info.dli_fname != nullptr) {
        // A return address belongs to the next line as often as not, so look one byte before it.
        const auto offset = reinterpret_cast<std::uintptr_t>(pc) - 1 -
                            reinterpret_cast<std::uintptr_t>(info.dli_fbase);
        char command[1024];
        std::snprintf(command, sizeof command, "addr2line -e '%s' 0x%zx 2>/dev/null",
                      info.dli_fname, offset);
        if (FILE* pipe = popen(command, "r")) {
            char text[512];
            if (std::fgets(text, sizeof text, pipe) != nullptr) {
                const char* slash = std::strrchr(text, '/');
                line = slash != nullptr ? slash + 1 : text;
                line.resize(std::min({line.find('\n'), line.find(" ("), line.size()}));
            }
            pclose(pipe);
        }
    }
    if (line.empty() || line.front() == '?') line = "an unknown line (build with -g)";
    return line;
}

}  // namespace simt
