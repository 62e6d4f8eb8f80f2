#pragma once
// Planted deviations: ways for a kernel to be wrong. Every law names one or more that must turn it
// red, or it is not well declared; properties/planted_test.cpp plants each in a kernel that
// otherwise answers with the truth. A deviation is made of what laws are made of, so that a new law
// and a deviation that no other law needs stand in one file.

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "reference/bound/expected.hpp"
#include "reference/problem/dialect.hpp"
#include "reference/problem/problem.hpp"
#include "reference/problem/tensor.hpp"

namespace attest::law {

/// What a kernel is asked, as it understands it.
struct Question {
    Problem problem;
    Dialect dialect;
    TensorSet inputs;
};

struct PlantedDeviation {
    std::string id;  ///< what is wrong, snake_case
    /// Answers another question than it was asked.
    std::function<void(Question& asked)> asks{};
    /// The same, by the questions that its process answered before, oldest first.
    std::function<void(Question& asked, std::span<const Question> before)> remembers{};
    /// As asks, in a call beside which another thread makes one.
    std::function<void(Question& asked)> is_disturbed{};
    /// Gives another number than the right one; `call` counts the calls of its process from 0.
    std::function<double(const bound::ExpectedElement& right, std::int64_t call)> answers{};
    /// Gives other gradients than those of what it was asked; `truth` differentiates a question.
    using Truth = std::function<TensorSet(const Question&)>;
    std::function<TensorSet(const Question& asked, std::int64_t call, const Truth& truth)>
        differentiates{};
    /// Every call fails with this text.
    std::string fails{};
    /// Declares arithmetic that it does not do.
    std::function<void(Numerics&)> declares{};

    bool does_something() const noexcept {
        return asks || remembers || is_disturbed || answers || differentiates || !fails.empty() ||
               declares;
    }
};

/// Deviations that several laws name, or that would not fit beside the one that does.
namespace planted {

inline void each(Tensor& tensor, const std::function<double(double)>& change) {
    for (std::int64_t at = 0; at < tensor.size(); ++at) tensor.set(at, change(tensor.get(at)));
}

/// "answers_times_1_02": a factor as part of an id.
std::string with_number(const char* id, double number);

// Of the numbers an answer is made of.
PlantedDeviation answers_times(double factor);
PlantedDeviation answers_not_a_number();
PlantedDeviation answers_by_the_call();  ///< odd calls differ, as of a race or a stray read

// Of keys and values.
PlantedDeviation last_key_scores_zero();  ///< what a tail read as padding does
PlantedDeviation last_key_forgotten();    ///< its value is taken for zero
PlantedDeviation last_query_forgotten();
PlantedDeviation newest_key_not_cached();    ///< over a cache, the last key's value is zero
PlantedDeviation pages_in_physical_order();  ///< of a block table, whatever order it says
PlantedDeviation keys_of_an_earlier_call();  ///< no more keys than an earlier call of its heads had
PlantedDeviation first_sequence_doubled();   ///< of several: its values
PlantedDeviation values_of_next_sequence();
PlantedDeviation one_query_head_for_all();
PlantedDeviation heads_by_modulo();  ///< query head h reads key/value head h mod Hkv
PlantedDeviation padded_rows_negated();
PlantedDeviation one_key_counts_twice();
PlantedDeviation nan_read_as_zero();

// Of scores.
PlantedDeviation scores_capped(double softcap);
PlantedDeviation scores_negated();
PlantedDeviation scale_times(double factor);
PlantedDeviation scale_is(double scale);
PlantedDeviation soft_cap_ignored();

// Of masks.
PlantedDeviation causal_mask_ignored();
PlantedDeviation every_mask_ignored();  ///< all but the query lengths
PlantedDeviation window_one_wider();
PlantedDeviation documents_ignored();
PlantedDeviation query_lengths_ignored();
PlantedDeviation shared_masks_ignored();
PlantedDeviation other_alignment();
PlantedDeviation empty_rows_are_nan();

}  // namespace planted

}  // namespace attest::law
