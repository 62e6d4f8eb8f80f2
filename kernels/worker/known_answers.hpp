#pragma once
// What a kernel answered to supports(): laws go back and forth between a problem and its
// variations.

#include <cstring>
#include <vector>

#include "kernels/worker/worker_link.hpp"

namespace attest::worker {

class KnownAnswers {
public:
    void clear() noexcept {
        answers_.clear();
        next_ = 0;
    }

    void keep(const SupportQuestion& question, const WorkerLink::SupportAnswer& answer) {
        if (answers_.size() < most)
            answers_.push_back({question, answer});
        else
            answers_[next_++ % most] = {question, answer};
    }

    /// Null where it was not asked, or so long ago that it is forgotten.
    WorkerLink::SupportAnswer* find(const SupportQuestion& question) {
        for (Known& known : answers_)
            if (known.question.features == question.features &&
                std::memcmp(&known.question.problem, &question.problem, sizeof question.problem) ==
                    0)
                return &known.answer;
        return nullptr;
    }

private:
    static constexpr std::size_t most = 16;
    struct Known {
        SupportQuestion question;
        WorkerLink::SupportAnswer answer;
    };
    std::vector<Known> answers_;
    std::size_t next_ = 0;
};

}  // namespace attest::worker
