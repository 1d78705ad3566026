#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/file_system.h>

#include <filesystem>
#include <sstream>

#include "temporary_folder.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

FileSystem found(const std::string& path, const std::string& mounts) {
    std::istringstream lines("22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n" + mounts);
    return file_system_in(lines, path);
}

// Lines as the manual pages and real machines have them; such file systems cannot be mounted in a test.
TEST(FileSystem, lustre_by_its_mount_options) {
    const std::string line = "40 22 0:50 / /scratch rw,$ shared:1 - lustre 10.0.0.1@tcp:/fs rw,checksum,$,lazystatfs\n";
    const auto with = [&](const std::string& option) {
        std::string text = line;
        while (text.find('$') != std::string::npos) text.replace(text.find('$'), 1, option);
        return found("/scratch/me/a.zarr", text);
    };
    EXPECT_EQ(with("flock").type, "lustre");
    EXPECT_THAT(with("flock").limits, ElementsAre(HasSubstr("exchanges no directories")));
    EXPECT_THAT(with("localflock").limits, ElementsAre(HasSubstr("only this machine"), HasSubstr("exchanges")));
    EXPECT_THAT(with("noflock").limits, ElementsAre(HasSubstr("no locks"), HasSubstr("exchanges")));
}

TEST(FileSystem, nfs_by_its_mount_options) {
    const std::string mounts =
        "41 22 0:51 / /home rw - nfs4 server:/home rw,vers=4.2,local_lock=none\n"
        "42 22 0:52 / /data\\040sets rw,noatime - nfs server:/data rw,vers=3,local_lock=posix\n";
    EXPECT_EQ(found("/home/a", mounts).type, "nfs4");
    EXPECT_THAT(found("/home/a", mounts).limits, ElementsAre(HasSubstr("seconds late"), HasSubstr("exchanges")));
    EXPECT_THAT(found("/data sets/a", mounts).limits.front(), HasSubstr("only this machine"));
}

TEST(FileSystem, the_innermost_and_last_mount_counts) {
    const std::string mounts =
        "43 22 0:53 / /mnt rw - vfat /dev/sdb1 rw\n"
        "44 43 0:54 / /mnt/in rw - tmpfs tmpfs rw\n"
        "45 22 0:55 / /mnt rw - xfs /dev/sdc rw\n"
        "torn line\n";
    EXPECT_EQ(found("/mnt/in/a", mounts).type, "tmpfs");
    EXPECT_EQ(found("/mnt/inner", mounts).type, "xfs");
    EXPECT_EQ(found("/mnt", mounts).type, "xfs");
    EXPECT_EQ(found("/mntx", mounts).type, "ext4");
    EXPECT_THAT(found("/mntx", mounts).limits, IsEmpty());
    EXPECT_EQ(found("/", "").type, "ext4");
}

TEST(FileSystem, of_a_path_that_is_not_there_yet) {
    const TemporaryFolder folder;
    EXPECT_NE(file_system_of(folder.path() / "new" / "a.zarr").type, "");
    EXPECT_EQ(file_system_of(folder.path() / "new").type, file_system_of(folder.path()).type);
    EXPECT_EQ(file_system_of("/proc/self").type, "proc");
}

}  // namespace
}  // namespace tessera
