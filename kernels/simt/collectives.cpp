#include "kernels/simt/collectives.hpp"

#include "kernels/simt/switch.hpp"

namespace simt {

void shuffle(unsigned mask, ShuffleOperand& mine, void* out, std::size_t bytes,
             const Location& location) {
    Block* block = current_block();
    block->collect(mask, Collective::shuffle, &mine, out, location, [=](OpenCollective& c) {
        for (int lane = 0; lane < 32; ++lane) {
            if ((c.arrived >> lane & 1u) == 0) continue;
            const int source = static_cast<const ShuffleOperand*>(c.in[lane])->source;
            if (source >= 0 && source < 32 && (c.arrived >> source & 1u) != 0) {
                std::memcpy(c.out[lane], static_cast<const ShuffleOperand*>(c.in[source])->value,
                            bytes);
            } else {
                block->report("shuffle_source", "a shuffle reads lane " + std::to_string(source) +
                                                    ", which does not take part, at " +
                                                    place(location));
                std::memset(c.out[lane], 0xFF, bytes);
            }
        }
    });
}

void sync_warp(unsigned mask, const Location& location) {
    Block* block = current_block();
    block->collect(mask, Collective::syncwarp, nullptr, nullptr, location,
                   [block](OpenCollective& c) { block->join_clocks(c.arrived); });
}

unsigned ballot(unsigned mask, bool predicate, Collective kind, const Location& location) {
    unsigned votes = 0;
    current_block()->collect(mask, kind, &predicate, &votes, location, [](OpenCollective& c) {
        unsigned bits = 0;
        for (int lane = 0; lane < 32; ++lane)
            if ((c.arrived >> lane & 1u) != 0 && *static_cast<const bool*>(c.in[lane]))
                bits |= 1u << lane;
        for (int lane = 0; lane < 32; ++lane)
            if ((c.arrived >> lane & 1u) != 0) *static_cast<unsigned*>(c.out[lane]) = bits;
    });
    return votes;
}

}  // namespace simt
