#include "reference/problem/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "reference/problem/errors.hpp"

namespace attest {
namespace {

/// A file descriptor that is closed on every way out.
class Descriptor {
public:
    explicit Descriptor(int fd) noexcept : fd_(fd) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    int get() const noexcept { return fd_; }
    bool close() noexcept { return ::close(std::exchange(fd_, -1)) == 0; }

private:
    int fd_;
};

bool write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::write(fd, bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
}

/// The permissions a plainly created file would have; mkstemp gives 0600.
mode_t usual_mode() {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    return 0666 & ~mask;
}

std::string folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == path.npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

void write_file_atomically(const std::string& path, std::string_view bytes) {
    struct stat there;
    if (::lstat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode) &&
        !S_ISDIR(there.st_mode))
        throw InternalError(path + ": is no plain file");
    // Beside the target, for rename() is atomic within one file system only.
    std::string temporary = path + ".XXXXXX";
    const auto fail = [&](bool created) {
        const std::string cause = std::strerror(errno);
        if (created) ::unlink(temporary.c_str());
        throw InternalError(path + ": " + cause);
    };
    Descriptor file(::mkstemp(temporary.data()));
    if (file.get() < 0) fail(false);
    if (!write_all(file.get(), bytes) || ::fchmod(file.get(), usual_mode()) != 0 ||
        ::fsync(file.get()) != 0 || !file.close() || ::rename(temporary.c_str(), path.c_str()) != 0)
        fail(true);
    // The new name survives a power cut only once its folder is on the disk; some file systems
    // cannot sync a folder, and then there is nothing more to do.
    const Descriptor folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.get() >= 0) ::fsync(folder.get());
}

}  // namespace attest
