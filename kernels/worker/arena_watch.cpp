// What a kernel had no business writing: canary, gaps, inputs, and the holes of tensors whose rows
// lie far apart.

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "kernels/worker/arena.hpp"
#include "kernels/worker/patterns.hpp"

namespace attest::worker {
std::uint64_t TensorSlot::filled_bytes() const noexcept {
    std::uint64_t bytes = 0;
    for (const PageRange& range : filled) bytes += range.end - range.begin;
    return bytes;
}

std::optional<std::uint64_t> Arena::find_changed(const TensorSlot& slot) const {
    const auto changed = [&](std::uint64_t begin, std::uint64_t end,
                             std::uint16_t pattern) -> std::optional<std::uint64_t> {
        const std::uint64_t at = first_other(base_, begin, end, pattern);
        return at >= end ? std::nullopt : std::optional(at);
    };
    if (auto at = changed(slot.pages, slot.block(), variant_.canary)) return at;
    if (auto at = changed(slot.end(), slot.pages + slot.pages_bytes, variant_.canary)) return at;
    if (slot.is_workspace()) return std::nullopt;
    if (auto at = changed(slot.block(), slot.data, variant_.poison)) return at;
    const Placement& p = slot.placement;
    if (p.row == p.row_stride || p.span == 0) return std::nullopt;
    const std::uint64_t size = size_of(p.type);
    for (std::int64_t r = 0; r + 1 < p.rows; ++r) {
        const auto row = slot.data + static_cast<std::uint64_t>(r * p.row_stride) * size;
        const auto gap = row + static_cast<std::uint64_t>(p.row) * size;
        const auto next = row + static_cast<std::uint64_t>(p.row_stride) * size;
        // All of the gap, or what of it lies in the two rows' own pages.
        const bool apart = slot.filled.size() > 1;
        const auto row_at = static_cast<std::size_t>(r);
        const std::uint64_t filled_end = apart ? slot.filled[row_at].end : next;
        const std::uint64_t filled_again = apart ? slot.filled[row_at + 1].begin : next;
        if (auto at = changed(gap, filled_end, variant_.poison)) return at;
        if (auto at = changed(filled_again, next, variant_.poison)) return at;
    }
    return std::nullopt;
}

/// Nothing was laid into the holes: what the system finds there and is not 0 was written. (Reading
/// a hole leaves a page of zeros.)
std::optional<std::uint64_t> Arena::find_in_holes(const TensorSlot& slot) const {
    for (std::size_t i = 1; i < slot.filled.size(); ++i) {
        const std::uint64_t end = slot.filled[i].begin;
        for (std::uint64_t at = slot.filled[i - 1].end; at < end; at += page) {
            const off_t found = ::lseek(fd_, static_cast<off_t>(at), SEEK_DATA);
            if (found < 0 || static_cast<std::uint64_t>(found) >= end) break;
            at = static_cast<std::uint64_t>(found);
            const std::uint64_t other = first_other(base_, at, at + page, 0);
            if (other < at + page) return other;
        }
    }
    return std::nullopt;
}

std::optional<std::uint64_t> Arena::find_changed_input(const TensorSlot& slot,
                                                       const std::byte* image) const {
    for (const PageRange& range : slot.filled) {
        const std::byte* now = base_ + range.begin;
        const std::size_t bytes = range.end - range.begin;
        if (std::memcmp(now, image, bytes) != 0)
            return range.begin +
                   static_cast<std::uint64_t>(std::mismatch(now, now + bytes, image).first - now);
        image += bytes;
    }
    return std::nullopt;
}

std::optional<Breach> Arena::find_breach() const {
    std::size_t from = 0;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        const TensorSlot& slot = slots_[i];
        const bool input = slot.access == protocol::Access::read;
        std::optional<std::uint64_t> at =
            input ? find_changed_input(slot, image_.data() + from) : find_changed(slot);
        if (input) from += slot.filled_bytes();
        if (!at) at = find_in_holes(slot);
        if (!at) continue;
        const bool in_tensor = input && *at >= slot.data && *at < slot.end();
        return Breach{i, static_cast<std::int64_t>(*at) - static_cast<std::int64_t>(slot.data),
                      in_tensor};
    }
    return std::nullopt;
}

}  // namespace attest::worker
