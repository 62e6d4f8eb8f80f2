#include "ci/commands.hpp"

int main(int argc, char** argv) {
    return attest::ci::run_command_line(argc, argv);
}
