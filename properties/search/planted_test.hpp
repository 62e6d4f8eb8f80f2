#pragma once
// For the tests of this folder: a kernel in this process with a defect planted by a predicate, and
// laws that need no reference. The kernel answers zeros; where the predicate holds it does what the
// defect says.

#include <functional>
#include <thread>

#include "properties/law/property.hpp"
#include "properties/search/kernel.hpp"

namespace attest::search {

enum class PlantedDefect : std::uint8_t {
    wrong,
    nan,
    error,
    crash,
    hang,
    no_memory,
    write_outside,
    unwritten
};

struct KernelPlan {
    kernel::Manifest manifest;
    PlantedDefect defect = PlantedDefect::wrong;
    std::function<bool(const Problem&, const TensorSet&)> fails = {};
    std::function<bool(const Problem&)> refuses = {};
};

inline kernel::Manifest full_manifest() {
    kernel::Manifest manifest;
    manifest.name = std::string("planted");
    manifest.version = std::string("1");
    manifest.formats = {Precision::f32, Precision::f16, Precision::bf16};
    manifest.features = FeatureSet::all();
    manifest.numerics.deterministic = true;
    return manifest;
}

class PlantedKernel final : public Kernel {
public:
    explicit PlantedKernel(KernelPlan plan) : plan_(std::move(plan)) {}

    const kernel::Manifest& manifest() const noexcept override { return plan_.manifest; }

    bool supports(const Problem& problem, std::string* reason) override {
        const bool no = plan_.refuses && plan_.refuses(problem);
        if (reason != nullptr) *reason = no ? "not today" : "";
        return !no;
    }

    worker::CallResult forward(const Problem& problem, const TensorSet& inputs) override {
        worker::CallResult result;
        result.seconds = 1.0 / 1024;
        Tensor o(type_of(problem, Role::o), *shape_of(problem, Role::o));
        const bool fails = plan_.fails && plan_.fails(problem, inputs);
        if (fails && plan_.defect == PlantedDefect::hang) {
            // What a worker's time limit does, without the waiting.
            result.outcome = worker::Outcome::hang;
            result.reason = std::to_string(timeout_.count()) + " ms";
            return result;
        }
        if (fails) misbehave(o, result);
        if (result.outcome == worker::Outcome::ok) {
            result.outputs.put(Role::o, std::move(o));
            if (problem.want_lse)
                result.outputs.put(
                    Role::lse, Tensor(type_of(problem, Role::lse), *shape_of(problem, Role::lse)));
        }
        return result;
    }

    void restart() override {}
    void set_timeout(std::chrono::milliseconds timeout) noexcept override { timeout_ = timeout; }

private:
    void misbehave(Tensor& o, worker::CallResult& result) const {
        switch (plan_.defect) {
            case PlantedDefect::wrong:
                o.set(o.size() - 1, 1.0);
                break;
            case PlantedDefect::nan:
                o.set(o.size() - 1, std::numeric_limits<double>::quiet_NaN());
                break;
            case PlantedDefect::error:
                result.outcome = worker::Outcome::error;
                result.reason = "no luck";
                break;
            case PlantedDefect::crash:
                result.outcome = worker::Outcome::crash;
                result.fault.emplace();
                result.fault->signal = "SIGSEGV";
                result.fault->sentence = "read 4 bytes past the end of k";
                break;
            case PlantedDefect::no_memory:
                result.outcome = worker::Outcome::no_memory;
                result.fault.emplace();
                result.fault->signal = "SIGKILL";
                break;
            case PlantedDefect::write_outside:
                result.fault.emplace();
                result.fault->kind = worker::Fault::Kind::write_outside;
                result.fault->sentence = "wrote 4 bytes past the end of o";
                break;
            case PlantedDefect::unwritten:
                result.outputs_unwritten = true;
                result.unwritten_index = o.size() - 1;
                break;
            case PlantedDefect::hang:
                break;
        }
    }

    KernelPlan plan_;
    std::chrono::milliseconds timeout_{0};
};

/// Holds where every output is zero.
inline law::Judgement all_zero(const law::Trial& trial) {
    const Tensor& o = trial.observed()[Role::o];
    for (std::int64_t i = 0; i < o.size(); ++i)
        if (!(o.get(i) == 0)) {
            law::Violation violation;
            violation.problem = "an output is not zero";
            violation.index = {i};
            violation.observed = o.get(i);
            return law::violated(violation, o.size());
        }
    return law::holds(o.size());
}

inline law::Property zero_law(const std::string& id, law::CaseSpace cases = {}) {
    law::Property law;
    law.id = id;
    law.statement = law.statement_short = "The planted kernel answers zeros.";
    law.why = law.source = law.file = "a test";
    law.cases = std::move(cases);
    law.check = law::always<all_zero>;
    return law;
}

}  // namespace attest::search
