#include "ci/commands.hpp"
#include "ci/record.hpp"
#include "ci/run_verdict.hpp"
#include "kernels/worker/session.hpp"
#include "reference/problem/errors.hpp"

namespace attest {

int describe_command(const Options& options) {
    if (options.arguments.empty())
        throw BadInput("describe: no kernel named", {"attest describe cpu_flash"});
    SessionOptions session;
    session.timeout = options.timeout;
    const Session kernel(parse_kernel_spec(options.arguments.front(), options.python), session);
    const Record manifest = Record::parse(to_json(kernel.manifest()));
    write_out(manifest.dump(2, ' ', false, Record::error_handler_t::replace) + "\n");
    return exit_holds;
}

}  // namespace attest
