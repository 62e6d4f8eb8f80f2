#pragma once
// For the tests of this folder: a kernel in this process with a defect planted by a predicate, and
// laws that need no reference. The kernel answers zeros; where the predicate holds it does what the
// defect says.

#include <functional>
#include <thread>

#include "properties/law/property.hpp"
#include "properties/search/subject.hpp"

namespace attest::testing {

enum class Defect : std::uint8_t { wrong, nan, error, crash, hang, write_outside, unwritten };

struct Plan {
    Manifest manifest;
    Defect defect = Defect::wrong;
    std::function<bool(const Problem&, const TensorSet&)> fails = {};
    std::function<bool(const Problem&)> refuses = {};
};

inline Manifest full_manifest() {
    Manifest manifest;
    manifest.name = "planted";
    manifest.version = "1";
    manifest.formats = {Precision::f32, Precision::f16, Precision::bf16};
    manifest.features_declared = true;
    manifest.features = FeatureSet::all();
    manifest.numerics.deterministic = true;
    return manifest;
}

class PlantedKernel final : public Subject {
public:
    explicit PlantedKernel(Plan plan) : plan_(std::move(plan)) {}

    const Manifest& manifest() const noexcept override { return plan_.manifest; }

    bool supports(const Problem& problem, std::string* reason) override {
        const bool no = plan_.refuses && plan_.refuses(problem);
        if (reason != nullptr) *reason = no ? "not today" : "";
        return !no;
    }

    CallResult forward(const Problem& problem, const TensorSet& inputs) override {
        CallResult result;
        result.seconds = 1.0 / 1024;
        Tensor o(type_of(problem, Role::o), *shape_of(problem, Role::o));
        const bool fails = plan_.fails && plan_.fails(problem, inputs);
        if (fails && plan_.defect == Defect::hang) {
            // What a worker's time limit does, without the waiting.
            result.outcome = Outcome::hang;
            result.reason = std::to_string(timeout_.count()) + " ms";
            return result;
        }
        if (fails) misbehave(o, result);
        if (result.outcome == Outcome::ok) {
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
    void misbehave(Tensor& o, CallResult& result) const {
        switch (plan_.defect) {
            case Defect::wrong:
                o.set(o.size() - 1, 1.0);
                break;
            case Defect::nan:
                o.set(o.size() - 1, std::numeric_limits<double>::quiet_NaN());
                break;
            case Defect::error:
                result.outcome = Outcome::error;
                result.reason = "no luck";
                break;
            case Defect::crash:
                result.outcome = Outcome::crash;
                result.fault.emplace();
                result.fault->signal = "SIGSEGV";
                result.fault->sentence = "read 4 bytes past the end of k";
                break;
            case Defect::write_outside:
                result.fault.emplace();
                result.fault->kind = Fault::Kind::write_outside;
                result.fault->sentence = "wrote 4 bytes past the end of o";
                break;
            case Defect::unwritten:
                result.outputs_unwritten = true;
                result.unwritten_index = o.size() - 1;
                break;
            case Defect::hang:
                break;
        }
    }

    Plan plan_;
    std::chrono::milliseconds timeout_{0};
};

/// Holds where every output is zero.
inline Verdict all_zero(const Trial& trial) {
    const Tensor& o = trial.observed()[Role::o];
    for (std::int64_t i = 0; i < o.size(); ++i)
        if (!(o.get(i) == 0)) {
            Violation violation;
            violation.problem = "an output is not zero";
            violation.index = {i};
            violation.observed = o.get(i);
            return violated(violation, o.size());
        }
    return holds(o.size());
}

inline Property zero_law(const std::string& id, CaseSpace cases = {}) {
    Property law;
    law.id = id;
    law.statement = law.statement_short = "The planted kernel answers zeros.";
    law.why = law.source = law.file = "a test";
    law.cases = std::move(cases);
    law.check = all_zero;
    return law;
}

}  // namespace attest::testing
