// Copying whatever a path names: hierarchies, files of several arrays, and what is told of what was left out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/action.h>
#include <tessera/copy.h>
#include <tessera/element.h>
#include <tessera/group.h>

#include <filesystem>
#include <fstream>
#include <stop_token>
#include <string>
#include <vector>

#include "expect_error.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

class CopyHierarchy : public testing::Test {
protected:
    CopyHierarchy() {
        Group root = Group::create(source, dialect_named("v3"), Value::parse(R"({"title": "x"})"));
        for (const char* name : {"a", "g/b", "g-c"}) {
            Array array = root.create_array(name, {.shape = {4}, .chunks = {2}, .dtype = DType::parse("<i4")});
            array.fill(Selection::all(array.shape()), 1);
        }
    }

    [[nodiscard]] std::string path(const char* name) const { return (folder / name).string(); }

    /// A chunk that nothing can decode.
    void damage(const char* chunk) const { std::ofstream(source + "/" + chunk) << "torn"; }

    static std::vector<std::string> paths_of(const std::vector<CopiedArray>& made) {
        std::vector<std::string> paths;
        for (const CopiedArray& array : made) paths.push_back(array.path);
        return paths;
    }

    static Value fill_of(const Array& array) {
        return element_to_value(array.dtype(), array.metadata().fill.bytes->data());
    }

    TemporaryFolder folder;
    std::string source = (folder / "source").string();
};

TEST_F(CopyHierarchy, groups_arrays_and_attributes_arrive_in_the_format_chosen) {
    const std::string to = path("to");
    std::vector<std::string> notes;
    const CopiedHierarchy copied = copy_hierarchy(source, to,
                                                  {.arrays = {.chunks = Shape{3}, .format = "v2"},
                                                   .note = [&](const Note& note) { notes.push_back(note.text); }});
    EXPECT_EQ(copied.path, to);
    EXPECT_THAT(paths_of(copied.made), testing::UnorderedElementsAre(to + "/a", to + "/g/b", to + "/g-c"));
    EXPECT_THAT(copied.left_out, IsEmpty());
    EXPECT_THAT(copied.passed, IsEmpty());
    EXPECT_GT(copied.bytes, 0U);
    const Group root = Group::open(to);
    EXPECT_EQ(root.dialect()->name, "v2");
    EXPECT_EQ(root.attributes().get("title"), Value("x"));
    EXPECT_EQ(root.open_array("g/b").chunks(), Shape{3});
    EXPECT_EQ(root.open_array("g/b").read("3:4").values<std::int32_t>()[0], 1);
}

TEST_F(CopyHierarchy, what_is_excluded_is_left_out_with_everything_below) {
    const CopiedHierarchy copied =
        copy_hierarchy(source, path("to"), {.exclude = [](const std::string& node) { return node == "g"; }});
    EXPECT_THAT(paths_of(copied.made), testing::UnorderedElementsAre(path("to/a"), path("to/g-c")));
    EXPECT_FALSE(fs::exists(path("to/g")));
    const CopiedHierarchy file =
        copy_hierarchy(source, path("to.npz"), {.exclude = [](const std::string& node) { return node == "g"; }});
    EXPECT_THAT(paths_of(file.made), testing::UnorderedElementsAre(path("to.npz::a"), path("to.npz::g-c")));
}

TEST_F(CopyHierarchy, a_dry_run_plans_and_writes_nothing) {
    const CopiedHierarchy copied = copy_hierarchy(source, path("to"), {.arrays = {.format = "v2"}, .dry_run = true});
    ASSERT_EQ(copied.planned.size(), 3U);
    EXPECT_EQ(copied.planned[0].node, "a");
    EXPECT_EQ(copied.planned[0].plan.dialect->name, "v2");
    EXPECT_THAT(copied.made, IsEmpty());
    EXPECT_FALSE(fs::exists(path("to")));
}

TEST_F(CopyHierarchy, what_cannot_be_read_is_left_out_and_nothing_is_lost_for_it) {
    const std::string to = path("to");
    copy_hierarchy(source, to);
    damage("g/b/c/1");
    const CopiedHierarchy beside = copy_hierarchy(source, to, {.arrays = {.chunks = Shape{3}}, .overwrite = true});
    EXPECT_EQ(beside.path, to + ".incomplete");
    ASSERT_EQ(beside.left_out.size(), 1U);
    EXPECT_EQ(beside.left_out[0].node, "g/b");
    EXPECT_EQ(beside.left_out[0].source, source + "/g/b");
    EXPECT_EQ(Group::open(to).open_array("a").chunks(), Shape{2}) << "the old one is as it was";
    EXPECT_EQ(Group::open(beside.path).open_array("a").chunks(), Shape{3});
    const CopiedHierarchy replaced =
        copy_hierarchy(source, to, {.arrays = {.chunks = Shape{3}}, .overwrite = true, .skip_unreadable = true});
    EXPECT_EQ(replaced.path, to);
    EXPECT_EQ(Group::open(to).open_array("a").chunks(), Shape{3});
}

TEST_F(CopyHierarchy, several_arrays_become_one_file_and_come_back) {
    const CopiedHierarchy file = copy_hierarchy(source, path("all.npz"));
    EXPECT_TRUE(file.one_file);
    EXPECT_EQ(file.made.size(), 3U);
    HierarchyOptions options{.arrays = {.fill = Value(7), .format = "v3"}, .fills = {{"g/b", Value(9)}}};
    const CopiedHierarchy back = copy_hierarchy(path("all.npz"), path("back"), options);
    EXPECT_EQ(back.made.size(), 3U);
    const Group root = Group::open(path("back"));
    EXPECT_EQ(fill_of(root.open_array("a")), Value(7));
    EXPECT_EQ(fill_of(root.open_array("g/b")), Value(9));
    options.fills = {{"none", Value(9)}};
    expect_error(ErrorCode::invalid_argument, "holds no array none",
                 [&] { copy_hierarchy(path("all.npz"), path("more"), options); });
    EXPECT_FALSE(fs::exists(path("more")));
}

TEST_F(CopyHierarchy, an_array_that_is_open_goes_anywhere) {
    const Array array = Group::open(source).open_array("g/b");
    EXPECT_THAT(copy_hierarchy(array, path("b"), {.arrays = {.format = "v2"}}).planned.front().plan.recode,
                testing::Eq(std::nullopt));
    EXPECT_EQ(Array::open(path("b")).read("2").values<std::int32_t>()[0], 1);
    const std::vector<float> made{1, 2, 3};
    const auto computed = view_source(view(made), "made");
    copy_hierarchy(*computed, path("c.npy"));
    EXPECT_EQ(copy_hierarchy(*computed, path("c"), {.selection = "1:"}).made.front().shape, Shape{2});
    EXPECT_EQ(Array::open(path("c")).read().values<float>()[1], 3.0F);
    expect_error(ErrorCode::already_exists, "c.npy", [&] { copy_hierarchy(*computed, path("c.npy")); });
}

TEST_F(CopyHierarchy, errors_state_facts_and_advise_beside_them) {
    const std::vector<ActionName> names{{Action::overwrite, "--overwrite"}, {Action::selection, "--sel", "--sel {}"}};
    const auto error_of = [&](const HierarchyOptions& options) {
        try {
            copy_hierarchy(source, path("to"), options);
        } catch (const Error& e) {
            return e.within("twice");
        }
        ADD_FAILURE() << "no error";
        return Error(ErrorCode::io, "");
    };
    const Error several = error_of({.arrays = {.dimension_names = {{"x"}}}});
    EXPECT_THAT(several.what(), HasSubstr(source + " holds several arrays"));
    EXPECT_THAT(error_of({.selection = "0:2"}).what(), HasSubstr("\"0:2\" has no name"));
    copy_hierarchy(source, path("to"));
    const Error there = error_of({});
    EXPECT_THAT(there.what(), EndsWith("to is already a group"));
    EXPECT_EQ(advice_text(there.advice(), names),
              "; --overwrite replaces those of its arrays that " + source + " has too");
    EXPECT_EQ(advice_text(there.advice(), {}), "");
    EXPECT_EQ(advice_text({{Action::selection, "", "0, :"}, {Action::overwrite, "replaces it"}}, names),
              "; give --sel 0, :, --overwrite replaces it");
}

TEST_F(CopyHierarchy, a_copy_that_is_stopped_leaves_nothing) {
    std::stop_source stop;
    stop.request_stop();
    expect_error(ErrorCode::cancelled, "nothing is left",
                 [&] { copy_hierarchy(source, path("to"), {.io = {.stop = stop.get_token()}}); });
    EXPECT_FALSE(fs::exists(path("to")));
}

}  // namespace
}  // namespace tessera
