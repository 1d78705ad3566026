// Children that read for the library: what they answer, and what ends them.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <new>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <tessera/error.h>
#include <tessera/in_process.h>

#include "reader_process.h"

namespace tessera {
namespace {

std::mutex held_at_fork;
std::atomic<int>* begun = nullptr;  // in memory that the children share

void lock_and_answer(ReaderCall& call) {
    ++*begun;
    const std::lock_guard lock(held_at_fork);
    call.answer = Buffer(3);
}

void crash(ReaderCall& /*call*/) {
    ::_exit(7);
}

// A child has the locks that other threads held when it began, and nobody in it frees them.
TEST(ReaderProcess, AChildThatInheritedALockIsReplaced) {
    if (reads_in_process()) GTEST_SKIP() << "a sanitizer's allocator does not survive a fork beside other threads";
    if (::access("/proc/self/syscall", R_OK) != 0) GTEST_SKIP() << "the system does not say what a process waits for";
    void* const shared = ::mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    begun = new (shared) std::atomic<int>(0);
    std::atomic<bool> holds = false;
    std::thread holder([&] {
        const std::lock_guard lock(held_at_fork);
        holds = true;
        while (begun->load() == 0) std::this_thread::yield();
    });
    while (!holds) std::this_thread::yield();
    const Buffer answer = read_apart({.library = "a library", .function = lock_and_answer, .request = {}});
    holder.join();
    EXPECT_EQ(answer.size(), 3U);
    EXPECT_EQ(begun->load(), 2);
    ::munmap(shared, sizeof(int));
}

TEST(ReaderProcess, AChildThatEndsIsAnErrorAndTheNextRequestGetsAnother) {
    if (reads_in_process()) GTEST_SKIP() << "a sanitizer's allocator does not survive a fork beside other threads";
    try {
        (void)read_apart({.library = "a library", .function = crash, .request = {}});
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(std::string(e.what()), "a library ended its process (exit code 7): the file is damaged");
    }
    const Buffer answer = read_apart(
        {.library = "a library", .function = [](ReaderCall& call) { call.answer = Buffer(1); }, .request = {}});
    EXPECT_EQ(answer.size(), 1U);
}

}  // namespace
}  // namespace tessera
