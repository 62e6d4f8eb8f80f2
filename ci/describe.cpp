// A kernel's manifest with its defaults, or what follows from it: the laws that the kernel can be
// asked.

#include <unistd.h>

#include "ci/commands.hpp"
#include "ci/exit_code.hpp"
#include "ci/number.hpp"
#include "ci/record_writer.hpp"
#include "ci/screen.hpp"
#include "ci/session_options.hpp"
#include "properties/search/capability.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {

namespace {

/// A line a law. By the manifest alone: what supports() refuses is found out by a run.
void list_laws_of(Screen& s, const kernel::Manifest& manifest) {
    const search::Capability declared = search::declared_capability(manifest);
    std::int64_t applies = 0;
    for (const law::Property& law : law::catalogue()) {
        const auto why_not = search::why_not_applicable(law, declared);
        applies += why_not ? 0 : 1;
        s.line(s.pad(law.id, 28) + "  " + (why_not ? s.dim(clean(*why_not)) : "can be asked"), 30);
    }
    s.line();
    s.line(count_text(applies) + " of " +
           counted(static_cast<std::int64_t>(law::catalogue().size()), "law") +
           " can be asked of what it declares; check finds out what it refuses");
}

}  // namespace

int describe_command(const CommandOptions& options) {
    if (options.arguments.empty())
        throw BadInput("describe: no kernel named", {"attest describe cpu_flash"});
    const worker::Session kernel(
        kernel::parse_kernel_spec(options.arguments.front(), options.python),
        session_options(options));
    if (!options.laws) {
        write_out(record_text(Record::parse(to_json(kernel.manifest())), 2) + "\n");
        return exit_holds;
    }
    Screen s(style_of(STDOUT_FILENO, options.colour, options.ascii));
    list_laws_of(s, kernel.manifest());
    write_out(s.text());
    return exit_holds;
}

}  // namespace attest::ci
