#include "kernels/worker/serve.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "kernels/worker/beside.hpp"
#include "kernels/worker/crash.hpp"
#include "kernels/worker/device_memory.hpp"
#include "kernels/worker/frames.hpp"
#include "kernels/worker/guarded_text.hpp"
#include "kernels/worker/kept_registers.hpp"
#include "kernels/worker/shared_memory.hpp"
#include "kernels/worker/watched_signals.hpp"

namespace attest::worker {
namespace {

using protocol::Phase;
using protocol::Status;

/// True where the processor's string instructions ran backwards: the next copy would write before
/// its target.
bool take_direction_back() {
#if defined(__x86_64__)
    constexpr unsigned long long direction = 1 << 10;
    const unsigned long long flags = __builtin_ia32_readeflags_u64();
    __asm__ volatile("cld" : : : "cc");
    return (flags & direction) != 0;
#else
    return false;
#endif
}

std::string returned_text(int code, const char* text) {
    return text[0] != 0 ? std::string(text) : fmt::format("{}, without a text", code);
}

class Server {
public:
    explicit Server(const LoadedKernel& kernel) : kernel_(kernel) {
        if (kernel.on_device) device_.emplace(kernel.library);
    }

    /// False where the frame is none of ours.
    bool handle(std::span<const std::byte> frame) {
        protocol::FrameHeader header;
        if (frame.size() < sizeof header) return false;
        std::memcpy(&header, frame.data(), sizeof header);
        if (header.magic != protocol::magic || header.version != protocol::version) return false;
        sequence_ = header.sequence;
        circumstances.allocation_failed = false;
        switch (header.kind) {
            case protocol::FrameKind::hello:
                hello();
                return true;
            case protocol::FrameKind::supports:
                supports(frame);
                return true;
            case protocol::FrameKind::call:
                call(frame);
                return true;
            default:
                return false;
        }
    }

private:
    void hello() {
        circumstances.phase = Phase::idle;
        send_text(protocol::FrameKind::manifest, sequence_, kernel_.api.manifest);
    }

    void supports(std::span<const std::byte> frame) {
        protocol::SupportsFrame question;
        std::memcpy(&question, frame.data(), std::min(frame.size(), sizeof question));
        const attest_problem& problem = question.problem;
        text_.clear();
        bool yes = false;
        circumstances.phase = Phase::supports;
        std::string thrown = caught([&] {
            // Without the function the manifest alone speaks, which the host asks first.
            const auto supports = kernel_.api.supports;
            yes = supports == nullptr ||
                  supports(kernel_.state, &problem, text_.data(), text_.size() - 1) != 0;
        });
        protocol::AnswerFrame answer;
        answer.header.kind = protocol::FrameKind::answer;
        answer.header.sequence = sequence_;
        if (yes && thrown.empty()) {
            answer.yes = 1;
            thrown = caught([&] { answer.workspace_bytes = workspace(problem); });
        }
        std::string text = text_.data();
        if (!thrown.empty()) {
            answer.yes = 0;
            text = "supports() or workspace() let an exception out: " + thrown;
        }
        const std::string_view reason = answer.yes != 0 ? std::string_view() : cut_text(text);
        circumstances.phase = Phase::idle;
        answer.text_bytes = static_cast<std::uint32_t>(reason.size());
        require_ends();
        send(answer, reason);
    }

    void call(std::span<const std::byte> frame) {
        protocol::CallFrame& c = call_;
        std::memcpy(&c, frame.data(), std::min(frame.size(), sizeof c));
        protocol::ReplyFrame reply;
        reply.header.kind = protocol::FrameKind::reply;
        reply.header.sequence = sequence_;
        std::string text;
        if (c.tensor_count > protocol::tensors_max) {
            reply.status = Status::error;
            text = "the host sent more tensors than there are roles";
        } else {
            const std::string thrown = caught([&] {
                try {
                    text = run(c, reply);
                } catch (const DeviceLost& lost) {
                    reply.status = Status::lost;
                    text = lost.what();
                } catch (const MemoryGone& gone) {
                    reply.status = Status::error;
                    text = gone.what();
                } catch (const DeviceFull& full) {
                    reply.status = Status::absent;
                    text = full.what();
                }
            });
            if (!thrown.empty()) {
                reply.status = circumstances.allocation_failed ? Status::memory : Status::exception;
                text = thrown;
            }
        }
        circumstances.phase = Phase::idle;
        const std::string_view shown = cut_text(text);
        reply.text_bytes = static_cast<std::uint32_t>(shown.size());
        require_ends();
        send(reply, shown);
        if (reply.status == Status::lost) ::_exit(0);
    }

    std::string run(const protocol::CallFrame& c, protocol::ReplyFrame& reply) {
        const attest_problem& problem = c.problem;
        reply.workspace_bytes = workspace(problem);
        if (reply.workspace_bytes != c.workspace_bytes) {
            reply.status = Status::workspace;
            return {};
        }
        const bool beside = c.operation == protocol::Operation::forward_beside;
        const auto operation = beside || c.operation == protocol::Operation::forward
                                   ? kernel_.api.forward
                               : c.operation == protocol::Operation::backward ? kernel_.api.backward
                                                                              : kernel_.api.append;
        if (operation == nullptr || (beside && device_)) {
            reply.status = Status::absent;
            return {};
        }
        memory_.resize(c.memory_bytes);
        const auto tensors = std::span(c.tensors).first(c.tensor_count);
        memory_.open(tensors);
        attest_call call = lay_out(tensors, reply.outputs);
        call.problem = &problem;
        call.workspace_bytes = c.workspace_bytes;
        // The text buffer is cleared for its first byte only: a kernel writes a terminated text.
        text_.data()[0] = 0;
        text_.data()[text_.size() - 1] = 0;
        // What a library took when it was loaded is taken back.
        if (!crash_reports_stand()) install_crash_reports();
        watched_signals_were_taken();
        circumstances.phase = Phase::operation;
        std::optional<Beside> other;
        if (beside) other.emplace(call, [this](const attest_call& its) { return forward(its); });
        reply.code = call_and_keep(operation, kernel_.state, &call, text_.data(), text_.size() - 1);
        const bool lost = registers_were_lost();
        const bool backwards = take_direction_back();
        const std::string besides = other ? other->end() : std::string();
        circumstances.phase = Phase::idle;
        const std::string misdeed = device_ ? device_->finish() : std::string();
        if (reply.code == 0 && misdeed.empty() && !backwards && !lost && besides.empty()) {
            // A device's memory is not guarded by signals.
            if ((watched_signals_were_taken() && !device_) || !crash_reports_stand())
                reply.status = Status::unwatched;
            return {};
        }
        reply.status = Status::error;
        if (lost)
            return "came back without the registers that a function keeps for its caller: it wrote "
                   "past something on its stack, or its assembly does not restore them";
        if (backwards)
            return "returned with the direction flag set, which every caller needs clear";
        if (!misdeed.empty()) return misdeed;
        if (reply.code == 0) return "of two calls at once one " + besides;
        return returned_text(reply.code, text_.data());
    }

    /// A call of another thread, with a text of its own.
    std::string forward(const attest_call& call) const {
        std::array<char, protocol::text_bytes_max> text{};
        int code = 0;
        const std::string thrown = caught([&] {
            code = kernel_.api.forward(kernel_.state, &call, text.data(), text.size() - 1);
        });
        if (!thrown.empty()) return "let an exception out: " + thrown;
        return code == 0 ? std::string() : "failed: " + returned_text(code, text.data());
    }

    attest_call lay_out(std::span<const protocol::WireTensor> tensors, std::uint64_t& outputs) {
        attest_call call{};
        call.struct_size = sizeof call;
        if (device_) {
            device_->begin(tensors, call_.problem.call_number);
            call.stream = device_->stream();
        }
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            const protocol::WireTensor& t = tensors[i];
            void* const data = device_ ? device_->lay(t, memory_.at(t.pages)) : memory_.at(t.data);
            if (t.role == protocol::workspace_role) {
                call.workspace = data;
                continue;
            }
            if (t.role >= ATTEST_ROLE_COUNT) continue;
            shapes_[i] = t.shape;
            strides_[i] = t.stride;
            DLTensor& d = tensors_[i];
            d = DLTensor{data,
                         {device_ ? ATTEST_DL_CUDA : ATTEST_DL_CPU, 0},
                         t.ndim,
                         {t.code, t.bits, 1},
                         shapes_[i].data(),
                         strides_[i].data(),
                         0};
            call.tensor[t.role] = &d;
            if (t.access == protocol::Access::write) outputs |= std::uint64_t{1} << t.role;
        }
        return call;
    }

    std::uint64_t workspace(const attest_problem& problem) {
        if (kernel_.api.workspace == nullptr) return 0;
        circumstances.phase = Phase::workspace;
        const std::uint64_t wanted = kernel_.api.workspace(kernel_.state, &problem);
        circumstances.phase = Phase::idle;
        return wanted;
    }

    const LoadedKernel& kernel_;
    SharedMemory memory_;
    std::optional<DeviceMemory> device_;
    std::uint32_t sequence_ = 0;
    protocol::CallFrame call_;
    GuardedText text_;
    std::array<DLTensor, protocol::tensors_max> tensors_{};
    std::array<std::array<std::int64_t, 4>, protocol::tensors_max> shapes_{}, strides_{};
};

}  // namespace

void serve(const LoadedKernel& kernel) {
    Server server(kernel);
    for (;;) {
        const std::span<const std::byte> frame = receive_frame();
        if (frame.empty() || !server.handle(frame)) return;
    }
}

}  // namespace attest::worker
