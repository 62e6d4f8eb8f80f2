// Attention as people have it: f32, all tensors [B, H, T, D] without gaps. attention_glue.cpp makes
// it a kernel that attest can judge.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

void attention(const float* q, const float* k, const float* v, float* o, int B, int H, int T, int D,
               bool causal) {
    std::vector<float> s(static_cast<std::size_t>(T));
    for (int bh = 0; bh < B * H; ++bh) {
        const std::ptrdiff_t head = std::ptrdiff_t{bh} * T * D;
        for (int i = 0; i < T; ++i) {
            const int keys = causal ? i + 1 : T;
            float m = -std::numeric_limits<float>::infinity(), sum = 0;
            for (int j = 0; j < keys; ++j) {
                s[j] = 0;
                for (int d = 0; d < D; ++d) s[j] += q[head + i * D + d] * k[head + j * D + d];
                s[j] /= std::sqrt(static_cast<float>(D));
                m = std::max(m, s[j]);
            }
            for (int j = 0; j < keys; ++j) sum += s[j] = std::exp(s[j] - m);
            for (int d = 0; d < D; ++d) {
                float out = 0;
                for (int j = 0; j < keys; ++j) out += s[j] * v[head + j * D + d];
                o[head + i * D + d] = out / sum;
            }
        }
    }
}
