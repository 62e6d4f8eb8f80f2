// The kernels of museum_decode.cpp: one body, one defect each.

#include "kernels/cpu/decode_entry.hpp"
#include "kernels/mutants/museum_rooms.hpp"

namespace attest::kernel {

std::vector<MutantEntry> decode_entries() {
    return {
        {"mutant:M010", split_decode<Defect::m010_decode_ignores_window>,
         decode_workspace<Defect::m010_decode_ignores_window>},
        {"mutant:M058", split_decode<Defect::m058_merge_without_max>,
         decode_workspace<Defect::m058_merge_without_max>},
        {"mutant:M077", split_decode<Defect::m077_batch_stride_zero>,
         decode_workspace<Defect::m077_batch_stride_zero>},
        {"mutant:M086", split_decode<Defect::m086_page_of_tile>,
         decode_workspace<Defect::m086_page_of_tile>},
        {"mutant:M087", split_decode<Defect::m087_last_page_in_full>,
         decode_workspace<Defect::m087_last_page_in_full>},
        {"mutant:M088", split_decode<Defect::m088_table_stride_of_sequence>,
         decode_workspace<Defect::m088_table_stride_of_sequence>},
        {"mutant:M093", split_decode<Defect::m093_split_remainder_dropped>,
         decode_workspace<Defect::m093_split_remainder_dropped>},
        {"mutant:M094", split_decode<Defect::m094_splits_overlap>,
         decode_workspace<Defect::m094_splits_overlap>},
        {"mutant:M096", split_decode<Defect::m096_splits_averaged>,
         decode_workspace<Defect::m096_splits_averaged>},
        {"mutant:M147", split_decode<Defect::m147_splits_by_batch>,
         decode_workspace<Defect::m147_splits_by_batch>},
        {"mutant:M160", split_decode<Defect::m160_query_at_position_zero>,
         decode_workspace<Defect::m160_query_at_position_zero>},
        {"mutant:M164", split_decode<Defect::m164_rotates_two_more>,
         decode_workspace<Defect::m164_rotates_two_more>},
    };
}

}  // namespace attest::kernel
