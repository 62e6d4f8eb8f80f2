#include "ci/journal.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "ci/number.hpp"

namespace attest {

namespace {

constexpr std::size_t line_max = 64 * 1024;  // report.md: readers may rely on it

// What a counterexample can do without, the least telling first.
constexpr std::array<const char*, 4> optional_parts{"map", "weights", "picture", "points"};

std::string fitting_line(Record record) {
    std::string line = record_line(record);
    for (const char* part : optional_parts) {
        if (line.size() < line_max) break;
        if (record.contains(part)) record[part] = std::string(part) == "picture"
                                                      ? Record::array()
                                                      : Record(nullptr);
        if (std::string(part) == "points" && record.contains("boundary"))
            record["boundary"]["points"] = Record::array();
        line = record_line(record);
    }
    return line + "\n";
}

}  // namespace

struct Journal::Digest {
    crypto_hash_sha256_state state;
};

Journal::Journal(const std::string& directory, const std::vector<Record>& first)
    : path_(directory + "/result.jsonl"), directory_(directory), digest_(new Digest) {
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error)
        throw BadInput("--out " + directory + ": " + error.message(),
                       {"name a folder that can be written"});
    crypto_hash_sha256_init(&digest_->state);
    // The first records are written beside the old file and take its place whole: a resumed run
    // that is cut here has lost nothing.
    const std::string beside = path_ + ".new";
    file_ = ::open(beside.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    if (file_ < 0)
        throw BadInput("--out " + directory + ": " + std::strerror(errno),
                       {"name a folder that can be written"});
    for (const Record& record : first) append(record);
    if (::rename(beside.c_str(), path_.c_str()) != 0)
        throw OutputFailed(path_ + ": " + std::strerror(errno), {});
}

Journal::~Journal() {
    if (file_ >= 0) ::close(file_);
}

void Journal::write_line(const std::string& line) {
    std::size_t done = 0;
    while (done < line.size()) {
        const ssize_t n = ::write(file_, line.data() + done, line.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            const std::string cause = errno == ENOSPC ? "no space left on device"
                                                      : std::strerror(errno);
            [[maybe_unused]] const int taken_back = ::ftruncate(file_, bytes_);
            throw OutputFailed(path_ + ": " + cause + " after " + count_text(lines_) + " records",
                               {"free space and run with --resume " + directory_});
        }
        done += static_cast<std::size_t>(n);
    }
    bytes_ += static_cast<std::int64_t>(line.size());
    ++lines_;
}

void Journal::append(const Record& record) {
    const std::string line = fitting_line(record);
    write_line(line);
    crypto_hash_sha256_update(&digest_->state,
                              reinterpret_cast<const unsigned char*>(line.data()), line.size());
}

void Journal::finish(Record end) {
    std::array<unsigned char, crypto_hash_sha256_BYTES> hash{};
    crypto_hash_sha256_final(&digest_->state, hash.data());
    std::string hex;
    for (const unsigned char byte : hash) {
        constexpr const char* digits = "0123456789abcdef";
        hex += digits[byte >> 4];
        hex += digits[byte & 15];
    }
    end["sha256"] = hex;
    end["lines"] = lines_ + 1;
    write_line(fitting_line(end));
    if (::fsync(file_) != 0)
        throw OutputFailed(path_ + ": " + std::strerror(errno), {});
}

}  // namespace attest
