// The program is killed, and its system calls fail, while it seals, seals again, restores from parity and changes what
// is sealed: there is the old seal or the new one, files are as they were or as sealed, and no change goes without the
// mark of a broken seal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/seal.h>
#include <tessera/verify.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "check.h"
#include "child.h"

namespace tessera::faults {
namespace {

namespace fs = std::filesystem;
using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;
using testing::HasSubstr;

enum class Before : std::uint8_t { unsealed, sealed, edited, damaged };

struct Sealing {
    std::string name;
    Before before = Before::unsealed;
    std::vector<std::string> words;  ///< "ARRAY" stands for the path
};

void PrintTo(const Sealing& sealing, std::ostream* out) {
    *out << sealing.name;
}

std::vector<Sealing> sealings() {
    return {{"seal", Before::unsealed, {"seal", "ARRAY", "--parity", "20%"}},
            {"seal_again", Before::edited, {"seal", "ARRAY"}},
            {"drop", Before::sealed, {"seal", "ARRAY", "--parity", "0"}},
            {"repair", Before::damaged, {"repair", "ARRAY"}},
            {"change", Before::sealed, {"set", "ARRAY", "0:9, 0:9", "5", "--break-seal", "--durability", "none"}}};
}

class Seals : public testing::TestWithParam<Sealing> {
protected:
    Seals() {
        const fs::path first = folder_ / "first";
        create_first(first, "v2");
        if (GetParam().before != Before::unsealed) {
            run_words({"seal", first, "--parity", "20%"});
            sealed_ = files_of(first);
        }
        if (GetParam().before == Before::edited) run_words({"set", first, "3, 3", "5", "--break-seal"});
        if (GetParam().before == Before::damaged) {
            fs::remove(first / "0.0");
            const auto time = fs::last_write_time(first / "1.1");
            std::string bytes = text_of(first / "1.1");
            for (std::size_t i = 20; i < 40; ++i) bytes[i] = static_cast<char>(bytes[i] ^ 0x55);
            std::ofstream(first / "1.1", std::ios::binary) << bytes;
            fs::last_write_time(first / "1.1", time);
        }
        before_ = files_of(first);
    }

    [[nodiscard]] fs::path array() const { return folder_.data() / "array"; }
    void run_words(std::vector<std::string> words) const {
        words.insert(words.begin(), program());
        words.insert(words.end(), {"--threads", "1", "--quiet"});
        const Ended ended = run(folder_, words, Fault{});
        ASSERT_EQ(ended.code, 0) << ended.to_string();
    }
    [[nodiscard]] Ended run_command(const Fault& fault) const {
        std::vector<std::string> words{program()};
        for (const std::string& word : GetParam().words) words.push_back(word == "ARRAY" ? array().string() : word);
        words.insert(words.end(), {"--threads", "1"});
        return run(folder_, words, fault);
    }
    [[nodiscard]] Ended run_afresh(const Fault& fault) {
        folder_.start_afresh(array());
        // By their times damage is told from edits.
        const fs::path first = folder_ / "first";
        for (const auto& entry : fs::recursive_directory_iterator(first)) {
            if (!entry.is_regular_file()) continue;
            fs::last_write_time(array() / entry.path().lexically_relative(first), entry.last_write_time());
        }
        return run_command(fault);
    }

    /// Of what a run left that may have been stopped.
    [[nodiscard]] AssertionResult old_or_complete() const {
        const auto store = directory_store(array(), {.read_only = true});
        const auto files = files_of(array());
        const SealState state = seal_state(*store);
        switch (GetParam().before) {
            case Before::unsealed:
                if (files != before_) return AssertionFailure() << "a sealed file changed";
                if (state.present && !state.intact()) return AssertionFailure() << "half a seal";
                return AssertionSuccess();
            case Before::edited:
                if (files != before_) return AssertionFailure() << "a sealed file changed";
                if (!state.present || !state.missing.empty() || !state.added.empty() || state.changed.size() > 1) {
                    return AssertionFailure() << "neither the old seal nor the new one";
                }
                if (const auto promise = parity_promise(*store); !promise || promise->blocks < 1) {
                    return AssertionFailure() << "a seal without its parity";
                }
                return AssertionSuccess();
            case Before::damaged:
                for (const auto& [name, bytes] : sealed_) {
                    const auto now = files.find(name);
                    const auto then = before_.find(name);
                    const bool as_before = now == files.end() ? then == before_.end()
                                                              : then != before_.end() && now->second == then->second;
                    if (!as_before && (now == files.end() || now->second != bytes)) {
                        return AssertionFailure() << name << ": neither damaged nor as sealed";
                    }
                }
                return AssertionSuccess();
            case Before::sealed:
                if (!state.present) return AssertionFailure() << "the seal is gone";
                if (!state.intact() && !fs::exists(array() / ".tessera/seal-broken")) {
                    return AssertionFailure() << "changed, and the seal is not marked as broken";
                }
                return AssertionSuccess();
        }
        return AssertionFailure();
    }

    /// Of an undisturbed run.
    [[nodiscard]] AssertionResult complete() const {
        const auto store = directory_store(array(), {.read_only = true});
        const SealState state = seal_state(*store);
        const auto promise = parity_promise(*store);
        if (GetParam().name == "change") {
            if (state.changed.empty()) return AssertionFailure() << "nothing was changed";
            return AssertionSuccess();
        }
        if (!state.intact()) return AssertionFailure() << "not as sealed";
        if (GetParam().name == "drop") {
            if (promise) return AssertionFailure() << "the parity is still there";
            return AssertionSuccess();
        }
        if (!promise || promise->blocks < 2) return AssertionFailure() << "the parity is not whole";
        if (fs::exists(array() / ".tessera/seal-broken")) return AssertionFailure() << "still marked as broken";
        return AssertionSuccess();
    }

    [[nodiscard]] AssertionResult complete_afterwards() const {
        if (auto result = old_or_complete(); !result) return result;
        const Ended again = run_command(Fault{});
        if (again.code != 0) return AssertionFailure() << "again: " << again.to_string();
        return complete();
    }

    Folder folder_;
    std::map<std::string, std::string> sealed_, before_;
};

TEST_P(Seals, killed_at_every_system_call) {
    for (const char* action : {"kill", "tear"}) {
        for (long n = 1; !HasFailure(); n += stride()) {
            const Ended ended =
                run_afresh(Fault{.calls = action == std::string("tear") ? "write" : "", .at = n, .action = action});
            if (ended.fired.empty()) {
                EXPECT_EQ(ended.code, 0) << ended.to_string();
                EXPECT_TRUE(complete()) << ended.to_string();
                break;
            }
            ASSERT_EQ(ended.signal, SIGKILL) << ended.to_string();
            EXPECT_TRUE(complete_afterwards()) << ended.to_string();
        }
    }
}

TEST_P(Seals, each_call_fails_once) {
    const std::vector<std::pair<const char*, int>> failures{{"open", EMFILE}, {"read", EIO},    {"write", ENOSPC},
                                                            {"sync", EIO},    {"close", EIO},   {"rename", ENOSPC},
                                                            {"unlink", EIO},  {"mkdir", ENOSPC}};
    for (const auto& [calls, error] : failures) {
        for (long n = 1; !HasFailure(); n += stride()) {
            const Ended ended = run_afresh(Fault{.calls = calls, .at = n, .action = std::to_string(error)});
            if (ended.fired.empty()) break;
            if (ended.code == 0 && GetParam().before != Before::damaged) {
                EXPECT_TRUE(complete()) << ended.to_string();
            } else if (ended.code != 0) {
                EXPECT_THAT(ended.error + ended.out, HasSubstr(folder_.data().string())) << ended.to_string();
            }
            EXPECT_TRUE(complete_afterwards()) << ended.to_string();
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Steps, Seals, testing::ValuesIn(sealings()),
                         [](const auto& sealing) { return sealing.param.name; });

}  // namespace
}  // namespace tessera::faults
