#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/copy.h>
#include <tessera/group.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "expect_error.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

const fs::path golden = TESSERA_GOLDEN;

class Groups : public testing::Test {
protected:
    TemporaryFolder folder;
};

/// "g sub v2", "a sub/b v3", "g plain -".
std::vector<std::string> texts(const std::vector<Node>& nodes) {
    std::vector<std::string> texts;
    for (const Node& node : nodes) {
        texts.push_back(std::string(node.kind == NodeKind::array ? "a " : "g ") + node.path + " " +
                        std::string(node.dialect == nullptr ? "-" : node.dialect->name));
    }
    return texts;
}

const ArrayOptions small{.shape = {4}, .chunks = {2}, .dtype = DType::parse("<i4")};

void set_ones(Array array) {
    array.fill(Selection::all(array.shape()), 1);
}

class GroupsOf : public Groups, public testing::WithParamInterface<const char*> {};

TEST_P(GroupsOf, hierarchy_is_made_listed_moved_and_removed) {
    const std::string format = GetParam();
    for (const bool in_memory : {false, true}) {
        SCOPED_TRACE(in_memory);
        const auto store = in_memory ? memory_store() : directory_store(folder / "root");
        Group root = Group::create(store, dialect_named(format), Value::parse(R"({"title": "x"})"));
        set_ones(root.create_array("b/deep/array", small));
        Group empty = root.create_group("a.b");
        set_ones(root.create_array("a", small));
        EXPECT_EQ(root.open_array("a").dialect().name, format) << "whatever the default";
        const std::vector<std::string> all{"a a " + format, "g a.b " + format, "g b " + format, "g b/deep " + format,
                                           "a b/deep/array " + format};
        EXPECT_EQ(texts(root.nodes()), all) << "missing parents are groups";
        EXPECT_THAT(texts(root.children()), ElementsAre(all[0], all[1], all[2]));
        EXPECT_EQ(root.attributes().get("title"), Value("x"));
        root.attributes().set("n", 1);
        EXPECT_EQ(Group::open(store).attributes().all(), Value::parse(R"({"title": "x", "n": 1})"));
        EXPECT_THAT(empty.children(), IsEmpty());

        expect_error(ErrorCode::already_exists, "a group", [&] { (void)root.create_group("b"); });
        expect_error(ErrorCode::already_exists, "an array", [&] { (void)root.create_group("a"); });
        expect_error(ErrorCode::already_exists, "an array", [&] { (void)root.create_array("b/deep/array", small); });
        expect_error(ErrorCode::already_exists, "nothing can be below", [&] { (void)root.create_group("a/below"); });
        expect_error(ErrorCode::not_found, "a: an array", [&] { (void)root.open_group("a"); });
        expect_error(ErrorCode::not_found, "b: a group", [&] { (void)root.open_array("b"); });
        expect_error(ErrorCode::not_found, "there is nothing", [&] { (void)root.open_group("nothing"); });

        root.move("b/deep", "new/place");
        EXPECT_EQ(texts(root.nodes()),
                  (std::vector<std::string>{all[0], all[1], all[2], "g new " + format, "g new/place " + format,
                                            "a new/place/array " + format}));
        EXPECT_EQ(root.open_array("new/place/array").read().values<std::int32_t>()[3], 1);
        expect_error(ErrorCode::already_exists, "there already", [&] { root.move("a", "new"); });
        expect_error(ErrorCode::invalid_argument, "within or above", [&] { root.move("new", "new/place/x"); });
        expect_error(ErrorCode::not_found, "nothing", [&] { root.move("nothing", "x"); });

        expect_error(ErrorCode::invalid_argument, "holds 2", [&] { root.remove("new"); });
        root.remove("new", {.recursive = true});
        root.remove("a");
        root.remove("a.b");
        expect_error(ErrorCode::not_found, "a: no array or group", [&] { root.remove("a"); });
        EXPECT_THAT(texts(root.nodes()), ElementsAre(all[2]));
        EXPECT_THAT(store->list("").prefixes, testing::Not(testing::Contains(testing::AnyOf("a", "a.b", "new"))))
            << "nothing is left of what was removed";
    }
}

INSTANTIATE_TEST_SUITE_P(Format, GroupsOf, testing::Values("v2", "v3"));

TEST_F(Groups, plain_directories_that_hold_arrays_are_groups) {
    (void)Array::create(folder / "x" / "y" / "old", small);
    ArrayOptions v1 = small;
    v1.format = "v1";
    (void)Array::create(folder / "one", v1);
    fs::create_directories(folder / "empty" / "below");
    fs::create_directories(folder / ".hidden");
    (void)Array::create(folder / ".hidden" / "unseen", small);
    fs::rename(folder / ".hidden" / "unseen", folder / ".shown");
    fs::create_directory_symlink(folder.path(), folder / "x" / "back");
    const Group group = Group::open(folder.path());
    EXPECT_EQ(group.dialect(), nullptr);
    EXPECT_THAT(texts(group.nodes()), ElementsAre("a .shown zmeta", "a one v1", "g x -", "g x/y -", "a x/y/old zmeta"));
    EXPECT_THAT(texts(group.children()), ElementsAre("a .shown zmeta", "a one v1", "g x -"));
    EXPECT_EQ(group.attributes().all(), Value::object());
    expect_error(ErrorCode::unsupported, "a plain directory that holds arrays cannot have attributes",
                 [&] { group.attributes().set("k", 1); });
    expect_error(ErrorCode::not_found, "no group here", [&] { (void)Group::open(folder / "empty"); });
    expect_error(ErrorCode::unsupported, "no groups but plain directories",
                 [&] { (void)Group::create(folder / "z", dialect_named("zmeta")); });
    fs::remove(folder / "x" / "back");
    // It becomes a group with metadata, and what is below stays.
    Group made = Group::create(folder / "x", dialect_named("v2"));
    EXPECT_THAT(texts(made.nodes()), ElementsAre("g y -", "a y/old zmeta"));
    made.attributes().set("k", 1);
}

TEST_F(Groups, parents_are_found_above_in_the_file_system) {
    (void)Group::create(folder / "root", dialect_named("v2"));
    (void)Group::create(folder / "root" / "a" / "b", dialect_named("v2"));
    EXPECT_THAT(texts(Group::open(folder / "root").nodes()), ElementsAre("g a v2", "g a/b v2"));
    EXPECT_FALSE(fs::exists(folder / ".zgroup"));
}

TEST_F(Groups, only_what_belongs_to_nodes_is_removed) {
    Group root = Group::create(folder / "root", dialect_named("v2"));
    set_ones(root.create_array("g/a", small));
    for (const char* foreign : {"root/g/notes.txt", "root/g/a/notes.txt"}) {
        std::ofstream(folder / foreign) << "theirs";
        expect_error(ErrorCode::invalid_argument, "notes.txt", [&] { root.remove("g", {.recursive = true}); });
        EXPECT_EQ(root.open_array("g/a").read().values<std::int32_t>()[0], 1) << "nothing is gone";
        fs::remove(folder / foreign);
    }
    fs::create_directory(folder / "root" / "g" / "empty");
    expect_error(ErrorCode::invalid_argument, "empty", [&] { root.remove("g", {.recursive = true}); });
    fs::remove(folder / "root" / "g" / "empty");
    root.remove("g", {.recursive = true});
    EXPECT_FALSE(fs::exists(folder / "root" / "g"));
}

TEST_P(GroupsOf, consolidated_metadata_are_checked_against_the_nodes) {
    Group root = Group::create(folder / "root", dialect_named(GetParam()));
    (void)root.create_array("sub/a", small);
    (void)Array::create({directory_store(folder / "root"), "other"}, small);  // zmeta: not this format's
    EXPECT_FALSE(root.consolidated_state().present);
    EXPECT_TRUE(root.consolidated_matches("sub/a")) << "nothing says otherwise";
    root.consolidate();
    EXPECT_TRUE(root.consolidated_state().fresh());
    EXPECT_TRUE(root.consolidated_matches("sub/a"));
    EXPECT_TRUE(root.consolidated_matches("nothing"));
    EXPECT_THAT(stale_above(folder / "root" / "sub" / "a"), IsEmpty());

    root.open_array("sub/a").attributes().set("k", 1);
    EXPECT_THAT(root.consolidated_state().stale, ElementsAre("sub/a"));
    EXPECT_FALSE(root.consolidated_matches("sub/a"));
    EXPECT_THAT(stale_above(folder / "root" / "sub" / "a"), ElementsAre(fs::canonical(folder / "root")));
    (void)root.create_group("new");
    root.move("sub/a", "b");
    EXPECT_THAT(root.consolidated_state().stale, ElementsAre("b", "new", "sub/a"));
    EXPECT_FALSE(root.consolidated_matches("sub/a")) << "gone";
    EXPECT_FALSE(root.consolidated_matches("new")) << "not listed";
    root.open_array("b").resize({3});
    EXPECT_EQ(root.open_array("b").shape(), (Shape{3})) << "reading goes by the nodes";
    root.consolidate();
    EXPECT_TRUE(root.consolidated_state().fresh());

    // A node in a plain folder: zarr-python 2 lists it, version 3 would fail on it.
    ArrayOptions options = small;
    options.format = GetParam();
    (void)Array::create({directory_store(folder / "root"), "plain/p"}, options);
    const bool listed = std::string(GetParam()) == "v2";
    EXPECT_EQ(root.consolidated_state().stale,
              listed ? std::vector<std::string>{"plain/p"} : std::vector<std::string>{});
    EXPECT_EQ(root.consolidated_matches("plain/p"), !listed);

    // A group below with a copy of its own changes nothing for the one above.
    Group below = root.create_group("inner");
    (void)below.create_array("x", small);
    root.consolidate();
    below.consolidate();
    EXPECT_TRUE(root.consolidated_state().fresh());
    EXPECT_TRUE(below.consolidated_state().fresh());
}

TEST(GroupGolden, hierarchies_of_zarr_python_are_read) {
    for (const char* format : {"zarr2", "zarr3"}) {
        SCOPED_TRACE(format);
        const std::string name = format == std::string("zarr2") ? "v2" : "v3";
        for (const char* fixture : {"group", "group_consolidated"}) {
            const Group root = Group::open(golden / format / fixture, {.read_only = true});
            EXPECT_THAT(texts(root.nodes()),
                        ElementsAre("a a " + name, "g empty " + name, "g sub " + name, "a sub/b " + name,
                                    "g sub/deep " + name, "a sub/deep/c " + name));
            EXPECT_EQ(root.attributes().get("title"), Value("root"));
            EXPECT_EQ(root.consolidated_state().present, fixture == std::string("group_consolidated"));
            EXPECT_THAT(root.consolidated_state().stale, IsEmpty());
        }
    }
    EXPECT_TRUE(Group::open(golden / "zarr2" / "z3_group", {.read_only = true}).consolidated_state().fresh());
}

}  // namespace
}  // namespace tessera
