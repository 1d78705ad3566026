// Each call does what it says, or says by its errno that it is not there: the same test passes with the calls of Linux
// and with those of POSIX alone (preset posix).
#include <tessera/system_calls.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class SystemCalls : public testing::Test {
protected:
    static void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }
    static std::string text_of(const fs::path& path) {
        std::ifstream file(path);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    TemporaryFolder folder_;
    fs::path a_ = folder_.path() / "a", b_ = folder_.path() / "b";
};

TEST_F(SystemCalls, ExchangeBothNamesOrNone) {
    write(a_, "one");
    write(b_, "two");
    const bool done = os::exchange(a_.c_str(), b_.c_str());
    if (!done) {
        EXPECT_TRUE(errno == ENOSYS || errno == EINVAL) << errno;
    }
    EXPECT_EQ(text_of(a_), done ? "two" : "one");
    EXPECT_EQ(text_of(b_), done ? "one" : "two");
}

TEST_F(SystemCalls, RenameReplacesNothing) {
    write(a_, "one");
    write(b_, "two");
    EXPECT_FALSE(os::rename_new(AT_FDCWD, a_.c_str(), AT_FDCWD, b_.c_str()));
    EXPECT_TRUE(errno == EEXIST || errno == ENOSYS || errno == EINVAL) << errno;
    EXPECT_EQ(text_of(a_) + text_of(b_), "onetwo");
}

TEST_F(SystemCalls, AFileWithoutANameLeavesNone) {
    const int file = os::open_unnamed(AT_FDCWD, folder_.path().c_str(), O_RDWR, 0600);
    if (file < 0) {
        EXPECT_TRUE(errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL) << errno;
    }
    EXPECT_TRUE(fs::is_empty(folder_.path()));
    ::close(file);
}

TEST_F(SystemCalls, OpenThroughNoLink) {
    fs::create_directory(a_);
    write(a_ / "value", "one");
    fs::create_directory_symlink(a_, b_);
    const int root = ::open(folder_.path().c_str(), os::lookup | O_DIRECTORY);
    ASSERT_GE(root, 0);
    if (const auto file = os::open_beneath(root, "a/value", O_RDONLY, 0)) {
        EXPECT_GE(*file, 0);
        ::close(*file);
        EXPECT_LT(os::open_beneath(root, "b/value", O_RDONLY, 0).value_or(-1), 0);
        EXPECT_LT(os::open_beneath(root, "../a", O_RDONLY, 0).value_or(-1), 0);
    }
    ::close(root);
}

TEST_F(SystemCalls, CopyAllOrSayThatTheyCannot) {
    write(a_, "some bytes");
    const int from = ::open(a_.c_str(), O_RDONLY), to = ::open(b_.c_str(), O_RDWR | O_CREAT, 0600);
    if (!os::clone(to, from)) {
        const ssize_t copied = os::copy_range(from, to, 10);
        if (copied < 0) {
            EXPECT_TRUE(errno == EXDEV || errno == ENOSYS || errno == EINVAL || errno == EOPNOTSUPP) << errno;
        } else {
            EXPECT_EQ(copied, 10);
        }
    }
    const std::string text = text_of(b_);
    EXPECT_TRUE(text.empty() || text == "some bytes") << text;
    ::close(from);
    ::close(to);
}

TEST_F(SystemCalls, LocksBelongToTheOpenFile) {
    const int one = ::open(a_.c_str(), O_RDWR | O_CREAT, 0600), two = ::open(a_.c_str(), O_RDWR);
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_len = 1;
    if (os::lock(one, range, false) != 0) {
        EXPECT_EQ(errno, EINVAL);
    } else {
        EXPECT_NE(os::lock(two, range, false), 0);
        range.l_start = 1;
        EXPECT_EQ(os::lock(two, range, true), 0);
        ::close(one);  // and only this one drops the first byte's
        range.l_start = 0;
        EXPECT_EQ(os::lock(two, range, false), 0);
    }
    ::close(two);
}

TEST_F(SystemCalls, FactsAreThoseOfTheLinkItself) {
    write(a_, "one");
    fs::create_symlink(a_, b_);
    struct stat status {};
    ASSERT_EQ(::lstat(b_.c_str(), &status), 0);
    os::Facts link, file, above;
    ASSERT_TRUE(os::facts_of(AT_FDCWD, b_.c_str(), link));
    ASSERT_TRUE(os::facts_of(AT_FDCWD, a_.c_str(), file));
    ASSERT_TRUE(os::facts_of(AT_FDCWD, folder_.path().c_str(), above));
    EXPECT_EQ(link.mode, status.st_mode);
    EXPECT_TRUE(S_ISREG(file.mode));
    EXPECT_EQ(file.device, above.device);
    EXPECT_EQ(file.mount, above.mount);
    EXPECT_FALSE(file.immutable);
    EXPECT_FALSE(os::facts_of(AT_FDCWD, (folder_.path() / "none").c_str(), file));
    EXPECT_EQ(errno, ENOENT);
}

TEST_F(SystemCalls, MemoryIsSharedByItsDescriptorAlone) {
    const int memory = os::shared_memory("tessera-test");
    ASSERT_GE(memory, 0);
    const int other = os::shared_memory("tessera-test");
    ASSERT_GE(other, 0);
    EXPECT_NE(::fcntl(memory, F_GETFD) & FD_CLOEXEC, 0);
    constexpr std::size_t size = 4096;
    ASSERT_EQ(::ftruncate(memory, size), 0);
    auto* const one = static_cast<char*>(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0));
    auto* const two = static_cast<char*>(::mmap(nullptr, size, PROT_READ, MAP_SHARED, memory, 0));
    ASSERT_NE(one, MAP_FAILED);
    ASSERT_NE(two, MAP_FAILED);
    one[7] = 'x';
    EXPECT_EQ(two[7], 'x');
    struct stat status {};
    EXPECT_EQ(::fstat(other, &status), 0);
    EXPECT_EQ(status.st_size, 0);
    ::munmap(one, size);
    ::munmap(two, size);
    ::close(memory);
    ::close(other);
}

TEST_F(SystemCalls, AttributesAreKeptOrNotSupported) {
    write(a_, "one");
    const int file = ::open(a_.c_str(), O_RDONLY);
    std::array<char, 8> text{};
    if (os::set_attribute(file, "user.tessera", "abc")) {
        EXPECT_EQ(os::attribute(file, "user.tessera", text.data(), text.size()), 3);
        EXPECT_EQ(os::attribute(a_.c_str(), "user.tessera", text.data(), text.size()), 3);
        os::remove_attribute(file, "user.tessera");
    } else {
        EXPECT_TRUE(errno == EOPNOTSUPP || errno == EPERM || errno == ENOSPC) << errno;
    }
    EXPECT_EQ(os::attribute(file, "user.tessera", text.data(), text.size()), -1);
    EXPECT_TRUE(os::sync_file_system(file));
    ::close(file);
}

}  // namespace
}  // namespace tessera
