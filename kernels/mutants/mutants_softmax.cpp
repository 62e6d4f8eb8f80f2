// The kernels of museum_softmax.cpp: one body, one defect each.

#include "kernels/cpu/flash_body.hpp"
#include "kernels/mutants/museum_rooms.hpp"

namespace attest::kernel {

std::vector<MutantEntry> softmax_entries() {
    return {
        {"mutant:M041", plain_flash<Defect::m041_max_from_minus_5e4>, plain_workspace},
        {"mutant:M042", plain_flash<Defect::m042_max_zeroed>, plain_workspace},
        {"mutant:M043", plain_flash<Defect::m043_output_not_rescaled>, plain_workspace},
        {"mutant:M045", plain_flash<Defect::m045_sum_rescaled_late>, plain_workspace},
        {"mutant:M046", plain_flash<Defect::m046_max_before_mask>, plain_workspace},
        {"mutant:M047", plain_flash<Defect::m047_no_max>, plain_workspace},
        {"mutant:M049", plain_flash<Defect::m049_half_accumulator>, plain_workspace},
        {"mutant:M050", plain_flash<Defect::m050_weights_to_bf16>, plain_workspace},
        {"mutant:M052", plain_flash<Defect::m052_output_truncated>, plain_workspace},
        {"mutant:M053", plain_flash<Defect::m053_small_tiles_skipped>, plain_workspace},
        {"mutant:M055", plain_flash<Defect::m055_lse_max_scaled_twice>, plain_workspace},
        {"mutant:M059", plain_flash<Defect::m059_empty_lse_zero>, plain_workspace},
        {"mutant:M060", plain_flash<Defect::m060_nan_dropped>, plain_workspace},
        {"mutant:M171", plain_flash<Defect::m171_sink_scaled>, plain_workspace},
        {"mutant:M172", plain_flash<Defect::m172_sink_not_in_max>, plain_workspace},
        {"mutant:M173", plain_flash<Defect::m173_sink_not_in_lse>, plain_workspace},
    };
}

}  // namespace attest::kernel
