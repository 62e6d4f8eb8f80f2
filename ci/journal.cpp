#include "ci/journal.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "ci/number.hpp"
#include "ci/record.hpp"
#include "ci/signature.hpp"

namespace attest::ci {

namespace {

/// Whether this process alone writes there. One of a run that was killed may be held a moment
/// longer by a process that does not know it yet.
bool lock(int directory) {
    for (int tries = 40; ::flock(directory, LOCK_EX | LOCK_NB) != 0; --tries) {
        if (errno != EWOULDBLOCK) return true;  // a file system without locks
        if (tries == 0) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return true;
}

}  // namespace

struct Journal::Digest {
    crypto_hash_sha256_state state;
};

Journal::Journal(const std::string& directory, const std::vector<std::string>& first,
                 std::string remedy)
    : path_(directory + "/result.jsonl"), remedy_(std::move(remedy)), digest_(new Digest) {
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error)
        throw BadInput("--out " + directory + ": " + error.message(),
                       {"name a folder that can be written"});
    crypto_hash_sha256_init(&digest_->state);
    // Held until this process ends, however it ends.
    lock_ = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock_ >= 0 && !lock(lock_)) {
        ::close(lock_);
        throw BadInput("--out " + directory + ": another run is writing there",
                       {"name another folder, or wait until it has ended"});
    }
    // The first records are written beside the old file and take its place whole: a resumed run
    // that is cut here has lost nothing.
    const std::string beside = path_ + ".new";
    file_ = ::open(beside.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    if (file_ < 0)
        throw BadInput("--out " + directory + ": " + std::strerror(errno),
                       {"name a folder that can be written"});
    try {
        for (const std::string& line : first) append(line);
    } catch (...) {
        ::unlink(beside.c_str());
        throw;
    }
    kept_ = true;
    const bool replaces = std::filesystem::exists(path_, error);
    if (::rename(beside.c_str(), path_.c_str()) != 0)
        throw OutputFailed(path_ + ": " + std::strerror(errno), {});
    for (const char* page :
         {"report.html", "certificate.html", "certificate.json", "certificate.md", bundle_name})
        if (replaces) std::filesystem::remove(std::filesystem::path(directory) / page, error);
}

Journal::~Journal() {
    if (file_ >= 0) ::close(file_);
    if (lock_ >= 0) ::close(lock_);
}

void Journal::write_line(const std::string& line) {
    std::size_t done = 0;
    while (done < line.size()) {
        const ssize_t n = ::write(file_, line.data() + done, line.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            const std::string cause =
                errno == ENOSPC ? "no space left on device" : std::strerror(errno);
            [[maybe_unused]] const int taken_back = ::ftruncate(file_, bytes_);
            throw OutputFailed(path_ + ": " + cause + " after " + count_text(lines_) + " records",
                               {"free space and " + (kept_ ? remedy_ : "run it again")});
        }
        done += static_cast<std::size_t>(n);
    }
    bytes_ += static_cast<std::int64_t>(line.size());
    ++lines_;
}

void Journal::append(std::string line) {
    line += '\n';
    write_line(line);
    crypto_hash_sha256_update(&digest_->state, reinterpret_cast<const unsigned char*>(line.data()),
                              line.size());
}

void Journal::finish(RunEnd& end) {
    std::array<unsigned char, crypto_hash_sha256_BYTES> hash{};
    crypto_hash_sha256_final(&digest_->state, hash.data());
    end.sha256.clear();
    for (const unsigned char byte : hash) {
        constexpr const char* digits = "0123456789abcdef";
        end.sha256 += digits[byte >> 4];
        end.sha256 += digits[byte & 15];
    }
    end.lines = lines_ + 1;
    write_line(record_line(end) + "\n");
    if (::fsync(file_) != 0) throw OutputFailed(path_ + ": " + std::strerror(errno), {});
}

}  // namespace attest::ci
