// Offsets beyond 2^31 elements: two heads far apart in a mapping that is almost all holes.

#include <sys/mman.h>

#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/test_call.hpp"
#include "kernels/interface/builtin.hpp"

namespace attest::cpu {
namespace {

constexpr std::int64_t apart = (std::int64_t{1} << 31) + 4096;  // elements between the two heads
constexpr std::int64_t keys = 5, dim = 3, row = keys * dim;

/// [1, 2, keys, dim] of f32 with a head stride of `apart`; only two pages of it ever exist.
class Sparse {
public:
    Sparse() {
        memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    ~Sparse() {
        if (mapped()) munmap(memory_, bytes);
    }
    Sparse(const Sparse&) = delete;
    Sparse& operator=(const Sparse&) = delete;

    bool mapped() const { return memory_ != MAP_FAILED; }
    float* head(std::int64_t h) { return static_cast<float*>(memory_) + h * apart; }
    DLTensor* tensor() {
        tensor_.data = memory_;
        tensor_.device = {ATTEST_DL_CPU, 0};
        tensor_.ndim = 4;
        tensor_.dtype = {ATTEST_DL_FLOAT, 32, 1};
        tensor_.shape = shape_;
        tensor_.strides = strides_;
        return &tensor_;
    }

private:
    static constexpr std::size_t bytes = static_cast<std::size_t>(apart + row) * sizeof(float);
    void* memory_ = MAP_FAILED;
    std::int64_t shape_[4] = {1, 2, keys, dim}, strides_[4] = {2 * apart, apart, dim, 1};
    DLTensor tensor_{};
};

TEST(LargeIndex, HeadsTwoToTheThirtyFirstElementsApart) {
    for (const kernel::BuiltinKernel& kernel : cpu_kernels()) {
        TestCase dense = draw(problem_of(2, 2, keys, keys, dim), 3);
        dense.problem.want_lse = 0;
        const TestAnswer expected = run(*kernel.api, dense);

        Sparse q, k, v, o;
        if (!q.mapped() || !k.mapped() || !v.mapped() || !o.mapped()) {
            GTEST_SKIP() << "this system does not map 8 GiB of holes";
        }
        for (std::int64_t h = 0; h < 2; ++h) {
            for (std::int64_t n = 0; n < row; ++n) {
                const auto flat = static_cast<std::size_t>(h * row + n);
                q.head(h)[n] = static_cast<float>(dense.q[flat]);
                k.head(h)[n] = static_cast<float>(dense.k[flat]);
                v.head(h)[n] = static_cast<float>(dense.v[flat]);
            }
        }
        attest_call call{};
        call.struct_size = sizeof call;
        call.problem = &dense.problem;
        call.tensor[ATTEST_ROLE_Q] = q.tensor();
        call.tensor[ATTEST_ROLE_K] = k.tensor();
        call.tensor[ATTEST_ROLE_V] = v.tensor();
        call.tensor[ATTEST_ROLE_O] = o.tensor();
        std::vector<unsigned char> workspace(kernel.api->workspace(nullptr, &dense.problem));
        call.workspace = workspace.data();
        call.workspace_bytes = workspace.size();
        char error[128] = {};
        ASSERT_EQ(kernel.api->forward(nullptr, &call, error, sizeof error), 0) << error;
        for (std::int64_t h = 0; h < 2; ++h) {
            for (std::int64_t n = 0; n < row; ++n) {
                EXPECT_EQ(double{o.head(h)[n]}, expected.o[static_cast<std::size_t>(h * row + n)])
                    << kernel.id << ", head " << h;
            }
        }
    }
}

}  // namespace
}  // namespace attest::cpu
