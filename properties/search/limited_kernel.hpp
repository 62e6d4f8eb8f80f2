#pragma once
// A kernel under the campaign's time limit, which remembers what its process has judged so far. A
// call that does not return is held against it only where its arithmetic does not explain that.

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "kernels/interface/kernel_spec.hpp"
#include "properties/search/few_shapes.hpp"
#include "properties/search/kernel.hpp"
#include "properties/search/time_limit.hpp"

namespace attest::search {

/// A call of a compiled kernel that takes three times its limit will not end; Python and other
/// programs compile, import, and start servers in their calls.
int patience_of(const kernel::KernelSpec& kernel) noexcept;

class LimitedKernel final : public Kernel {
public:
    LimitedKernel(std::unique_ptr<Kernel> kernel, TimeLimit& limit)
        : kernel_(std::move(kernel)), limit_(limit) {}

    const kernel::Manifest& manifest() const noexcept override { return kernel_->manifest(); }
    bool supports(const Problem& problem, std::string* reason) override;
    worker::CallResult forward(const Problem& problem, const TensorSet& inputs) override;
    worker::CallResult forward_beside(const Problem& problem, const TensorSet& inputs) override;
    worker::CallResult backward(const Problem& problem, const TensorSet& inputs,
                                const std::vector<Role>& wanted) override;
    void begin_case(std::uint64_t first) noexcept override { kernel_->begin_case(first); }
    void restart() override;
    /// A limit of its own for the calls to come; zero: the campaign's again.
    void set_timeout(std::chrono::milliseconds timeout) noexcept override { own_ = timeout; }
    void use_processors(worker::Processors which) noexcept override {
        kernel_->use_processors(which);
    }
    void judging(const Judging& judging) override;
    Past past() const override;
    /// From now on nothing but these.
    void keep_to(std::shared_ptr<const FewShapes> shapes) { shapes_ = std::move(shapes); }

private:
    void is_fresh();
    /// A call of so many products.
    worker::CallResult timed(const Problem& problem, double products,
                             const std::function<worker::CallResult()>& call);

    std::unique_ptr<Kernel> kernel_;
    TimeLimit& limit_;
    std::shared_ptr<const FewShapes> shapes_;
    std::chrono::milliseconds own_{0};
    bool fresh_ = true;  ///< the process has made no call yet
    std::deque<std::shared_ptr<const Judging>> judged_;
};

}  // namespace attest::search
