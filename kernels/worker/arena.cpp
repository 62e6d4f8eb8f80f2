#include "kernels/worker/arena.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "kernels/worker/patterns.hpp"
#include "reference/problem/errors.hpp"

namespace attest::worker {
namespace {

constexpr std::uint64_t lane_bytes_min = 64 * 1024;
constexpr std::uint64_t lanes_min = 12;
constexpr std::uint64_t alignment = 64;
constexpr std::uint64_t large_bytes = 64ull << 20;
/// Poison between rows that lie farther apart than this would cost more than it shows.
constexpr std::uint64_t hole_bytes_min = 1 << 20;

std::uint64_t unit() {
    static const auto bytes = std::max(page, static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
    return bytes;
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) {
    return (value + to - 1) / to * to;
}

/// Numbers a token, a sequence or a head: nobody loads them by whole vectors, and reading one too
/// many is the commonest mistake made with them. They always end at a guard, whatever is promised
/// of the rest.
bool always_ends_at_guard(const TensorSlot& slot) {
    if (slot.is_workspace()) return false;
    switch (static_cast<Role>(slot.role)) {
        case Role::lens_q:
        case Role::lens_kv:
        case Role::cu_seqlens_q:
        case Role::cu_seqlens_kv:
        case Role::block_table:
        case Role::positions:
        case Role::alibi_slopes:
        case Role::sinks:
        case Role::d_sinks:
        case Role::d_slopes:
        case Role::k_scale:
        case Role::v_scale:
            return true;
        default:
            return false;
    }
}

bool lies_far_apart(const TensorSlot& slot) {
    const Placement& p = slot.placement;
    return p.rows > 1 &&
           static_cast<std::uint64_t>(p.row_stride - p.row) * size_of(p.type) >= hole_bytes_min;
}

/// The pages of a slot that has its place.
void find_filled(TensorSlot& slot) {
    const std::uint64_t pages_end = slot.pages + slot.pages_bytes;
    slot.filled.clear();
    if (!lies_far_apart(slot)) return slot.filled.push_back({slot.pages, pages_end});
    const Placement& p = slot.placement;
    const std::uint64_t size = size_of(p.type);
    for (std::int64_t r = 0; r < p.rows; ++r) {
        const auto row = slot.data + static_cast<std::uint64_t>(r * p.row_stride) * size;
        const std::uint64_t begin = r == 0 ? slot.block() : row;
        const std::uint64_t end = row + static_cast<std::uint64_t>(p.row) * size;
        slot.filled.push_back({begin / unit() * unit(), round_up(end, unit())});
    }
}

/// A file that grows past this process's limit would end it.
bool may_grow_to(std::uint64_t bytes) {
    rlimit limit{};
    return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes <= limit.rlim_cur;
}

/// Where a slot's first element lies.
std::uint64_t place_of(const TensorSlot& slot, const Variant& variant) {
    const std::uint64_t begin = slot.pages + slot.lead_bytes;
    const std::uint64_t at_end = slot.pages + slot.pages_bytes - slot.span_bytes;
    if (always_ends_at_guard(slot)) return at_end;
    if (!variant.flush_right) return begin;
    const bool aligned = slot.is_workspace() || (variant.aligned && slot.lead_bytes == 0);
    return aligned ? at_end / alignment * alignment : at_end;
}

}  // namespace

Variant variant_of(std::uint64_t call_number, std::uint64_t seed, bool aligned) noexcept {
    // 0x7FFp: f16, bf16, f32 and f64 alike have all exponent bits set and a fraction that is not 0.
    // Payloads differ in their low three bits, so neither a sign nor a quieted NaN mixes them up.
    constexpr std::array<std::array<std::uint16_t, 3>, 6> orders = {
        {{5, 3, 6}, {3, 5, 6}, {6, 3, 5}, {5, 6, 3}, {3, 6, 5}, {6, 5, 3}}};
    const std::array<std::uint16_t, 3>& payload = orders[seed % orders.size()];
    const bool odd = (call_number & 1) != 0;
    const auto pattern = [&](std::uint16_t p) {
        return static_cast<std::uint16_t>(0x7FF0u | p | (odd ? 0x8008u : 0u));
    };
    return {!odd, aligned, pattern(payload[0]), pattern(payload[1]), pattern(payload[2])};
}

Arena::Arena() {
    fd_ = ::memfd_create("tensors", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    // A worker that made the file smaller would take pages from under the host, which dies of it.
    if (fd_ < 0 || ::fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
        throw InternalError("no memory to share with a worker");
    }
}

Arena::~Arena() {
    unmap();
    ::close(fd_);
}

void Arena::add(Role role, protocol::Access access, const Placement& placement) {
    TensorSlot slot;
    slot.role = static_cast<std::uint16_t>(role);
    slot.access = access;
    slot.placement = placement;
    slot.lead_bytes = placement.lead_bytes();
    slot.span_bytes = placement.span_bytes();
    slots_.push_back(slot);
}

void Arena::add_workspace(std::uint64_t bytes) {
    TensorSlot slot;
    slot.role = protocol::workspace_role;
    slot.access = protocol::Access::write;
    slot.span_bytes = bytes;
    slots_.push_back(slot);
}

void Arena::require_bytes(std::uint64_t lane_bytes, std::uint64_t far_bytes) {
    Extent wanted = extent_;
    wanted.lanes = std::max<std::uint64_t>({wanted.lanes, lanes_min, slots_.size()});
    wanted.lane_bytes = std::max(wanted.lane_bytes, lane_bytes);
    wanted.far_bytes = std::max(wanted.far_bytes, far_bytes);
    if (wanted == extent_ || map(wanted)) return;
    // Once more, with no more addresses than this call needs.
    unmap();
    wanted.far_bytes = far_bytes;
    if (map(wanted)) return;
    wanted.far_bytes = 0;
    if (far_bytes == 0 || !map(wanted))
        throw InternalError(
            "the memory shared with a worker cannot grow (ulimit -f, or out of memory)");
    throw NoAddresses(fmt::format("this machine gives no {} GiB of addresses", far_bytes >> 30));
}

bool Arena::map(const Extent& extent) {
    // Sparse: only pages that are touched take memory.
    const std::uint64_t bytes = extent.lanes_end() + extent.far_bytes;
    struct stat now {};  // a worker may have made it larger
    const bool large = ::fstat(fd_, &now) == 0 && now.st_size >= static_cast<off_t>(bytes);
    if (!large && !(may_grow_to(bytes) && ::ftruncate(fd_, static_cast<off_t>(bytes)) == 0))
        return false;
    void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (mapped == MAP_FAILED) return false;
    unmap();
    base_ = static_cast<std::byte*>(mapped);
    bytes_ = bytes;
    extent_ = extent;
    return true;
}

void Arena::unmap() {
    if (base_ == nullptr) return;
    ::munmap(base_, bytes_);
    base_ = nullptr;
    // The old places hold nothing anybody needs.
    ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes_));
}

void Arena::lay(const Variant& variant) {
    variant_ = variant;
    std::uint64_t largest = lane_bytes_min, far_bytes = 0;
    for (TensorSlot& slot : slots_) {
        // One byte at least, so that an empty tensor too has a place next to a guard.
        slot.pages_bytes =
            round_up(std::max<std::uint64_t>(slot.lead_bytes + slot.span_bytes, 1), unit());
        if (lies_far_apart(slot)) {
            far_bytes += slot.pages_bytes + guard_bytes;
        } else {
            largest = std::max(largest, slot.pages_bytes);
        }
    }
    require_bytes(std::bit_ceil(largest), far_bytes);
    std::uint64_t lane = guard_bytes, far = extent_.lanes_end();
    for (TensorSlot& slot : slots_) {
        const bool is_far = lies_far_apart(slot);
        std::uint64_t& next = is_far ? far : lane;
        slot.pages = next;
        next += (is_far ? slot.pages_bytes : extent_.lane_bytes) + guard_bytes;
        slot.data = place_of(slot, variant);
        find_filled(slot);
        if (is_far) punch(slot);  // what an earlier call left where its holes are
        fill_slot(slot);
    }
}

void Arena::punch(const TensorSlot& slot) const {
    ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(slot.pages),
                static_cast<off_t>(slot.pages_bytes));
}

void Arena::fill_slot(const TensorSlot& slot) const {
    const bool output = slot.access == protocol::Access::write;
    const std::uint16_t inside = !output               ? variant_.canary
                                 : slot.is_workspace() ? variant_.workspace
                                                       : variant_.poison;
    for (const PageRange& range : slot.filled) {
        const std::uint64_t begin = std::clamp(slot.block(), range.begin, range.end);
        const std::uint64_t end = std::clamp(slot.end(), range.begin, range.end);
        fill(base_, range.begin, begin, variant_.canary);
        fill(base_, begin, end, inside);
        fill(base_, end, range.end, variant_.canary);
    }
}

void Arena::seal() {
    std::size_t total = 0;
    for (const TensorSlot& slot : slots_) {
        if (slot.access == protocol::Access::read) total += slot.filled_bytes();
    }
    if (image_.size() < total) image_.resize(total);
    std::size_t to = 0;
    for (const TensorSlot& slot : slots_) {
        if (slot.access != protocol::Access::read) continue;
        for (const PageRange& range : slot.filled) {
            std::memcpy(image_.data() + to, base_ + range.begin, range.end - range.begin);
            to += range.end - range.begin;
        }
    }
}

Tensor Arena::collect(const TensorSlot& slot, std::int64_t& poison_at) const {
    Tensor out(slot.placement.type, slot.placement.shape);
    gather(slot.placement, base_ + slot.data, out.bytes());
    poison_at = find_poison(out, variant_.poison);
    return out;
}

bool Arena::made_of_workspace(const Tensor& output) const {
    const bool has_one = std::ranges::any_of(
        slots_, [](const TensorSlot& slot) { return slot.is_workspace() && slot.span_bytes > 0; });
    return has_one && holds_nan_of(output, variant_.workspace);
}

void Arena::release_large() {
    std::uint64_t total = 0;
    for (const TensorSlot& slot : slots_) total += slot.pages_bytes;
    if (total < large_bytes) return;
    for (const TensorSlot& slot : slots_) punch(slot);
    image_ = {};
}

}  // namespace attest::worker
