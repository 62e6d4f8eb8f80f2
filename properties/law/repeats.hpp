#pragma once
// The same problem once more: in other memory, in another batch, in another layout; and problems at
// the edge of having a shape.

#include "properties/law/trial.hpp"
#include "properties/law/verdict.hpp"

namespace attest::law {

Verdict repeats_bits(const Trial& trial);             ///< three equal calls, equal bits
Verdict memory_does_not_show(const Trial& trial);     ///< two calls, flush right and flush left
Verdict schedule_does_not_show(const Trial& trial);   ///< five calls, every kind of schedule
Verdict runtime_reports_nothing(const Trial& trial);  ///< three calls that end well
Verdict outputs_are_numbers(const Trial& trial);      ///< where the reference has one
Verdict batch_does_not_show(const Trial& trial);      ///< alone, and in a larger batch: equal bits
Verdict layout_does_not_show(const Trial& trial);     ///< other axis orders, padding, alignment
Verdict degenerate_shapes_work(const Trial& trial);   ///< one key, one channel, empty axes

}  // namespace attest::law
