// `attest key new`: a pair of keys that signs certificates, and tells who did.

#include <unistd.h>

#include "ci/commands.hpp"
#include "ci/exit_code.hpp"
#include "ci/screen.hpp"
#include "ci/signature.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {

int key_command(const CommandOptions& options) {
    if (options.arguments.size() != 2 || options.arguments.front() != "new")
        throw BadInput("key: what is to be done", {"attest key new FILE"});
    const std::string& path = options.arguments.back();
    const PublicKey key = make_key(path);
    Screen screen(style_of(STDOUT_FILENO, "auto", false));
    screen.line("key: " + clean(path) +
                ", which nobody else may read; its public half: " + clean(path) + ".pub");
    screen.line("id: " + key.id());
    write_out(screen.text());
    return exit_holds;
}

}  // namespace attest::ci
