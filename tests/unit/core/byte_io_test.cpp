#include <tessera/byte_io.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <csignal>

#include <fmt/format.h>

#include "files.h"

namespace tessera {
namespace {

using namespace test;

std::string text_of(const ByteSource& source, std::uint64_t offset, std::uint64_t length) {
    const Buffer b = read_range(source, offset, length);
    return {reinterpret_cast<const char*>(b.data()), b.size()};
}

Buffer buffer(std::string_view text) {
    return Buffer(bytes(text));
}

TEST(ByteSource, EveryKindReadsRangesAndRefusesWhatLiesBeyond) {
    const Folder folder;
    put(folder / "a", "0123456789");
    const std::shared_ptr<const ByteSource> whole = memory_source(buffer("xx0123456789yy"), "memory");
    const std::unique_ptr<const ByteSource> sources[] = {open_file(folder / "a"), map_file(folder / "a"),
                                                         memory_source(buffer("0123456789"), "memory"),
                                                         slice_source(whole, 2, 10, "slice")};
    for (const auto& s : sources) {
        SCOPED_TRACE(s->name());
        EXPECT_EQ(s->size(), 10U);
        EXPECT_EQ(text_of(*s, 0, 10), "0123456789");
        EXPECT_EQ(text_of(*s, 7, 3), "789");
        EXPECT_EQ(text_of(*s, 10, 0), "");
        EXPECT_EQ(error_of([&] { (void)text_of(*s, 8, 3); }, s->name()), ErrorCode::corrupt);
        EXPECT_EQ(error_of([&] { (void)text_of(*s, 11, 0); }), ErrorCode::corrupt);
        EXPECT_EQ(error_of([&] { (void)text_of(*s, 1, UINT64_MAX); }), ErrorCode::corrupt);  // and nothing is allocated
        s->drop_cache(0, 10);
        EXPECT_EQ(text_of(*s, 0, 10), "0123456789");
    }
    EXPECT_EQ(sources[0]->mapped().size(), 0U);
    for (int i = 1; i < 4; ++i) EXPECT_EQ(sources[i]->mapped().size(), 10U);
    EXPECT_EQ(error_of([&] { (void)slice_source(whole, 10, 5, "slice"); }), ErrorCode::corrupt);
}

TEST(ByteSource, EmptyFileIsFine) {
    const Folder folder;
    put(folder / "empty", "");
    EXPECT_EQ(read_all(*open_file(folder / "empty")).size(), 0U);
    EXPECT_EQ(read_all(*map_file(folder / "empty")).size(), 0U);
}

TEST(ByteSource, WhatIsNoRegularFileIsRefusedInWords) {
    const Folder folder;
    ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
    for (const auto open : {open_file, map_file}) {
        EXPECT_EQ(error_of([&] { (void)open(folder / "none"); }, "none"), ErrorCode::not_found);
        EXPECT_EQ(error_of([&] { (void)open(folder.path()); }, "it is a directory"), ErrorCode::io);
        EXPECT_EQ(error_of([&] { (void)open(folder / "pipe"); }, "pipe"), ErrorCode::io);  // and does not hang
        EXPECT_EQ(error_of([&] { (void)open("/dev/null"); }, "device"), ErrorCode::io);
    }
}

TEST(ByteSource, TruncationAfterOpeningIsReportedWithTheOffset) {
    const Folder folder;
    put(folder / "a", "0123456789");
    const auto source = open_file(folder / "a");
    std::filesystem::resize_file(folder / "a", 4);
    EXPECT_EQ(source->size(), 10U);
    EXPECT_EQ(text_of(*source, 0, 4), "0123");
    EXPECT_EQ(error_of([&] { (void)text_of(*source, 2, 5); }, "offset 4"), ErrorCode::corrupt);
}

TEST(ByteSource, ReplacementDoesNotShowThrough) {
    const Folder folder;
    put(folder / "a", "old");
    const auto source = open_file(folder / "a");
    const auto sink = create_file(folder / "a");
    sink->append(bytes("newer"));
    sink->finish();
    EXPECT_EQ(text_of(*source, 0, 3), "old");
    EXPECT_EQ(content(folder / "a"), "newer");
}

TEST(ByteSink, AppearsOnlyWhenFinished) {
    const Folder folder;
    const auto sink = create_file(folder / "a");
    EXPECT_TRUE(sink->random_access());
    sink->append(bytes("abc"));
    sink->write_at(6, bytes("ghi"));
    sink->append(bytes("def"));
    EXPECT_FALSE(std::filesystem::exists(folder / "a"));
    sink->finish();
    EXPECT_EQ(content(folder / "a"), "abcdefghi");
    EXPECT_EQ(folder.entries(), 1);
}

TEST(ByteSink, WithoutFinishTheOldContentStaysAndNothingElse) {
    const Folder folder;
    put(folder / "a", "old");
    {
        const auto sink = create_file(folder / "a");
        sink->append(bytes("new"));
        EXPECT_EQ(folder.entries(), 2);
        for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
            const std::string name = entry.path().filename();
            EXPECT_TRUE(name == "a" || name.starts_with(temporary_prefix)) << name;
        }
    }
    EXPECT_EQ(content(folder / "a"), "old");
    EXPECT_EQ(folder.entries(), 1);
}

::mode_t mode_of(const std::filesystem::path& path) {
    struct stat facts {};
    EXPECT_EQ(::stat(path.c_str(), &facts), 0);
    return facts.st_mode & 07777;
}

TEST(ByteSink, ModeFollowsTheUmaskAndIsKeptOnReplacing) {
    const Folder folder;
    const ::mode_t old = ::umask(027);
    create_file(folder / "new")->finish();
    ::umask(old);
    EXPECT_EQ(mode_of(folder / "new"), 0640U);
    ASSERT_EQ(::chmod((folder / "new").c_str(), 0604), 0);
    create_file(folder / "new")->finish();
    EXPECT_EQ(mode_of(folder / "new"), 0604U);
}

TEST(ByteSink, SymbolicLinkStaysAndItsFileIsReplaced) {
    const Folder folder;
    std::filesystem::create_directory(folder / "sub");
    put(folder / "sub/file", "old");
    std::filesystem::create_symlink("sub/file", folder / "link");
    std::filesystem::create_symlink("link", folder / "link2");
    std::filesystem::create_symlink("sub/later", folder / "dangling");
    std::filesystem::create_symlink("loop", folder / "loop");
    for (const char* name : {"link2", "dangling"}) {
        const auto sink = create_file(folder / name);
        sink->append(bytes("new"));
        sink->finish();
        EXPECT_TRUE(std::filesystem::is_symlink(folder / name));
    }
    EXPECT_EQ(content(folder / "sub/file"), "new");
    EXPECT_EQ(content(folder / "sub/later"), "new");
    EXPECT_EQ(error_of([&] { (void)create_file(folder / "loop"); }, "loop"), ErrorCode::io);
}

TEST(ByteSink, RefusesPlacesWhereNoFileCanBe) {
    const Folder folder;
    put(folder / "file", "x");
    EXPECT_EQ(error_of([&] { (void)create_file(folder / "none/a"); }, "none/a"), ErrorCode::not_found);
    EXPECT_EQ(error_of([&] { (void)create_file(folder / "file/a"); }, "file/a"), ErrorCode::io);
    EXPECT_EQ(error_of([&] { (void)create_file(folder.path()); }, "not a regular file"), ErrorCode::io);
    EXPECT_EQ(error_of([] { (void)create_file("/dev/full"); }, "not a regular file"), ErrorCode::io);
    EXPECT_EQ(folder.entries(), 1);
}

TEST(ByteSink, FailedWriteAndRenameLeaveWhatWasThere) {
    const Folder folder;
    put(folder / "a", "old");
    ::rlimit old{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const ::rlimit small{8, old.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    {
        const auto sink = create_file(folder / "a");
        sink->append(bytes("01234"));
        // A short write first, then none at all.
        EXPECT_EQ(error_of([&] { sink->append(bytes("56789")); }, "cannot write"), ErrorCode::io);
    }
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
    std::signal(SIGXFSZ, handler);
    EXPECT_EQ(content(folder / "a"), "old");
    {
        const auto sink = create_file(folder / "b");
        std::filesystem::create_directories(folder / "b/sub");
        EXPECT_EQ(error_of([&] { sink->finish(); }, "cannot replace"), ErrorCode::io);
    }
    EXPECT_EQ(folder.entries(), 2);
}

}  // namespace
}  // namespace tessera
