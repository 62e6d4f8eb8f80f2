// Planted bugs in packed documents.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/mutants/planted.hpp"

namespace attest::museum {

std::vector<PlantedBug> packed() {
    return {
        {{.id = "M030",
          .bug_class = "M11",
          .operation = "packed",
          .change = "a document's keys go as far as the longest document's",
          .trigger = "documents of different lengths",
          .must = {"reference.output", "masking.document"}},
         cpu::DecodeSteps{.segment =
                              [](cpu::Call& call, cpu::Segment& s, std::int64_t) {
                                  if ((call.problem.flags & ATTEST_FLAG_PACKED) == 0) return;
                                  std::int64_t longest = 0;
                                  for (std::int64_t n = 0; n < segment_count(call); ++n)
                                      longest = std::max(longest, segment_at(call, n).keys);
                                  s.keys = std::min(longest, call.problem.len_kv - s.key0);
                              }}},
        {{.id = "M031",
          .bug_class = "M11",
          .operation = "packed",
          .change = "all documents but the first are taken for one",
          .trigger = "three documents",
          .source = "https://github.com/Tencent-Hunyuan/HunyuanVideo/issues/310",
          .must = {"reference.output", "masking.document"}},
         cpu::DecodeSteps{.segment =
                              [](cpu::Call& call, cpu::Segment& s, std::int64_t) {
                                  if ((call.problem.flags & ATTEST_FLAG_PACKED) == 0) return;
                                  const std::int64_t first = segment_at(call, 0).keys;
                                  if (s.key0 < first) return;
                                  s.offset += s.key0 - first;
                                  s.key0 = first;
                                  s.keys = call.problem.len_kv - first;
                              }}},
    };
}

}  // namespace attest::museum
