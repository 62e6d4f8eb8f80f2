/* Attention as people have it: f32, all tensors [B, H, T, D] without gaps. attention_glue.c makes
 * it a kernel that attest can judge. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

void attention(const float* q, const float* k, const float* v, float* o, int B, int H, int T, int D,
               bool causal) {
    float* s = malloc((size_t)T * sizeof *s);
    for (int bh = 0; bh < B * H; ++bh) {
        const size_t head = (size_t)bh * (size_t)T * (size_t)D;
        for (int i = 0; i < T; ++i) {
            const int keys = causal ? i + 1 : T;
            float m = -INFINITY, sum = 0;
            for (int j = 0; j < keys; ++j) {
                s[j] = 0;
                for (int d = 0; d < D; ++d) s[j] += q[head + i * D + d] * k[head + j * D + d];
                s[j] /= sqrtf((float)D);
                m = s[j] > m ? s[j] : m;
            }
            for (int j = 0; j < keys; ++j) sum += s[j] = expf(s[j] - m);
            for (int d = 0; d < D; ++d) {
                float out = 0;
                for (int j = 0; j < keys; ++j) out += s[j] * v[head + j * D + d];
                o[head + i * D + d] = out / sum;
            }
        }
    }
    free(s);
}
