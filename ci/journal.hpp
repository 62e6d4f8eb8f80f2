#pragma once
// The file result.jsonl while it is written: records are appended whole, and its last line, `end`,
// carries the SHA-256 of all bytes before it.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ci/run_report.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {

/// The file could not be written. what() is one line; details say what stands.
class OutputFailed : public InternalError {
public:
    OutputFailed(const std::string& line, std::vector<std::string> details)
        : InternalError(line), details_(std::move(details)) {}
    const std::vector<std::string>& details() const noexcept { return details_; }

private:
    std::vector<std::string> details_;
};

class Journal {
public:
    /// Starts the file anew with these lines; pages and certificates of the one that was there say
    /// nothing of them, and go. `remedy` is what to do once a disk that is full has room. Throws
    /// OutputFailed, and BadInput where another run writes to this folder.
    Journal(const std::string& directory, const std::vector<std::string>& first,
            std::string remedy);
    ~Journal();
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;

    /// Appends one line. A line that does not fit on the disk is taken back whole, then
    /// OutputFailed.
    void append(std::string line);
    /// Appends the end, with lines and sha256 filled in, and makes the file durable.
    void finish(RunEnd& end);

    const std::string& path() const noexcept { return path_; }
    std::int64_t records() const noexcept { return lines_; }

private:
    void write_line(const std::string& line);
    struct Digest;
    std::string path_, remedy_;
    int file_ = -1, lock_ = -1;
    std::int64_t lines_ = 0, bytes_ = 0;
    bool kept_ = false;  ///< the file is there, with its first lines
    std::unique_ptr<Digest> digest_;
};

}  // namespace attest::ci
