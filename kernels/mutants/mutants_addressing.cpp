// The kernels of museum_addressing.cpp: one body, one defect each.

#include "kernels/cpu/flash_body.hpp"
#include "kernels/mutants/museum_rooms.hpp"

namespace attest::kernel {

std::vector<MutantEntry> addressing_entries() {
    return {
        {"mutant:M073", plain_flash<Defect::m073_head_stride_assumed>, plain_workspace},
        {"mutant:M074", plain_flash<Defect::m074_values_by_key_strides>, plain_workspace},
        {"mutant:M079", plain_flash<Defect::m079_head_by_heads_kv>, plain_workspace},
        {"mutant:M080", plain_flash<Defect::m080_group_padded>, plain_workspace},
        {"mutant:M081", plain_flash<Defect::m081_last_channels_dropped>, plain_workspace},
        {"mutant:M085", plain_flash<Defect::m085_scale_ignored>, plain_workspace},
        {"mutant:M090", plain_flash<Defect::m090_row_past_the_end>, plain_workspace},
        {"mutant:M092", plain_flash<Defect::m092_lse_transposed>, plain_workspace},
        {"mutant:M145", plain_flash<Defect::m145_query_scaled_in_place>, plain_workspace},
        {"mutant:M148", plain_flash<Defect::m148_last_query_tile_dropped>, plain_workspace},
        {"mutant:M167", plain_flash<Defect::m167_alibi_sign>, plain_workspace},
        {"mutant:M168", plain_flash<Defect::m168_alibi_slope_of_batch>, plain_workspace},
        {"mutant:M169", plain_flash<Defect::m169_alibi_signed_distance>, plain_workspace},
        {"mutant:M175", plain_flash<Defect::m175_lse_contiguous>, plain_workspace},
        {"mutant:M176", plain_flash<Defect::m176_group_of_eight_at_most>, plain_workspace},
        {"mutant:C02", plain_flash<Defect::c02_uniform_weights>, plain_workspace},
        {"mutant:C04", answer_by_shape, plain_workspace},
        {"mutant:C06", plain_flash<Defect::c06_inputs_to_bf16>, plain_workspace},
        {"mutant:C07", plain_flash<Defect::c07_short_range_exp>, plain_workspace},
        {"mutant:C09", plain_flash<Defect::c09_nan_everywhere>, plain_workspace},
        {"mutant:E03", plain_flash<Defect::e03_sum_from_one>, plain_workspace},
        {"mutant:E05", plain_flash<Defect::e05_all_tiles_visited>, plain_workspace},
        {"mutant:E07", plain_flash<Defect::e07_head_modulo_one>, plain_workspace},
    };
}

}  // namespace attest::kernel
