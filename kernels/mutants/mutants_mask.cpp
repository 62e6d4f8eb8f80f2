// The kernels of museum_mask.cpp: one body, one defect each.

#include "kernels/cpu/flash_body.hpp"
#include "kernels/mutants/museum_rooms.hpp"

namespace attest::kernel {

std::vector<MutantEntry> masking_entries() {
    return {
        {"mutant:M001", plain_flash<Defect::m001_causal_top_left>, plain_workspace},
        {"mutant:M003", plain_flash<Defect::m003_causal_one_more>, plain_workspace},
        {"mutant:M004", plain_flash<Defect::m004_causal_in_one_tile>, plain_workspace},
        {"mutant:M006", plain_flash<Defect::m006_aligned_path_forgets_causal>, plain_workspace},
        {"mutant:M007", plain_flash<Defect::m007_window_row_of_chunk>, plain_workspace},
        {"mutant:M008", plain_flash<Defect::m008_row_divided_by_group>, plain_workspace},
        {"mutant:M009", plain_flash<Defect::m009_window_one_wider>, plain_workspace},
        {"mutant:M011", plain_flash<Defect::m011_first_tile_of_last_row>, plain_workspace},
        {"mutant:M012", plain_flash<Defect::m012_empty_row_mean>, plain_workspace},
        {"mutant:M014", plain_flash<Defect::m014_empty_row_unwritten>, plain_workspace},
        {"mutant:M016", plain_flash<Defect::m016_tail_one_more>, plain_workspace},
        {"mutant:M017", plain_flash<Defect::m017_tail_values_unmasked>, plain_workspace},
        {"mutant:M019", plain_flash<Defect::m019_hidden_is_minus_1e4>, plain_workspace},
        {"mutant:M021", plain_flash<Defect::m021_bool_mask_added>, plain_workspace},
        {"mutant:M022", plain_flash<Defect::m022_bias_as_bool>, plain_workspace},
        {"mutant:M023", plain_flash<Defect::m023_mask_head_stride>, plain_workspace},
        {"mutant:M025", plain_flash<Defect::m025_bias_scaled>, plain_workspace},
        {"mutant:M027", plain_flash<Defect::m027_cap_before_scale>, plain_workspace},
        {"mutant:M028", plain_flash<Defect::m028_cap_ignored>, plain_workspace},
        {"mutant:M033", plain_flash<Defect::m033_lengths_ignored>, plain_workspace},
        {"mutant:M034", plain_flash<Defect::m034_tile_skipped_by_first>, plain_workspace},
        {"mutant:M174", plain_flash<Defect::m174_mask_keys_contiguous>, plain_workspace},
        {"mutant:M177", plain_flash<Defect::m177_floor_is_hidden>, plain_workspace},
    };
}

}  // namespace attest::kernel
