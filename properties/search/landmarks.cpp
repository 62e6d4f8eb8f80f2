#include "properties/search/landmarks.hpp"

#include <algorithm>

namespace attest::search {

namespace {

void keep_sorted_upto(std::vector<std::int64_t>& numbers, std::int64_t least, std::int64_t most) {
    std::erase_if(numbers, [=](std::int64_t n) { return n < least || n > most; });
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

}  // namespace

std::vector<std::int64_t> landmark_lengths(std::int64_t most) {
    std::vector<std::int64_t> centres = {16, 32, 64, 80, 96, 112, 128, 176, 256};
    for (std::int64_t power = 1; power <= most && power > 0; power *= 2) centres.push_back(power);
    for (std::int64_t tile = 16; tile <= std::min<std::int64_t>(most, 256); tile += 16)
        centres.push_back(tile);
    std::vector<std::int64_t> all;
    for (const std::int64_t centre : centres)
        for (const std::int64_t side : {-1, 0, 1}) all.push_back(centre + side);
    keep_sorted_upto(all, 1, std::max<std::int64_t>(most, 1));
    return all;
}

std::vector<std::int64_t> long_landmarks(std::int64_t most, std::int64_t long_from) {
    std::vector<std::int64_t> all = landmark_lengths(most);
    // 130 upward must come up with more than its neighbours at 128: a tile of 128 ends there.
    for (const std::int64_t past : {130, 133, 140, 150, 190, 200, 250, 260, 300})
        all.push_back(past);
    keep_sorted_upto(all, std::min(long_from, std::max<std::int64_t>(most, 1)),
                     std::max<std::int64_t>(most, 1));
    if (all.empty()) all.push_back(std::max<std::int64_t>(most, 1));
    return all;
}

const std::vector<std::int64_t>& landmark_dims() {
    static const std::vector<std::int64_t> dims = {
        1,   2,   3,   4,   5,   7,   8,   9,   12,  15,  16,  17,  20,  24,  31,
        32,  33,  36,  40,  47,  48,  56,  60,  63,  64,  65,  72,  80,  96,  100,
        112, 120, 127, 128, 129, 160, 192, 255, 256, 257, 320, 384, 512, 513, 576};
    return dims;
}

const std::vector<std::pair<std::int64_t, std::int64_t>>& unequal_dims() {
    static const std::vector<std::pair<std::int64_t, std::int64_t>> pairs = {
        {96, 64}, {192, 128}, {576, 512}, {64, 256}, {64, 512}};
    return pairs;
}

}  // namespace attest::search
