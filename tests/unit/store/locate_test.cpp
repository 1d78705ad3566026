#include <gtest/gtest.h>
#include <tessera/copy.h>
#include <tessera/locate.h>
#include <tessera/ndarray.h>
#include <tessera/npy.h>

#include <filesystem>
#include <fstream>

#include "temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const fs::path golden = TESSERA_GOLDEN;

class Locating : public ::testing::Test {
protected:
    void SetUp() override {
        save_npy(path("x.npy"), NDArray("<i4", {3}));
        Group::create(path("group"), "v3");
        const ArrayOptions table{.shape = {2}, .dtype = DType::parse("[('a', '<i4'), ('b', '<f8')]")};
        (void)Array::create(path("group/table"), table);
        fs::create_directory(path("folder"));
        std::ofstream(path("text")) << "no array";
        NewArray(path("copy"), {.shape = {2}, .dtype = "<i4"}, {}, "test").keep();
        copy_hierarchy(path("group"), path("g.zip"));
    }
    [[nodiscard]] std::string path(std::string_view name) const { return (folder_ / name).string(); }
    [[nodiscard]] PathKind kind(std::string_view name) const { return locate(path(name)).kind; }

    TemporaryFolder folder_;
};

TEST_F(Locating, SaysWhatAPathNames) {
    EXPECT_EQ(kind("absent"), PathKind::nothing);
    EXPECT_EQ(kind("absent::part"), PathKind::nothing);
    EXPECT_EQ(kind("x.npy/below"), PathKind::nothing);
    EXPECT_EQ(kind("x.npy"), PathKind::array_file);
    EXPECT_EQ(kind("x.npy::field"), PathKind::part);
    EXPECT_EQ(kind("text"), PathKind::other);
    EXPECT_EQ(kind("folder"), PathKind::folder);
    EXPECT_EQ(kind("group"), PathKind::group);
    EXPECT_EQ(kind("group/table"), PathKind::array);
    EXPECT_EQ(kind("group/table::a"), PathKind::part);
    EXPECT_EQ(kind("copy"), PathKind::unfinished);
    EXPECT_EQ(kind("g.zip"), PathKind::group);
    EXPECT_EQ(kind("g.zip/table"), PathKind::array);
    EXPECT_EQ(kind("g.zip/table::b"), PathKind::part);
    EXPECT_EQ(kind("g.zip/absent"), PathKind::nothing);
    EXPECT_EQ(locate((golden / "npz/savez.npz").string()).kind, PathKind::array_file);
    EXPECT_EQ(locate((golden / "npz/savez.npz::a").string()).kind, PathKind::part);
}

TEST_F(Locating, KeepsWhatItOpened) {
    const Located file = locate(path("x.npy"));
    const Located array = locate(path("group/table"));
    ASSERT_NE(file.format, nullptr);
    EXPECT_EQ(file.format->name, "npy");
    EXPECT_TRUE(file.facts->regular);
    EXPECT_EQ(array.dialect->name, "zmeta");
    EXPECT_TRUE(array.is_directory());
    // What was found is read, also once its names lead elsewhere.
    fs::rename(path("x.npy"), path("renamed.npy"));
    fs::rename(path("group/table"), path("group/renamed"));
    EXPECT_EQ(open_source(file)->info().shape, Shape{3});
    EXPECT_EQ(array.array().shape(), Shape{2});
    EXPECT_TRUE(was_replaced(file));
    EXPECT_TRUE(was_replaced(array));
    EXPECT_FALSE(was_replaced(locate(path("group/renamed"))));
}

TEST_F(Locating, DamagedMetadataAreAnErrorOnlyOnOpening) {
    std::ofstream(path("group/table/__zmeta__")) << "{";
    const Located at = locate(path("group/table"));
    EXPECT_EQ(at.kind, PathKind::array);
    EXPECT_THROW((void)at.array(), Error);
}

TEST_F(Locating, GroupsAndMembers) {
    EXPECT_TRUE(group_at(locate(path("group"))).has_value());
    EXPECT_TRUE(group_at(locate(path("g.zip"))).has_value());
    EXPECT_FALSE(group_at(locate(path("group/table"))).has_value());
    EXPECT_FALSE(group_at(locate(path("folder"))).has_value());
    EXPECT_FALSE(group_at(locate(path("copy"))).has_value());
    EXPECT_FALSE(group_at(locate(path("x.npy"))).has_value());
    EXPECT_EQ(several_members(locate((golden / "npz/savez.npz").string())).size(), 4U);
    EXPECT_TRUE(several_members(locate(path("x.npy"))).empty());
}

}  // namespace
}  // namespace tessera
