#pragma once
// The name CUDA sources know. Of the driver's interface nothing is simulated: who includes it for
// the runtime's finds that.
#include "kernels/simt/simt.hpp"
