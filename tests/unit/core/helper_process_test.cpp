// Helpers that work for the library: what they answer, what ends them, and what they get of this process.
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/error.h>
#include <tessera/parallel.h>

#include "helper_process.h"
#include "temporary_folder.h"
#include "wire.h"

namespace tessera {
namespace {

using testing::HasSubstr;

/// Asks a helper to sleep; returns its number.
int sleep_in_helper(int milliseconds) {
    const Buffer request = wired(milliseconds);
    const Buffer answer = ask_helper({.task = ForeignTask::test_sleep, .request = request});
    return WireReader(answer).next<int>();
}

std::string message_of(const std::function<void()>& body) {
    try {
        body();
    } catch (const Error& e) {
        return e.what();
    }
    return "nothing was thrown";
}

TEST(HelperProcess, OneThatEndsIsAnErrorAndTheNextRequestGetsAnother) {
    const Buffer code = wired(7);
    EXPECT_EQ(message_of([&] { (void)ask_helper({.task = ForeignTask::test_end, .request = code}); }),
              "libhdf5 ended its process (exit code 7): the file is damaged");
    EXPECT_GT(sleep_in_helper(0), 0);
}

TEST(HelperProcess, OneThatIsKilledWhileItWorksIsAnErrorAndSoIsOneThatIsKilledBefore) {
    const int helper = sleep_in_helper(0);
    std::thread killer([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        ::kill(helper, SIGKILL);
    });
    EXPECT_THAT(message_of([&] { (void)sleep_in_helper(60'000); }), HasSubstr("was ended by signal 9"));
    killer.join();
    const int next = sleep_in_helper(0);
    EXPECT_NE(next, helper);
    ::kill(next, SIGKILL);
    siginfo_t gone{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(next), &gone, WEXITED | WNOWAIT), 0);
    const int last = sleep_in_helper(0);  // an idle one that is gone is no error
    EXPECT_NE(last, next);
}

TEST(HelperProcess, ASessionKeepsItsHelperAndFailsForGoodWhenThatHasEnded) {
    HelperSession session;
    const Buffer now = wired(0);
    const HelperWish wish{.task = ForeignTask::test_sleep, .request = now};
    const int first = WireReader(session.ask(wish)).next<int>();
    EXPECT_EQ(WireReader(session.ask(wish)).next<int>(), first);
    ::kill(first, SIGKILL);
    EXPECT_THAT(message_of([&] { (void)session.ask(wish); }), HasSubstr("was ended by signal 9"));
    EXPECT_THAT(message_of([&] { (void)session.ask(wish); }), HasSubstr("has ended"));
}

TEST(HelperProcess, AStopEndsTheHelper) {
    std::stop_source stop;
    std::thread stopper([&] { stop.request_stop(); });
    const StopScope scope(stop.get_token());
    try {
        (void)sleep_in_helper(60'000);
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::cancelled);
    }
    stopper.join();
}

TEST(HelperProcess, WhatIsNoHelperIsNamed) {
    const auto tried = [](const char* path) {
        ::setenv("TESSERA_HELPERS", path, 1);
        HelperSession session;
        const Buffer now = wired(0);
        const std::string said = message_of([&] {
            (void)session.ask({.task = ForeignTask::test_sleep, .library = ForeignLibrary::tiff, .request = now});
        });
        ::unsetenv("TESSERA_HELPERS");
        return said;
    };
    const TemporaryFolder folder;
    const auto place = [&](const char* name) { return (folder.path() / name).string(); };
    EXPECT_THAT(tried("/no/such"), HasSubstr("tried /no/such/tessera-tiff (No such file or directory)"));
    std::filesystem::create_directories(folder.path() / "a");
    std::filesystem::create_directories(folder.path() / "b");
    std::ofstream(place("a/tessera-tiff")) << "#!/bin/sh\n";
    EXPECT_THAT(tried(place("a").c_str()), HasSubstr("tried " + place("a/tessera-tiff") + " (Permission denied)"));
    std::filesystem::copy_file("/bin/true", place("b/tessera-tiff"));
    EXPECT_THAT(tried(place("b").c_str()), HasSubstr(place("b/tessera-tiff") + ", which ended before it was asked"));
}

// A helper may have been taken over by a file: whatever it says is checked.
TEST(HelperProcess, AnAnswerThatIsCutShortIsAnErrorAtEveryByte) {
    const ForeignArray array{.version = "1:2 3",
                             .name = "x.h5::a",
                             .info = {.dtype = DType("<f4"), .shape = {3, 4}, .chunks = {1, 2}},
                             .attributes = Value{{"units", "m"}},
                             .offset = 7,
                             .absent = std::vector<std::byte>(4)};
    PackedArray packed;
    packed.name = "a";
    packed.dtype = DType("<i2");
    packed.shape = packed.chunks = {5};
    packed.stored = {{0, 10, 20}};
    const Buffer whole = wired(array, std::vector<std::string>{"a", "b"}, packed);
    const auto read = [](ByteSpan bytes) {
        WireReader in(bytes);
        auto first = in.next<ForeignArray>();
        (void)in.next<std::vector<std::string>>();
        const auto last = in.next<PackedArray>();
        EXPECT_EQ(last.stored.front().size, 20U);
        return first;
    };
    const ForeignArray again = read(whole);
    EXPECT_EQ(again.name, array.name);
    EXPECT_EQ(again.info.chunks, array.info.chunks);
    EXPECT_EQ(again.attributes, array.attributes);
    EXPECT_EQ(again.absent, array.absent);
    for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_THROW((void)read(whole.span().first(size)), Error);
    for (std::size_t at = 0; at + 8 <= whole.size(); ++at) {
        Buffer changed(whole.span());
        std::fill_n(changed.data() + at, 8, std::byte{0xff});
        try {
            WireReader in(changed);
            (void)in.next<ForeignArray>();
            (void)in.next<std::vector<std::string>>();
            (void)in.next<PackedArray>();
        } catch (const Error&) {
            continue;  // or it is another value
        }
    }
}

TEST(HelperProcess, ForksBesideThreadsThatAskHaveHelpersOfTheirOwn) {
    std::atomic<bool> ends = false;
    std::vector<std::thread> askers;
    for (int i = 0; i < 2; ++i) {
        askers.emplace_back([&] {
            while (!ends) (void)sleep_in_helper(0);
        });
    }
    const int ours = sleep_in_helper(0);
    for (int i = 0; i < 10; ++i) {
        const pid_t child = ::fork();
        if (child == 0) ::_exit(sleep_in_helper(0) != ours ? 0 : 1);
        int status = -1;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    ends = true;
    for (std::thread& asker : askers) asker.join();
}

}  // namespace
}  // namespace tessera
