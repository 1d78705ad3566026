// Opening and removing below a directory without leaving it by a link.
#include "beneath.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <tessera/dialect.h>
#include <tessera/zarr_names.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "keys.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class Beneath : public testing::Test {
protected:
    Beneath() {
        fs::create_directories(folder / "in" / "a" / "b");
        fs::create_directories(folder / "out" / "b");
        for (const char* name : {"in/file", "in/a/file", "in/a/b/file", "out/file", "out/b/file"}) {
            std::ofstream(folder / name) << name;
        }
        fs::create_directory_symlink("../out", folder / "in" / "link");
        fs::create_directory_symlink("a", folder / "in" / "inner");
        fs::create_directory_symlink("../../out", folder / "in" / "a" / "link");
        fs::create_symlink("../out/file", folder / "in" / "file_link");
        fs::create_symlink("../out/new", folder / "in" / "dangling");
        fs::create_symlink("loop", folder / "in" / "loop");
        in = Descriptor(open_at(AT_FDCWD, (folder / "in").c_str(), O_PATH | O_DIRECTORY));
    }

    TemporaryFolder folder;
    Descriptor in;
};

TEST(Keys, every_metadata_document_is_known_as_one) {
    const auto known = [](std::string_view name) { return std::ranges::count(metadata_names, name) == 1; };
    for (const Dialect* each_dialect : dialect_table()) {
        const Dialect& dialect = *each_dialect;
        EXPECT_TRUE(known(dialect.metadata_key)) << dialect.name;
        EXPECT_TRUE(dialect.group_key.empty() || known(dialect.group_key)) << dialect.name;
    }
}

TEST(Keys, deleted_files_that_are_open_have_names_of_their_own) {
    EXPECT_TRUE(is_deleted_open(".fuse_hidden000000090000000d"));
    EXPECT_TRUE(is_deleted_open(".nfs000000000123456700000001"));
    for (const char* name : {".zarray", ".nfs", ".nfsiostat", "0.0", ".tessera"}) EXPECT_FALSE(is_deleted_open(name));
}

TEST_F(Beneath, links_are_not_followed_whichever_way_the_path_is_walked) {
    struct Case {
        const char* path;
        int flags;
        int error;  ///< 0: it opens
    };
    constexpr int make = O_WRONLY | O_CREAT;
    const std::vector<Case> cases{
        {"file", O_RDONLY, 0},
        {"a/file", O_RDONLY, 0},
        {"a/b/file", O_RDWR, 0},
        {"a/b", O_RDONLY | O_DIRECTORY, 0},
        {".", O_RDONLY | O_DIRECTORY, 0},
        {"a/b", O_PATH | O_DIRECTORY, 0},
        {"none", O_RDONLY, ENOENT},
        {"none/file", O_RDONLY, ENOENT},
        {"file/x", O_RDONLY, ENOTDIR},
        {"file", O_RDONLY | O_DIRECTORY, ENOTDIR},
        {"link", O_RDONLY | O_DIRECTORY, ELOOP},
        {"link", O_PATH | O_DIRECTORY, ELOOP},
        {"link/file", O_RDONLY, ELOOP},
        {"link/b/file", O_RDONLY, ELOOP},
        {"link/new", make, ELOOP},
        {"inner/file", O_RDONLY, ELOOP},
        {"a/link", O_RDONLY | O_DIRECTORY, ELOOP},
        {"a/link/b/file", O_RDONLY, ELOOP},
        {"file_link", O_RDONLY, ELOOP},
        {"file_link", make, ELOOP},
        {"dangling", make, ELOOP},
        {"loop", O_RDONLY, ELOOP},
        {"loop/x", O_RDONLY, ELOOP},
    };
    for (const Case& one : cases) {
        SCOPED_TRACE(one.path);
        for (auto* open : {&open_beneath, &open_part_by_part}) {
            errno = 0;
            const Descriptor fd(open(in.get(), one.path, one.flags, 0666));
            EXPECT_EQ(static_cast<bool>(fd), one.error == 0);
            if (one.error != 0) {
                EXPECT_EQ(errno, one.error);
            } else if (fd) {
                EXPECT_NE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
            }
        }
    }
    EXPECT_FALSE(fs::exists(folder / "out" / "new"));
    for (auto* open : {&open_beneath, &open_part_by_part}) {
        EXPECT_TRUE(Descriptor(open(in.get(), "a/made", make | O_EXCL, 0600)));
        EXPECT_TRUE(fs::remove(folder / "in" / "a" / "made"));
    }
}

TEST_F(Beneath, what_is_in_the_way_is_named) {
    EXPECT_EQ(obstacle(in.get(), "a/b"), "");
    EXPECT_EQ(obstacle(in.get(), "a/none/x"), "");
    EXPECT_EQ(obstacle(in.get(), "a/link/b"), "a/link");
    EXPECT_EQ(obstacle(in.get(), "file/x/y"), "file");
    EXPECT_EQ(obstacle(in.get(), "link/b"), "link");
    EXPECT_EQ(obstacle(in.get(), "link/b/file", 5), "link/b/file") << "what stands before is passed over";
}

TEST_F(Beneath, links_are_removed_and_not_followed) {
    remove_beneath(in.get(), "a", "in/a");
    remove_beneath(in.get(), "link", "in/link");
    remove_beneath(in.get(), "loop", "in/loop");
    remove_beneath(in.get(), "none", "in/none");
    EXPECT_FALSE(fs::exists(folder / "in" / "a"));
    EXPECT_FALSE(fs::is_symlink(folder / "in" / "link"));
    EXPECT_TRUE(fs::exists(folder / "out" / "b" / "file"));
    empty_beneath(Descriptor(open_at(in.get(), ".", O_RDONLY | O_DIRECTORY)), "in");
    EXPECT_TRUE(fs::is_empty(folder / "in"));
    EXPECT_TRUE(fs::exists(folder / "out" / "file"));
}

TEST_F(Beneath, a_folder_that_becomes_a_link_while_it_is_removed_is_not_followed) {
    std::atomic<bool> stop = false;
    std::thread swapper([&] {
        const fs::path place = folder / "in" / "swapped";
        while (!stop) {
            std::error_code ignored;
            fs::create_directories(place / "b", ignored);
            std::ofstream(place / "b" / "file") << "theirs";
            fs::rename(place, folder / "in" / "aside", ignored);
            fs::create_directory_symlink("../out", place, ignored);
            fs::remove(place, ignored);
            fs::remove_all(folder / "in" / "aside", ignored);
        }
    });
    for (int n = 0; n < 300; ++n) {
        try {
            remove_beneath(in.get(), "swapped", "in/swapped");
        } catch (const std::exception&) {
            // Somebody else is at work there; only what lies outside counts.
        }
    }
    stop = true;
    swapper.join();
    EXPECT_TRUE(fs::exists(folder / "out" / "b" / "file"));
    EXPECT_TRUE(fs::exists(folder / "out" / "file"));
}

TEST_F(Beneath, few_folders_are_kept_open) {
    const auto open_files = [] {
        return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
    };
    const auto before = open_files();
    {
        std::vector<std::unique_ptr<FolderCache>> caches;
        for (int n = 0; n < 20; ++n) {
            caches.push_back(std::make_unique<FolderCache>());
            for (int k = 0; k < 20; ++k) {
                Descriptor fd(open_beneath(in.get(), "a", O_RDONLY | O_DIRECTORY));
                caches.back()->keep(std::to_string(k), std::make_shared<const Descriptor>(std::move(fd)));
            }
        }
        EXPECT_LE(open_files(), before + 64);
        EXPECT_NE(caches.front()->find("0"), nullptr);
        caches.front()->drop("0");
        EXPECT_EQ(caches.front()->find("0"), nullptr);
    }
    EXPECT_EQ(open_files(), before);
}

}  // namespace
}  // namespace tessera
