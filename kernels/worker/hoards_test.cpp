// Memory that a kernel holds counts wherever it lies.

#include <gtest/gtest.h>

#include "kernels/worker/trouble_test.hpp"

namespace attest::worker {
namespace {

class Hoards : public TroubleTest {
protected:
    Hoards() : TroubleTest("libhoards.so") {}
};

TEST_F(Hoards, WhatIsAllocatedCounts) {
    open("allocate_without_end");
    EXPECT_EQ(sentence(call()), "ran out of memory: 256 MiB are allowed");
}

TEST_F(Hoards, WhatChildrenHoldCounts) {
    open("let_children_hold_memory");
    if (!session_->barriers().has(Barrier::processes)) GTEST_SKIP() << "nobody gathers them";
    EXPECT_EQ(sentence(call()), "ran out of memory: 256 MiB are allowed");
}

TEST_F(Hoards, WhatChildrenShareCountsOnce) {
    open("share_memory_with_children");
    for (int i = 0; i < 20; ++i) expect_ok(call());
}

TEST_F(Hoards, FilesInMemoryCount) {
    open("fill_a_file_in_memory");
    EXPECT_EQ(sentence(call()), "ran out of memory: 256 MiB are allowed");
    if (!session_->barriers().has(Barrier::processes) || !std::filesystem::is_empty("/dev/shm"))
        GTEST_SKIP() << "/dev/shm is not the kernel's own";
    open("fill_the_folder_of_shared_memory");
    EXPECT_EQ(sentence(call()), "ran out of memory: 256 MiB are allowed");
}

TEST_F(Hoards, NothingThatLastsIsLeftBehind) {
    open("leave_things_behind");
    if (!session_->barriers().has(Barrier::system_calls)) GTEST_SKIP() << "it has no seccomp";
    expect_ok(call(), 0);
    open("use_what_libraries_use");
    expect_ok(call(), 3);
    options_.confinement.confined = false;
    open("leave_things_behind");
    EXPECT_EQ(static_cast<int>(call().outputs[Role::o].to_doubles()[0]) & 7, 7)
        << "it is no attack";
}

}  // namespace
}  // namespace attest::worker
