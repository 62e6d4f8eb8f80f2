#pragma once
// The layouts that a problem has.

#include <array>
#include <iterator>

#include "reference/problem/problem.hpp"

namespace attest::diagnosis {

inline constexpr Layout Problem::*layout_fields[] = {&Problem::layout_q, &Problem::layout_k,
                                                     &Problem::layout_v, &Problem::layout_o};
using Layouts = std::array<Layout, std::size(layout_fields)>;

}  // namespace attest::diagnosis
