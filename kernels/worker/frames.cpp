#include "kernels/worker/frames.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace attest::worker {

namespace {

/// What a descriptor leads to: another file under its number is none of ours.
struct Led {
    dev_t device = 0;
    ino_t inode = 0;
    bool open = false;

    explicit Led(int descriptor) {
        struct stat status {};
        open = ::fstat(descriptor, &status) == 0;
        device = status.st_dev;
        inode = status.st_ino;
    }
    bool operator==(const Led&) const = default;
};

struct Ends {
    Led socket{protocol::socket_fd}, memory{protocol::memory_fd};
    bool operator==(const Ends&) const = default;
};
const Ends as_started;  // before any kernel's code

/// shutdown() of one direction leaves the file what it was. The other one's end shows when
/// something is sent.
bool hears_nobody() {
    pollfd socket{protocol::socket_fd, POLLRDHUP, 0};
    return ::poll(&socket, 1, 0) > 0 && (socket.revents & POLLRDHUP) != 0;
}

/// Whether to try once more: a kernel may have made the socket one that does not wait.
bool try_again(short event) {
    if (errno == EINTR) return true;
    if (errno != EAGAIN) return false;
    pollfd socket{protocol::socket_fd, event, 0};
    ::poll(&socket, 1, -1);
    return true;
}

}  // namespace

void send_frame(std::span<std::byte> frame, std::string_view text) {
    protocol::FrameHeader header;
    std::memcpy(&header, frame.data(), sizeof header);
    text = text.substr(0, protocol::frame_bytes_max - frame.size());
    header.size = static_cast<std::uint32_t>(frame.size() + text.size());
    std::memcpy(frame.data(), &header, sizeof header);

    // iovec has no const: sendmsg does not write.
    std::array<iovec, 2> parts = {iovec{frame.data(), frame.size()},
                                  iovec{const_cast<char*>(text.data()), text.size()}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    ssize_t sent = 0;
    do {
        sent = ::sendmsg(protocol::socket_fd, &message, MSG_NOSIGNAL);
    } while (sent < 0 && try_again(POLLOUT));
    if (sent < 0) ::_exit(protocol::closed_exit);  // or the host has gone, and nobody asks
}

void require_ends() {
    if (Ends() != as_started || hears_nobody()) ::_exit(protocol::closed_exit);
}

void send_text(protocol::FrameKind kind, std::uint32_t sequence, std::string_view text) {
    protocol::TextFrame frame;
    frame.header.kind = kind;
    frame.header.sequence = sequence;
    text = text.substr(0, protocol::frame_bytes_max - sizeof frame);
    frame.text_bytes = static_cast<std::uint32_t>(text.size());
    send(frame, text);
}

std::span<const std::byte> receive_frame() {
    alignas(8) static std::array<std::byte, protocol::frame_bytes_max> buffer;
    ssize_t got = 0;
    do {
        got = ::recv(protocol::socket_fd, buffer.data(), buffer.size(), 0);
    } while (got < 0 && try_again(POLLIN));
    return std::span(buffer).first(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
}

std::string_view cut_text(std::string_view text) {
    if (text.size() <= protocol::text_bytes_max) return text;
    std::size_t end = protocol::text_bytes_max;
    const auto continues = [&](std::size_t at) {
        return (static_cast<unsigned char>(text[at]) & 0xC0u) == 0x80u;
    };
    while (end > 0 && continues(end)) --end;
    return text.substr(0, end);
}

}  // namespace attest::worker
