#include "properties/search/session_kernel.hpp"

#include "reference/problem/errors.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::search {

SessionKernel::SessionKernel(const kernel::KernelSpec& spec, const worker::SessionOptions& options)
    : before_end_(options.before_end), session_(spec, options) {
    const bool library = spec.interface == kernel::KernelInterface::builtin ||
                         spec.interface == kernel::KernelInterface::c_abi;
    if (!library && manifest().memory == kernel::Memory::cuda)
        throw BadInput(spec.text + ": memory cuda: only a library is handed device memory",
                       {"without `memory` it is given host arrays, and copies them itself"});
}

void SessionKernel::look_back() {
    if (before_end_ && process_id() != 0) before_end_(session_);
}

bool SessionKernel::supports(const Problem& problem, std::string* reason) {
    if (!session_.supports(problem, reason)) return false;
    const std::array extents = {problem.batch, problem.len_q, problem.len_kv};
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
        if (extents[axis] > 0) continue;
        std::optional<std::string>& error = error_when_empty_[axis];
        if (!error) {
            const auto answer = session_.forward(problem, make_inputs({problem, {}}));
            const bool refuses = answer.outcome == worker::Outcome::error;
            error = refuses ? "it returns an error: " + answer.reason : "";
            session_.begin_case(first_call_);  // as if it had not been asked
        }
        if (error->empty()) continue;
        if (reason != nullptr) *reason = *error;
        return false;
    }
    return true;
}

}  // namespace attest::search
