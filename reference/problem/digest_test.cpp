#include "reference/problem/digest.hpp"

#include <gtest/gtest.h>

namespace attest {
namespace {

TEST(Digest, is_that_of_the_published_test_vectors) {  // FIPS 180-4's examples
    EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256_hex("abc"),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace attest
