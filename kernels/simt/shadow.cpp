// The memory checker of the checked build: a shadow cell for every two bytes of shared memory and
// of every device buffer.
//
// A cell remembers its last write and its last two readers, each with (launch, block, barrier
// epoch, thread, warp clock). Two accesses are ordered if a barrier lies between them, if they are
// one thread's, or if a __syncwarp joined the later thread's clock with the earlier one's; shuffles
// order nothing, as CUDA says. Blocks are ordered only by atomics on global memory (release and
// acquire): that is how "the last block combines" is right. Two readers are kept, of different
// warps where possible: a race among more readers may be missed, a false alarm cannot arise.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "kernels/simt/block.hpp"
#include "kernels/simt/block_order.hpp"
#include "kernels/simt/check.hpp"
#include "kernels/simt/overwrite.hpp"
#include "kernels/simt/symbol.hpp"

namespace simt {
namespace {

constexpr std::size_t granule = 2;
constexpr const char* write_write = "write-write";

struct CellAccess {
    std::uint32_t launch = 0, block = 0, epoch = 0;
    std::uint16_t thread = 0, clock = 0;
    const void* pc = nullptr;
    bool happened() const { return launch != 0; }
};

struct Cell {
    CellAccess write, reader, other_reader;
    bool defined = false, addressable = false, in_flight = false, atomic_write = false;
    const void* copy_pc = nullptr;
};

struct Region {
    std::uintptr_t low = 0, high = 0, margin = 0;
    std::string name;
    std::vector<Cell> cells;
};

/// Where a cell lies; its array's name is looked up only when there is something to say.
struct CellPlace {
    const Region* region;
    std::uintptr_t address;
    bool shared;
};

class Shadow final : public Checker {
public:
    void access(const void* p, std::size_t n, bool write, bool atomic, const void* pc) override;
    void arena_reset(unsigned char* low, unsigned char* high) override;
    void arena_array(const void* p, std::size_t n, const char* name) override;
    void async_issue(const void* p, std::size_t n, const void* pc) override;
    void async_done(const void* p, std::size_t n, const void* pc) override;
    void add_buffer(const void* p, std::size_t n, const char* name, bool defined,
                    std::size_t margin) override;
    void remove_buffer(const void* p) override {
        buffers_.erase(reinterpret_cast<std::uintptr_t>(p));
    }
    void new_launch() override;
    void end_block() override { settle(); }

private:
    void settle();
    Region* find(std::uintptr_t address);
    bool ordered(const CellAccess& before) const;
    CellAccess now(const void* pc) const;
    void check_cell(Cell& cell, const CellPlace& at, bool write, bool atomic, const CellAccess& me);
    void race(const char* what, const CellAccess& before, const CellAccess& me,
              const CellPlace& at);
    std::string array_at(const CellPlace& at) const;
    enum class Weight { warning, defect, race };
    void report(const std::string& kind, const void* pc, const void* other, const std::string& text,
                Weight weight = Weight::defect);

    Region arena_;
    std::size_t arena_used_ = 0;
    std::map<std::uintptr_t, std::string> arrays_;
    std::map<std::uintptr_t, Region> buffers_;
    std::set<std::pair<std::string, std::pair<const void*, const void*>>> reported_;
    BlockOrder blocks_;
    std::vector<Overwrite> overwrites_;
    bool lands_later_ = false;  ///< what is written now: a copy that only begins
};

void Shadow::report(const std::string& kind, const void* pc, const void* other,
                    const std::string& text, Weight weight) {
    const std::string key = weight == Weight::warning ? kind + ", the same value" : kind;
    if (reported_.insert({key, {pc, other}}).second)
        current_block()->report(kind, text, weight == Weight::warning, weight == Weight::race);
}

/// Threads that write the same value where one would do are a habit, and harmless on every GPU.
void Shadow::settle() {
    for (const Overwrite& o : overwrites_) {
        const bool same = o.changed_nothing();
        report(o.shared ? "shared_race" : "global_race", o.pc, o.other,
               o.text + (same ? ", the same value" : ""), same ? Weight::warning : Weight::race);
    }
    overwrites_.clear();
}

CellAccess Shadow::now(const void* pc) const {
    Block* block = current_block();
    const BlockThread& self = block->self();
    return {block->launch(),       block->linear(),
            block->epoch(),        static_cast<std::uint16_t>(self.linear),
            self.clock[self.lane], pc};
}

bool Shadow::ordered(const CellAccess& before) const {
    Block* block = current_block();
    const BlockThread& self = block->self();
    if (before.launch != block->launch()) return true;
    if (before.block != block->linear()) return blocks_.before_running(before.block);
    if (before.epoch < block->epoch() || before.thread == self.linear) return true;
    return before.thread / 32u == self.warp && self.clock[before.thread % 32] >= before.clock;
}

void Shadow::new_launch() {
    reported_.clear();
    blocks_ = {};
}

Region* Shadow::find(std::uintptr_t address) {
    if (address >= arena_.low && address < arena_.high) return &arena_;
    auto after = buffers_.upper_bound(address);
    if (after != buffers_.begin()) {
        Region& before = std::prev(after)->second;
        if (address < before.high + before.margin) return &before;
    }
    if (after != buffers_.end() && address + after->second.margin >= after->second.low)
        return &after->second;
    return nullptr;
}

std::string Shadow::array_at(const CellPlace& at) const {
    if (!at.shared) return at.region->name;
    const auto after = arrays_.upper_bound(at.address);
    return after == arrays_.begin() ? "shared memory" : std::prev(after)->second;
}

void Shadow::race(const char* what, const CellAccess& before, const CellAccess& me,
                  const CellPlace& at) {
    const std::string text = std::string(what) + " race on " + array_at(at) + ": " +
                             line_of(before.pc) + " (thread " + std::to_string(before.thread) +
                             ") and " + line_of(me.pc) + " (thread " + std::to_string(me.thread) +
                             ")";
    if (what == write_write && !lands_later_)
        overwrites_.emplace_back(at.address, at.shared, me.pc, before.pc, text);
    else
        report(at.shared ? "shared_race" : "global_race", me.pc, before.pc, text, Weight::race);
}

void Shadow::check_cell(Cell& cell, const CellPlace& at, bool write, bool atomic,
                        const CellAccess& me) {
    const char* verb = write ? "write to " : "read of ";
    if (cell.in_flight)
        report("async_race", me.pc, cell.copy_pc,
               std::string(verb) + array_at(at) + " at " + line_of(me.pc) +
                   " while the cp.async of " + line_of(cell.copy_pc) + " is in flight",
               Weight::race);
    if (!write && !cell.defined && !cell.in_flight)
        report(at.shared ? "shared_undefined" : "global_undefined", me.pc, nullptr,
               std::string(verb) + array_at(at) + " at " + line_of(me.pc) +
                   ", which nothing has written");
    if (cell.write.happened() && !(atomic && cell.atomic_write) && !ordered(cell.write))
        race(write ? write_write : "write-read", cell.write, me, at);
    if (!write) {
        const bool other_warp = cell.reader.thread / 32 != me.thread / 32;
        if (cell.reader.happened() && cell.reader.thread != me.thread &&
            (other_warp || !cell.other_reader.happened()))
            cell.other_reader = cell.reader;
        cell.reader = me;
        return;
    }
    for (const CellAccess* reader : {&cell.reader, &cell.other_reader})
        if (reader->happened() && !(atomic && cell.atomic_write) && !ordered(*reader)) {
            race("read-write", *reader, me, at);
            break;
        }
    cell.write = me;
    cell.atomic_write = atomic;
    cell.defined = true;
    cell.reader = cell.other_reader = {};
}

void Shadow::access(const void* p, std::size_t n, bool write, bool atomic, const void* pc) {
    Block* block = current_block();
    if (block == nullptr || !block->in_flight()) return;
    if (!overwrites_.empty()) settle();
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    Region* region = find(address);
    if (region == nullptr) return;
    const bool shared = region == &arena_;
    blocks_.runs(block->linear());
    if (atomic && !shared) blocks_.meet(address);
    if (address < region->low || address + n > region->high) {
        report("global_out_of_bounds", pc, nullptr,
               std::string(write ? "write" : "read") + " outside " + region->name + " at " +
                   line_of(pc));
        return;
    }
    const CellAccess me = now(pc);
    const std::size_t first = (address - region->low) / granule;
    const std::size_t last = (address + n - region->low + granule - 1) / granule;
    for (std::size_t i = first; i < last; ++i) {
        Cell& cell = region->cells[i];
        const CellPlace at{region, region->low + i * granule, shared};
        if (shared && !cell.addressable) {
            report("shared_out_of_bounds", pc, nullptr,
                   std::string(write ? "write" : "read") + " past the shared array " +
                       array_at(at) + " at " + line_of(pc));
            return;
        }
        check_cell(cell, at, write, atomic, me);
    }
}

void Shadow::arena_reset(unsigned char* low, unsigned char* high) {
    if (arena_.low != reinterpret_cast<std::uintptr_t>(low)) {
        arena_.low = reinterpret_cast<std::uintptr_t>(low);
        arena_.high = reinterpret_cast<std::uintptr_t>(high);
        arena_.cells.assign(static_cast<std::size_t>(high - low) / granule, {});
    } else {
        std::fill_n(arena_.cells.begin(), arena_used_, Cell{});
    }
    arena_used_ = 0;
    arrays_.clear();
}

void Shadow::arena_array(const void* p, std::size_t n, const char* array) {
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    const std::size_t first = (address - arena_.low) / granule,
                      last = first + (n + granule - 1) / granule;
    for (std::size_t i = first; i < last; ++i) arena_.cells[i].addressable = true;
    arena_used_ = std::max(arena_used_, last);
    arrays_[address] = array;
}

void Shadow::async_issue(const void* p, std::size_t n, const void* pc) {
    lands_later_ = true;
    access(p, n, true, false, pc);
    lands_later_ = false;
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    Region* region = find(address);
    if (region == nullptr || address < region->low) return;
    const std::size_t first = (address - region->low) / granule;
    for (std::size_t i = first; i < std::min(first + n / granule, region->cells.size()); ++i) {
        region->cells[i].in_flight = true;
        region->cells[i].copy_pc = pc;
    }
}

void Shadow::async_done(const void* p, std::size_t n, const void* pc) {
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    Region* region = find(address);
    if (region == nullptr || address < region->low) return;
    Block* block = current_block();
    const bool by_kernel = block != nullptr && block->in_flight();
    const std::size_t first = (address - region->low) / granule;
    for (std::size_t i = first;
         i < std::min(first + (n + granule - 1) / granule, region->cells.size()); ++i) {
        Cell& cell = region->cells[i];
        cell.in_flight = false;
        cell.defined = true;
        cell.write = by_kernel ? now(pc) : CellAccess{};
    }
}

void Shadow::add_buffer(const void* p, std::size_t n, const char* buffer, bool defined,
                        std::size_t margin) {
    Region region;
    region.low = reinterpret_cast<std::uintptr_t>(p);
    region.high = region.low + n;
    region.name = buffer;
    region.margin = margin;
    region.cells.assign((n + granule - 1) / granule, {});
    for (Cell& cell : region.cells) {
        cell.addressable = true;
        cell.defined = defined;
    }
    buffers_.insert_or_assign(region.low, std::move(region));
}

}  // namespace

Checker* shadow_memory() {
    static Shadow shadow;
    return &shadow;
}

}  // namespace simt
