#pragma once
// The same problem once more: in other memory, in another batch, in another layout; and problems at
// the edge of having a shape.

#include "properties/law/trial.hpp"
#include "properties/law/verdict.hpp"

namespace attest::law {

Judgement repeats_bits(const Trial& trial);             ///< three equal calls, equal bits
Judgement memory_does_not_show(const Trial& trial);     ///< two calls, flush right and flush left
Judgement schedule_does_not_show(const Trial& trial);   ///< five calls, every kind of schedule
Judgement runtime_reports_nothing(const Trial& trial);  ///< three calls that end well
Judgement outputs_are_numbers(const Trial& trial);      ///< where the reference has one
Plan batch_does_not_show(const Given& given);     ///< alone, and in a larger batch: equal bits
Plan layout_does_not_show(const Given& given);    ///< other axis orders, padding, alignment
Plan degenerate_shapes_work(const Given& given);  ///< one key, one channel, empty axes

}  // namespace attest::law
