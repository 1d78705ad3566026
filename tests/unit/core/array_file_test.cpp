#include <tessera/array_file.h>

#include <sys/resource.h>
#include <csignal>

#include <numeric>

#include <fmt/format.h>

#include <tessera/copy_elements.h>

#include "files.h"

namespace tessera {
namespace {

using namespace test;

const std::filesystem::path golden = TESSERA_GOLDEN;

TEST(ArrayPath, SplitsAtTheMarkUnlessAFileIsCalledThat) {
    const Folder folder;
    const auto split = [](const std::filesystem::path& p) { return split_array_path(p.string()); };
    put(folder / "a.npz", "");
    put(folder / "odd::name.npz", "");
    std::filesystem::create_directory(folder / "x::y");
    put(folder / "x::y/b.npz", "");
    const auto expect = [&](const std::string& text, const std::string& path,
                            const std::optional<std::string>& member) {
        const ArrayPath got = split(folder / text);
        EXPECT_EQ(got.path, folder / path) << text;
        EXPECT_EQ(got.member, member) << text;
    };
    expect("a.npz", "a.npz", {});
    expect("a.npz::m", "a.npz", "m");
    expect("a.npz::m::n", "a.npz", "m::n");
    expect("a.npz::", "a.npz", "");
    expect("odd::name.npz", "odd::name.npz", {});
    expect("odd::name.npz::grp/m", "odd::name.npz", "grp/m");
    expect("x::y/b.npz::m", "x::y/b.npz", "m");
    expect("new.npz::m::n", "new.npz", "m::n");
    expect("new.npy", "new.npy", {});
}

TEST(ArrayFile, IsFoundByContentOrForANewOneByName) {
    const Folder folder;
    std::filesystem::copy(golden / "npy/t_i4.npy", folder / "misnamed.npz");
    std::filesystem::copy(golden / "npz/savez.npz", folder / "no_extension");
    put(folder / "text.npy", "hello");
    put(folder / "text.txt", "hello");
    const auto name_of = [](const std::filesystem::path& path) {
        const ArrayFileFormat* f = find_array_file_format(path);
        return f == nullptr ? "none" : std::string(f->name);
    };
    EXPECT_EQ(name_of(folder / "misnamed.npz"), "npy");
    EXPECT_EQ(name_of(folder / "no_extension"), "npz");
    EXPECT_EQ(name_of(golden / "npz/no_members.npz"), "npz");
    EXPECT_EQ(name_of(folder / "text.npy"), "none");
    EXPECT_EQ(name_of(folder.path()), "none");
    EXPECT_EQ(name_of(folder / "new.npy"), "npy");
    EXPECT_EQ(name_of(folder / "new.npz"), "npz");
    EXPECT_EQ(name_of(folder / "new.txt"), "none");
    EXPECT_EQ(error_of([&] { (void)open_array_file({folder / "text.npy"}); }, "text.npy"), ErrorCode::corrupt);
    EXPECT_EQ(error_of([&] { (void)open_array_file({folder / "text.txt"}); }, ".npy, .npz"), ErrorCode::unsupported);
    EXPECT_EQ(error_of([&] { (void)open_array_file({folder / "none.npy"}); }, "none.npy"), ErrorCode::not_found);
    EXPECT_EQ(error_of([&] { (void)open_array_file({folder.path()}); }, "directory"), ErrorCode::io);
    EXPECT_EQ(error_of([&] { (void)create_array_file({folder / "new.txt"}, "<i4", {2}); }, ".npy, .npz"),
              ErrorCode::unsupported);
}

TEST(ArrayFile, MembersAreAskedForWhereThereAreSeveral) {
    const ArrayPath savez{golden / "npz/savez.npz"};
    EXPECT_EQ(error_of([&] { (void)open_array_file(savez); }, "a, b, flags, s"), ErrorCode::invalid_argument);
    EXPECT_EQ(open_array_file({savez.path, "a"})->info().shape, (Shape{5, 4}));
    EXPECT_EQ(error_of([&] { (void)open_array_file({savez.path, ""}); }, "a, b, flags, s"), ErrorCode::not_found);
    EXPECT_EQ(error_of([&] { (void)open_array_file({golden / "npz/no_members.npz"}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(error_of(
                  [&] {
                      (void)open_array_file({golden / "npy/t_i4.npy", "a"});
                  },
                  "single array"),
              ErrorCode::invalid_argument);
    EXPECT_EQ(find_array_file_format(savez.path)->members({savez.path}),
              (std::vector<std::string>{"a", "b", "flags", "s"}));
}

TEST(ArrayFile, WhatIsCreatedNumPyReads) {
    const Folder folder;
    std::vector<std::int32_t> values(2000 * 300);
    std::iota(values.begin(), values.end(), -1000);
    const Shape shape{2000, 300};
    const ArrayView all = view(values, shape);
    const auto write = [&](const ArrayPath& path, const ArrayFileOptions& options) {
        const auto sink = create_array_file(path, "<i4", shape, options);
        const int slow = options.order == Order::C ? 0 : 1;
        for (std::int64_t i = 0; i < shape[slow]; i += 100) {
            Region part = Region::whole(shape);
            part.start[slow] = i;
            part.extent[slow] = 100;
            sink->write(part, all.part(part), {});
        }
        EXPECT_FALSE(std::filesystem::exists(path.path));
        sink->finish();
        const auto source = open_array_file(path);
        NDArray back(source->info().dtype, shape);
        source->read_into(Region::whole(shape), back.view(), {});
        EXPECT_TRUE(elements_equal(back.view(), all));
    };
    write({folder / "c.npy"}, {});
    write({folder / "f.npy"}, {.order = Order::F});
    write({folder / "c.npz"}, {});
    write({folder / "f.npz", "grp/m"}, {.order = Order::F, .deflate_level = 6});
    EXPECT_EQ(python(folder, R"(
import numpy as np
want = np.arange(-1000, 599000, dtype='<i4').reshape(2000, 300)
for a in np.load('c.npy'), np.load('f.npy'), np.load('c.npz')['arr_0'], np.load('f.npz')['grp/m']:
    print((a == want).all(), a.dtype.str, a.flags.f_contiguous)
)"),
              "True <i4 False\nTrue <i4 True\nTrue <i4 False\nTrue <i4 True\n");
    EXPECT_LT(std::filesystem::file_size(folder / "f.npz"), std::filesystem::file_size(folder / "c.npz") * 3 / 4);
}

TEST(ArrayFile, FullDiskLeavesNothing) {
    const Folder folder;
    const std::vector<double> values(500'000);
    ::rlimit old{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const ::rlimit small{1 << 20, old.rlim_max};
    for (const char* name : {"a.npy", "a.npz"}) {
        ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
        EXPECT_EQ(error_of(
                      [&] {
                          const auto sink = create_array_file({folder / name}, "<f8", {500'000});
                          sink->write(Region::whole({500'000}), view(values), {});
                          sink->finish();
                      },
                      "cannot write"),
                  ErrorCode::io);
        ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
        EXPECT_EQ(folder.entries(), 0) << name;
    }
    std::signal(SIGXFSZ, handler);
}

TEST(ArrayFile, DescribesItsHeader) {
    const auto describe = [](const ArrayPath& path) {
        return find_array_file_format(path.path)->describe(path).dump();
    };
    EXPECT_EQ(Value::parse(describe({golden / "npy/forder_i4.npy"})), Value::parse(R"({
        "format": "npy", "version": "1.0", "header_length": 118, "data_offset": 128, "order": "F", "dtype": "<i4",
        "shape": [4, 3, 5]})"));
    const Value npz = Value::parse(describe({golden / "npz/savez_compressed.npz"}));
    EXPECT_EQ(npz.at("format"), Value("npz"));
    ASSERT_EQ(npz.at("members").as_array().size(), 4U);
    const Value& a = npz.at("members").as_array()[0];
    EXPECT_EQ(a.at("name"), Value("a.npy"));
    EXPECT_EQ(a.at("method"), Value("deflate"));
    EXPECT_EQ(a.at("size"), Value(288));
    EXPECT_LT(a.at("compressed_size").as_int64(), 288);
    EXPECT_EQ(a.at("npy").at("dtype"), Value("<f8"));
    const Value one = Value::parse(describe({golden / "npz/savez_compressed.npz", "b"}));
    ASSERT_EQ(one.at("members").as_array().size(), 1U);
    EXPECT_EQ(one.at("members").as_array()[0].at("npy").at("dtype"), Value(">i2"));
}

}  // namespace
}  // namespace tessera
