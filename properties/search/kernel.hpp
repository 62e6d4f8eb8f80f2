#pragma once
// What is being judged, as the search sees it: something that has a manifest, answers supports()
// and runs one call. Behind it stands a worker process (session_kernel.hpp), or in tests a
// function.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/interface/manifest.hpp"
#include "kernels/worker/session.hpp"
#include "properties/law/property.hpp"
#include "reference/problem/case.hpp"

namespace attest::search {

/// A worker lays tensors flush right in one call and flush left in the next, so that a read past an
/// end crashes in one and reads poison in the other. Cases with odd numbers begin with the second
/// way.
enum class PlacementOrder : std::uint8_t { even, odd };

/// A law that is asked of a case.
struct Judging {
    const law::Property* law = nullptr;
    Case tried;
    PlacementOrder placement = PlacementOrder::even;
};

/// What one process has judged, in order.
using Past = std::vector<std::shared_ptr<const Judging>>;

class Kernel {
public:
    virtual ~Kernel() = default;

    virtual const kernel::Manifest& manifest() const noexcept = 0;

    /// The kernel's own answer; the reason is empty where it says yes.
    virtual bool supports(const Problem& problem, std::string* reason) = 0;

    /// One call; never throws for what the kernel does.
    virtual worker::CallResult forward(const Problem& problem, const TensorSet& inputs) = 0;

    /// The same while another thread calls the kernel (Session::forward_beside).
    virtual worker::CallResult forward_beside(const Problem& problem, const TensorSet& inputs) {
        return forward(problem, inputs);
    }

    /// One backward call (Session::backward), of a kernel whose manifest lists gradients.
    virtual worker::CallResult backward(const Problem& /*problem*/, const TensorSet& /*inputs*/,
                                        const std::vector<Role>& /*wanted*/) {
        worker::CallResult result;
        result.outcome = worker::Outcome::refused;
        result.reason = "the kernel has no such operation";
        return result;
    }

    /// The next call is number `first` of a case. Where tensors lie depends on that number alone,
    /// so that what a case shows does not depend on what ran before it.
    virtual void begin_case(std::uint64_t /*first*/) noexcept {}

    /// Forgets everything earlier calls may have left behind: a fresh process.
    virtual void restart() = 0;
    virtual void set_timeout(std::chrono::milliseconds timeout) noexcept = 0;
    /// With the next set_timeout(): what shows no sign of life for so long is ended earlier; 0:
    /// not.
    virtual void set_silence(std::chrono::milliseconds /*silence*/) noexcept {}
    /// Of the processes started from now on.
    virtual void use_processors(worker::Processors /*which*/) noexcept {}

    /// A case begins; and what this process judged before it, as far as it is remembered.
    virtual void judging(const Judging& /*judging*/) {}
    virtual Past past() const { return {}; }
};

/// A case that somebody wrote down, for a kernel of these features: a log-sum-exp is asked for
/// where there is one.
inline Case asked_of(FeatureSet features, Case tried) {
    tried.problem.want_lse = tried.problem.want_lse && features.has(Feature::lse);
    return tried;
}

/// Makes one more of the same kernel; each thread of a campaign owns its own.
using KernelFactory = std::function<std::unique_ptr<Kernel>()>;

}  // namespace attest::search
