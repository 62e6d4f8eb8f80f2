#pragma once
// The frames between host and worker, as they lie in memory: little-endian, every offset fixed.
// PROTOCOL.md says the same for other languages; the assertions below hold the two together.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/interface/attest_kernel.h"
#include "kernels/worker/protocol_data.hpp"

namespace attest::worker::protocol {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

inline constexpr std::uint32_t magic = 0x54544157;  // the bytes "WATT"
inline constexpr std::uint16_t version = 2;
inline constexpr int socket_fd = 3, memory_fd = 4;
/// A frame is one message of the socket. Texts that would not fit are cut.
inline constexpr std::size_t frame_bytes_max = 128 * 1024;
inline constexpr std::size_t text_bytes_max = 4096;  // of a reason or an error
inline constexpr std::size_t stack_bytes_max = 64 << 20;  // of a worker
/// The exit code of a worker whose kernel closed the socket.
inline constexpr int closed_exit = 97;
inline constexpr std::size_t tensors_max = ATTEST_ROLE_COUNT + 1;
inline constexpr std::uint16_t workspace_role = 0xFFFF;

enum class FrameKind : std::uint16_t {
    hello = 1,       // host: the first frame
    manifest = 2,    // worker: hello's answer, JSON text
    load_error = 3,  // worker: hello's answer where the kernel cannot be loaded: lines of text
    supports = 4,    // host
    answer = 5,      // worker
    call = 6,        // host
    reply = 7,       // worker
    fault = 8,       // worker: it is about to die of a signal
    location = 9,    // worker: after fault, where in the code: text
    confined = 10,   // attest_worker, before the kernel is loaded: what holds it in
    again = 11       // host, of the Python worker: what is the manifest now?
};

struct FrameHeader {
    std::uint32_t magic = protocol::magic;
    std::uint16_t version = protocol::version;
    FrameKind kind = FrameKind::hello;
    std::uint32_t size = 0;      // of the whole frame
    std::uint32_t sequence = 0;  // an answer repeats its question's
};

struct HelloFrame {
    FrameHeader header;
    std::uint64_t memory_bytes = 0;  // resident, at which the host ends the process; 0: no limit
    std::uint32_t abi_version = ATTEST_ABI_VERSION;
    std::uint32_t text_bytes = 0;  // of problem_layout(), which follows
};

struct SupportsFrame {
    FrameHeader header;
    std::uint32_t text_bytes = 0;  // of the features it uses, which follow the problem
    std::uint32_t reserved = 0;
    attest_problem problem{};  // as the ABI has it: problem.struct_size bytes
};

struct AnswerFrame {
    FrameHeader header;
    std::uint32_t yes = 0;
    std::uint32_t text_bytes = 0;  // of the reason, which follows
    std::uint64_t workspace_bytes = 0;
};

/// forward_beside: forward while a second thread calls, too.
enum class Operation : std::uint32_t { forward = 0, backward = 1, append = 2, forward_beside = 3 };

struct CallFrame {
    FrameHeader header;
    std::uint64_t memory_bytes = 0;     // size of the shared memory now
    std::uint64_t workspace_bytes = 0;  // the workspace's place is a tensor of role 0xFFFF
    Operation operation = Operation::forward;
    std::uint32_t tensor_count = 0;
    attest_problem problem{};
    std::array<WireTensor, tensors_max> tensors{};  // tensor_count of them are sent
};

enum class Status : std::uint32_t {
    done = 0,
    error = 1,      // the kernel returned non-zero; text
    workspace = 2,  // nothing was run: the kernel wants workspace_bytes
    exception = 3,  // an exception left the kernel; text
    memory = 4,     // an allocation failed; text
    absent = 5,     // the kernel has no such operation
    lost = 6,       // the process can answer nothing further, and ends; text
    unwatched = 7   // the kernel took the signals by which reads outside are seen
};

struct ReplyFrame {
    FrameHeader header;
    Status status = Status::done;
    std::int32_t code = 0;              // what the kernel returned
    std::uint64_t workspace_bytes = 0;  // wanted
    std::uint64_t outputs = 0;          // bit of every role that was returned
    std::uint32_t text_bytes = 0;
    std::uint32_t reserved = 0;
};

enum class Phase : std::uint32_t {
    loading = 0,
    get_kernel = 1,
    create = 2,
    supports = 3,
    workspace = 4,
    operation = 5,
    idle = 6,
    text = 7  // past the end of the place for a reason or an error
};

struct FaultFrame {
    FrameHeader header;
    std::uint32_t signal = 0;
    std::int32_t code = 0;     // si_code
    std::uint32_t access = 0;  // 0 unknown, 1 read, 2 write
    Phase phase = Phase::loading;
    std::uint64_t address = 0;
    std::uint64_t arena = 0, arena_bytes = 0;  // where the shared memory is mapped
    std::uint64_t stack_pointer = 0;
    std::uint64_t instruction = 0;
    std::array<std::uint64_t, 2> reserved_memory{};
    std::uint32_t allocation_failed = 0;  // operator new failed in this call
    std::uint32_t stack_taken = 0;        // the thread's stack was unmapped or protected
};

/// Of a load_error; what the host does about it hangs on this. numpy: the Python worker needs it,
/// and another interpreter may have it.
enum class Missing : std::uint32_t { other = 0, numpy = 1 };

/// A text alone: manifest and load_error.
struct TextFrame {
    FrameHeader header;
    std::uint32_t text_bytes = 0;
    Missing missing = Missing::other;
};

static_assert(sizeof(FrameHeader) == 16 && sizeof(HelloFrame) == 32);
static_assert(offsetof(SupportsFrame, problem) == 24 && sizeof(AnswerFrame) == 32);
static_assert(offsetof(CallFrame, problem) == 40 && sizeof(attest_problem) % 8 == 0);
static_assert(offsetof(CallFrame, tensors) ==
              offsetof(CallFrame, problem) + sizeof(attest_problem));
static_assert(sizeof(ReplyFrame) == 48 && sizeof(FaultFrame) == 96 && sizeof(TextFrame) == 24);

}  // namespace attest::worker::protocol
