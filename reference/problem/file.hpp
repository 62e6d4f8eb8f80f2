#pragma once
// A file that is whole or absent, whatever happens to the machine while it is written.

#include <string>
#include <string_view>

namespace attest {

/// Write, fsync, rename. Throws InternalError with the path and the cause, and where a device, a
/// pipe or the like is there, which a rename would take away.
void write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace attest
