#include "kernels/mutants/museum.hpp"

#include "kernels/mutants/museum_rooms.hpp"

namespace attest {

std::span<const Mutant> museum() {
    static const std::vector<Mutant> all = [] {
        std::vector<Mutant> rows = masking_mutants();
        for (const auto& room :
             {softmax_mutants(), addressing_mutants(), decode_mutants(), gpu_mutants()}) {
            rows.insert(rows.end(), room.begin(), room.end());
        }
        return rows;
    }();
    return all;
}

}  // namespace attest
