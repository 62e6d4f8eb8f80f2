#include "ci/commands.hpp"
#include "ci/exit_code.hpp"
#include "ci/record_writer.hpp"
#include "ci/session_options.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {

int describe_command(const CommandOptions& options) {
    if (options.arguments.empty())
        throw BadInput("describe: no kernel named", {"attest describe cpu_flash"});
    const worker::Session kernel(
        kernel::parse_kernel_spec(options.arguments.front(), options.python),
        session_options(options));
    write_out(record_text(Record::parse(to_json(kernel.manifest())), 2) + "\n");
    return exit_holds;
}

}  // namespace attest::ci
