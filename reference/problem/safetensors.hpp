#pragma once
// The safetensors format in memory: eight bytes of header length, a JSON header, the tensors' bytes
// without gap or overlap.

#include <map>
#include <string>
#include <string_view>

#include "reference/problem/tensor.hpp"

namespace attest {

/// Strict: BadInput names `source` and the place. Shapes of fewer than four axes get trailing ones.
std::map<std::string, Tensor> parse_safetensors(std::string_view bytes, std::string_view source);
std::string safetensors_bytes(const std::map<std::string, Tensor>& tensors);

}  // namespace attest
