#include <tessera/npy.h>

#include <algorithm>
#include <numeric>
#include <random>

#include <fmt/format.h>

#include <tessera/array_io.h>
#include <tessera/copy_elements.h>

#include "files.h"

namespace tessera {
namespace {

using namespace test;

const std::filesystem::path golden = std::filesystem::path(TESSERA_GOLDEN) / "npy";

const Value& cases() {
    static const Value manifest = Value::parse(content(golden / "manifest.json"));
    return manifest.at("cases");
}

bool flag(const Value& c, std::string_view key) {
    return c.find(key) != nullptr;
}

/// Elements equal, dtype and byte order apart where only padding and order can differ. The expected file is
/// little-endian.
void expect_equal(const NDArray& a, const NDArray& b) {
    ASSERT_EQ(a.shape(), b.shape());
    ASSERT_TRUE(a.dtype().equal_but_order(b.dtype())) << a.dtype().to_string() << " and " << b.dtype().to_string();
    EXPECT_TRUE(elements_equal(a.view(), b.view()));
}

NDArray load_golden(const std::string& name) {
    return load_npy(golden / name);
}

TEST(NpyGolden, EveryCaseReadsEqualToNumPysCopy) {
    int read = 0;
    for (const Value& c : cases().as_array()) {
        if (!flag(c, "expected")) continue;
        SCOPED_TRACE(c.at("name").as_string());
        const NDArray a = load_golden(c.at("path").as_string());
        expect_equal(a, load_golden(c.at("expected").as_string()));
        std::vector<std::int64_t> shape;
        for (const Value& n : c.at("shape").as_array()) shape.push_back(n.as_int64());
        EXPECT_EQ(a.shape(), Shape(shape));
        if (const Value* npy = c.find("npy")) {
            const NpyHeader h = read_npy_header(*open_file(golden / c.at("path").as_string()));
            EXPECT_EQ(h.major, npy->at("version").as_array()[0].as_int64());
            EXPECT_EQ(h.data_offset, npy->at("data_offset").as_uint64());
        }
        ++read;
    }
    EXPECT_EQ(read, 67);
}

TEST(NpyGolden, EveryDamagedFileIsAnError) {
    int refused = 0;
    for (const Value& c : cases().as_array()) {
        if (!flag(c, "expect_error")) continue;
        const std::string path = c.at("path").as_string();
        SCOPED_TRACE(path);
        const auto code = error_of([&] { (void)load_golden(path); }, path);
        EXPECT_EQ(code, path == "error_version_9.npy" ? ErrorCode::unsupported : ErrorCode::corrupt);
        EXPECT_EQ(error_of([&] { (void)MappedNpy(golden / path); }, path), code);
        ++refused;
    }
    EXPECT_EQ(refused, 12);
}

TEST(NpyGolden, ObjectArraysOfStringsAreReadAndOthersShowTheirHeader) {
    const NDArray strings = load_golden("object_str.npy");
    EXPECT_EQ(strings.dtype(), DType::variable_text());
    EXPECT_EQ(strings.shape(), (Shape{4}));
    const auto* slots = reinterpret_cast<const VariableSlot*>(strings.bytes().data());
    EXPECT_EQ(slots[0].view(), "hello");
    EXPECT_EQ(slots[1].view(), "\u00e9\u2603");
    EXPECT_EQ(slots[2].view(), "");
    EXPECT_EQ(slots[3].view(), std::string(300, 'x'));

    const auto mixed = open_npy(open_file(golden / "object_mixed.npy"));
    EXPECT_EQ(mixed->info().dtype.kind(), Kind::object);
    EXPECT_EQ(mixed->info().shape, (Shape{3}));
    NDArray out(mixed->info().dtype, mixed->info().shape);
    EXPECT_EQ(error_of([&] { mixed->read_into(Region::whole(out.shape()), out.view(), {}); }, "a dict at element 1"),
              ErrorCode::unsupported);
    EXPECT_EQ(error_of([&] { (void)load_golden("object_mixed.npy"); }, "object_mixed.npy"), ErrorCode::unsupported);
    EXPECT_EQ(error_of([&] { (void)MappedNpy(golden / "object_str.npy"); }, "object_str.npy"), ErrorCode::unsupported);
}

TEST(NpyGolden, WritesWhatNumPyWrites) {
    const Folder folder;
    std::string script = "import numpy as np\n";
    std::vector<std::string> names;
    for (const Value& c : cases().as_array()) {
        if (!flag(c, "expected")) continue;
        names.push_back(c.at("path").as_string());
        script +=
            fmt::format("np.save('{0}', np.load('{1}/{0}', max_header_size=10**9))\n", names.back(), golden.string());
    }
    python(folder, script);
    for (const std::string& name : names) {
        SCOPED_TRACE(name);
        const NDArray a = load_golden(name);
        save_npy(folder / "ours.npy", a.view());
        const std::string ours = content(folder / "ours.npy"), numpys = content(folder / name);
        const std::size_t header = read_npy_header(*open_file(folder / name)).data_offset;
        ASSERT_GE(ours.size(), header);
        EXPECT_EQ(ours.substr(0, header), numpys.substr(0, header));
        // Padding inside structures is whatever lay in NumPy's memory, so those are compared by their elements.
        if (a.dtype().kind() == Kind::structure) {
            expect_equal(load_npy(folder / "ours.npy"), load_npy(folder / name));
        } else {
            EXPECT_EQ(ours, numpys);
        }
    }
}

TEST(NpyHeader, GrowthRoomAndPaddingAsNumPyForManyLengths) {
    const Folder folder;
    const std::vector<std::pair<Shape, Order>> layouts = [] {
        std::vector<std::pair<Shape, Order>> all{{Shape{}, Order::C}, {Shape{1, 7}, Order::F}, {Shape{0, 3}, Order::F}};
        for (std::int64_t n = 1; n < 2'000'000'000'000; n *= 7) {
            all.push_back({Shape{n, 0}, Order::C});
            all.push_back({Shape{2, n % 50 + 2, 3}, n % 2 == 1 ? Order::F : Order::C});
        }
        return all;
    }();
    // A field name of every length from 1 to 130 walks the end of the header over every alignment.
    std::string script =
        "import numpy as np, io\n"
        "def head(dtype, shape, order):\n"
        "    f = io.BytesIO()\n"
        "    np.lib.format._write_array_header(f, dict(shape=shape, fortran_order=order,\n"
        "        descr=np.lib.format.dtype_to_descr(np.dtype(dtype))))\n"
        "    print(f.getvalue().hex())\n";
    std::string expected;
    const auto add = [&](const DType& dtype, const std::string& python_dtype, const Shape& shape, Order order,
                         bool fortran) {
        script += fmt::format("head({}, {}, {})\n", python_dtype, shape.to_string(), fortran ? "True" : "False");
        for (const char c : npy_header_bytes(dtype, shape, order))
            expected += fmt::format("{:02x}", static_cast<std::uint8_t>(c));
        expected += '\n';
    };
    for (const auto& [shape, order] : layouts) {
        const bool fortran = order == Order::F && shape.rank() == 3;
        add("<f8", "'<f8'", shape, order, fortran);
    }
    for (int n = 1; n <= 130; ++n) {
        const std::string name(static_cast<std::size_t>(n), 'x');
        add(fmt::format("[('{}','>u2')]", name), fmt::format("[('{}','>u2')]", name), Shape{n}, Order::C, false);
    }
    // Around the longest header of version 1, and beyond latin-1.
    for (int n = 65'400; n < 65'540; n += 7) {
        const std::string name(static_cast<std::size_t>(n), 'y');
        add(fmt::format("[('{}','<i4')]", name), fmt::format("[('y'*{},'<i4')]", n), Shape{3}, Order::C, false);
    }
    for (const char* name : {"\u00e9t\u00e9", "\u540d\u524d", "a\u0394"}) {
        add(fmt::format("[('{}','<i4')]", name), fmt::format("[('{}','<i4')]", name), Shape{3}, Order::C, false);
    }
    EXPECT_EQ(python(folder, script), expected);
}

TEST(NpyHeader, RefusesDtypesThatNpyCannotSay) {
    for (const char* dtype : {"bfloat16", "string", "bytes", "[('a','<i4'),('b','O')]"}) {
        EXPECT_EQ(error_of([&] { (void)npy_header_bytes(dtype, {3}, Order::C); }), ErrorCode::unsupported) << dtype;
    }
    const Folder folder;
    const std::vector<float> v{1, 2};
    for (const char* dtype : {"bfloat16", "O"}) {
        EXPECT_EQ(error_of([&] { (void)create_npy(create_file(folder / "a.npy"), dtype, {3}); }),
                  ErrorCode::unsupported);
    }
    EXPECT_EQ(folder.entries(), 0);
}

/// A whole .npy in memory: version, header text as given, data.
std::unique_ptr<ByteSource> made(std::string_view text, std::size_t data = 64, char version = 1,
                                 std::optional<std::uint32_t> length = {}) {
    std::string file = "\x93NUMPY";
    file += version;
    file += '\0';
    const std::uint32_t n = length.value_or(static_cast<std::uint32_t>(text.size()));
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file += static_cast<char>(n >> (8 * i) & 0xFF);
    file += text;
    file.append(data, '\0');
    return memory_source(Buffer(bytes(file)), "made.npy");
}

TEST(NpyHeader, HostileHeadersAreRefusedBeforeAnythingIsAllocated) {
    const auto code = [](const std::unique_ptr<ByteSource>& file, const std::string& words) {
        return error_of([&] { (void)read_npy_header(*file); }, words);
    };
    const std::string good = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }";
    EXPECT_EQ(code(made(good), ""), std::nullopt);
    EXPECT_EQ(code(made(good, 7), "needs 8 bytes of data, but only 7"), ErrorCode::corrupt);
    EXPECT_EQ(code(made(good, 0, 2, 0xFFFFFFFF), "at most"), ErrorCode::unsupported);
    EXPECT_EQ(code(made(good, 0, 2, 1 << 20), "only"), ErrorCode::corrupt);
    for (const char* bad : {"{'descr': '<i4', 'fortran_order': False, 'shape': [2]}",
                            "{'descr': '<i4', 'fortran_order': False, 'shape': 2}",
                            "{'descr': '<i4', 'fortran_order': False, 'shape': (2.0,)}",
                            "{'descr': '<i4', 'fortran_order': False, 'shape': (True,)}",
                            "{'descr': '<i4', 'fortran_order': False, 'shape': (-1,)}",
                            "{'descr': '<i4', 'fortran_order': False, 'shape': ('2',)}",
                            "{'descr': '<i4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
                            "{'descr': '<i4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
                            "{'descr': '<i4', 'fortran_order': False, 'shape': (0, 4611686018427387904, 4)}",
                            "{'descr': '<i4', 'fortran_order': False, 'shape': (4611686018427387904,)}",
                            "{'descr': '<i4', 'fortran_order': 0, 'shape': (2,)}",
                            "{'descr': '<i4', 'fortran_order': None, 'shape': (2,)}",
                            "{'descr': '<i4', 'fortran_order': False}",
                            "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), 'x': 1}",
                            "{'descr': '<i4', 'descr': '<i4', 'fortran_order': False, 'shape': (2,)}",
                            "{'descr': 'string', 'fortran_order': False, 'shape': (2,)}",
                            "{'descr': 'bfloat16', 'fortran_order': False, 'shape': (2,)}",
                            "{'descr': '<i9', 'fortran_order': False, 'shape': (2,)}",
                            "{'descr': 4, 'fortran_order': False, 'shape': (2,)}",
                            "{'descr': [], 'fortran_order': False, 'shape': (2,)} x",
                            "()",
                            "",
                            "__import__('os')"}) {
        SCOPED_TRACE(bad);
        const auto got = code(made(bad), "made.npy");
        EXPECT_EQ(got, ErrorCode::corrupt);
    }
    std::string many = "{'descr': '<i4', 'fortran_order': False, 'shape': (";
    for (int i = 0; i < 33; ++i) many += "1, ";
    EXPECT_EQ(code(made(many + ")}"), "33 dimensions"), ErrorCode::unsupported);
    EXPECT_EQ(code(made("{'descr': [('\xff','<i4')], 'fortran_order': False, 'shape': (2,)}", 64, 3), "UTF-8"),
              ErrorCode::corrupt);
    EXPECT_EQ(code(made("{'descr': [('\xff','<i4')], 'fortran_order': False, 'shape': (2,)}", 64, 1), ""),
              std::nullopt);
    const std::string truncated = good.substr(0, 20);
    for (std::size_t n = 0; n < truncated.size(); ++n) {
        EXPECT_EQ(code(memory_source(Buffer(bytes(truncated.substr(0, n))), "made.npy"), ""), ErrorCode::corrupt);
    }
}

// ---- regions

template <class T>
NDArray numbered(const Shape& shape, Order order = Order::C) {
    NDArray a(DType::of<T>(), shape, order);
    std::iota(a.values<T>().begin(), a.values<T>().end(), T(1));
    return a;
}

/// Memory of this shape whose every axis has gaps and some run backwards: the hardest place to read into.
struct Scattered {
    explicit Scattered(const DType& dtype, const Shape& shape) {
        Shape wide = shape;
        for (auto& n : wide) n *= 2;
        array = NDArray(dtype, wide, Order::F);
        std::fill(array.bytes().begin(), array.bytes().end(), std::byte{0xEE});
        view = array.view();
        view.shape = shape;
        for (int d = 0; d < shape.rank(); ++d) {
            view.strides[d] *= 2;
            if (d % 2 == 1 && shape[d] > 0) {
                view.data += (shape[d] - 1) * view.strides[d];
                view.strides[d] = -view.strides[d];
            }
        }
    }
    NDArray array;
    MutableArrayView view;
};

struct Layout {
    Shape shape;
    Order order;
};

class NpyRegions : public testing::TestWithParam<Layout> {};

TEST_P(NpyRegions, AnyRegionIntoAnyMemoryInAnyByteOrder) {
    const auto& [shape, order] = GetParam();
    const Folder folder;
    const NDArray all = numbered<std::int32_t>(shape, order);
    save_npy(folder / "a.npy", all.view());
    const auto source = open_npy(open_file(folder / "a.npy"));
    EXPECT_EQ(source->info().access, Access::any);
    std::mt19937 random(7);
    for (int round = 0; round < 6; ++round) {
        Region region = Region::whole(shape);
        for (int d = 0; d < shape.rank() && round > 0; ++d) {
            region.start[d] = std::uniform_int_distribution<std::int64_t>(0, shape[d] - 1)(random);
            region.extent[d] = std::uniform_int_distribution<std::int64_t>(1, shape[d] - region.start[d])(random);
        }
        SCOPED_TRACE(region.to_string());
        const ArrayView expected = all.view().part(region);
        const IoOptions io{.threads = round % 2 == 0 ? 4 : 1, .stop = {}, .progress = nullptr};
        for (const Order memory : {Order::C, Order::F}) {
            NDArray out(DType::of<std::int32_t>(), region.extent, memory);
            source->read_into(region, out.view(), io);
            EXPECT_TRUE(elements_equal(out.view(), expected));
        }
        NDArray big(">i4", region.extent);
        source->read_into(region, big.view(), io);
        EXPECT_TRUE(elements_equal(big.view(), expected));
        const Scattered scattered(DType::of<std::int32_t>(), region.extent);
        source->read_into(region, scattered.view, io);
        EXPECT_TRUE(elements_equal(scattered.view, expected));
    }
}

TEST_P(NpyRegions, WrittenBlockByBlockItIsTheSameFile) {
    const auto& [shape, order] = GetParam();
    const Folder folder;
    const NDArray all = numbered<std::int32_t>(shape, order);
    save_npy(folder / "whole.npy", all.view());
    const auto sink = create_npy(create_file(folder / "blocks.npy"), DType::of<std::int32_t>(), shape, order);
    std::vector<Region> blocks{Region::whole(shape)};
    for (int d = 0; d < shape.rank(); ++d) {
        std::vector<Region> halves;
        for (const Region& b : blocks) {
            const std::int64_t cut = b.extent[d] / 3;
            Region low = b, high = b;
            low.extent[d] = cut;
            high.start[d] += cut;
            high.extent[d] -= cut;
            halves.push_back(high);
            halves.push_back(low);
        }
        blocks = halves;
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const ArrayView part = all.view().part(blocks[i]);
        if (i % 3 == 0) {
            sink->write(blocks[i], part, {});
        } else if (i % 3 == 1) {
            NDArray big(">i4", part.shape);
            copy_elements(part, big.view());
            sink->write(blocks[i], big.view(), {});
        } else {
            const Scattered scattered(DType::of<std::int32_t>(), part.shape);
            copy_elements(part, scattered.view);
            sink->write(blocks[i], scattered.view, {});
        }
    }
    sink->finish();
    EXPECT_TRUE(content(folder / "blocks.npy") == content(folder / "whole.npy"));
}

INSTANTIATE_TEST_SUITE_P(Layouts, NpyRegions,
                         testing::Values(Layout{{5, 6, 7}, Order::C}, Layout{{5, 6, 7}, Order::F},
                                         Layout{{2'500'000}, Order::C},      // more than two jobs
                                         Layout{{3, 1, 900'000}, Order::C},  // long rows
                                         Layout{{1500, 1600}, Order::C},     // rows with gaps above 4 KiB
                                         Layout{{1500, 1600}, Order::F}, Layout{{40'000, 60}, Order::C},  // short rows
                                         Layout{{60, 40'000}, Order::F}, Layout{{90, 130, 200}, Order::C},
                                         Layout{{90, 130, 200}, Order::F}, Layout{{1, 1, 1}, Order::C}));

TEST(NpySource, RegionsThatDoNotFitAreRefusedAndNamed) {
    const Folder folder;
    save_npy(folder / "a.npy", numbered<std::int32_t>({4, 5}).view());
    const auto source = open_npy(open_file(folder / "a.npy"));
    NDArray out("<i4", {2, 2});
    EXPECT_EQ(error_of(
                  [&] {
                      source->read_into({{3, 0}, {2, 2}}, out.view(), {});
                  },
                  "a.npy"),
              ErrorCode::out_of_bounds);
    EXPECT_EQ(error_of(
                  [&] {
                      source->read_into({{0, 0}, {2, 3}}, out.view(), {});
                  },
                  "a.npy"),
              ErrorCode::invalid_argument);
    NDArray wrong("<f4", {2, 2});
    EXPECT_EQ(error_of(
                  [&] {
                      source->read_into({{0, 0}, {2, 2}}, wrong.view(), {});
                  },
                  "a.npy"),
              ErrorCode::invalid_argument);
}

TEST(NpySource, TruncationAfterOpeningAndStopRequestsAreErrors) {
    const Folder folder;
    save_npy(folder / "a.npy", numbered<std::int32_t>({3'000'000}).view());
    const auto source = open_npy(open_file(folder / "a.npy"));
    NDArray out("<i4", {3'000'000});
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(error_of([&] { source->read_into(Region::whole(out.shape()), out.view(), {.stop = stop.get_token()}); }),
              ErrorCode::cancelled);
    std::filesystem::resize_file(folder / "a.npy", 9'000'000);
    EXPECT_EQ(error_of([&] { source->read_into(Region::whole(out.shape()), out.view(), {.threads = 4}); }, "truncated"),
              ErrorCode::corrupt);
    EXPECT_EQ(error_of([&] { (void)open_npy(open_file(folder / "a.npy")); }, "a.npy"), ErrorCode::corrupt);
}

TEST(NpySink, WhatIsNeverWrittenIsZeroAndTheLengthIsRight) {
    const Folder folder;
    for (const Order order : {Order::C, Order::F}) {
        const auto sink = create_npy(create_file(folder / "a.npy"), "<i4", {100, 90}, order);
        const NDArray part = numbered<std::int32_t>({3, 4});
        sink->write({{7, 8}, {3, 4}}, part.view(), {});
        sink->finish();
        EXPECT_EQ(std::filesystem::file_size(folder / "a.npy"), 128U + 36'000U);
        EXPECT_EQ(
            python(
                folder,
                "import numpy as np\n"
                "a = np.load('a.npy'); b = np.zeros((100, 90), '<i4'); b[7:10, 8:12] = np.arange(1, 13).reshape(3, 4)\n"
                "print((a == b).all(), a.flags.f_contiguous, a.flags.c_contiguous)"),
            order == Order::C ? "True False True\n" : "True True False\n");
    }
}

/// A sink that cannot seek, as a zip member is.
class Pipe final : public ByteSink {
public:
    explicit Pipe(std::string& out) : out_(out) {}
    bool random_access() const override { return false; }
    void append(ByteSpan b) override { out_.append(reinterpret_cast<const char*>(b.data()), b.size()); }
    void write_at(std::uint64_t, ByteSpan) override { FAIL() << "write_at on a stream"; }
    void finish() override {}
    const std::string& name() const override { return name_; }

private:
    std::string& out_;
    std::string name_ = "pipe";
};

TEST(NpySink, StreamTakesRegionsInMemoryOrderOnly) {
    const Folder folder;
    for (const Order order : {Order::C, Order::F}) {
        const NDArray all = numbered<std::int32_t>({60, 50}, order);
        save_npy(folder / "a.npy", all.view());
        std::string out;
        const auto sink = create_npy(std::make_unique<Pipe>(out), "<i4", {60, 50}, order);
        EXPECT_EQ(sink->info().access, Access::stream);
        const int slow = order == Order::C ? 0 : 1;
        for (std::int64_t i = 0, n = 0; i < all.shape()[slow]; i += n) {
            n = std::min<std::int64_t>(7, all.shape()[slow] - i);
            Region rows = Region::whole({60, 50});
            rows.start[slow] = i;
            rows.extent[slow] = n;
            sink->write(rows, all.view().part(rows), {.threads = 4});
        }
        EXPECT_EQ(error_of(
                      [&] {
                          sink->write({{0, 0}, {1, 1}}, all.view().part({{0, 0}, {1, 1}}), {});
                      },
                      "memory order"),
                  ErrorCode::invalid_argument);
        sink->finish();
        EXPECT_TRUE(out == content(folder / "a.npy"));
    }
    std::string out;
    const auto sink = create_npy(std::make_unique<Pipe>(out), "<i4", {50'000});
    const std::int32_t one = 1;
    sink->write({{20'000}, {1}}, view(std::span(&one, 1)), {});
    sink->finish();
    put(folder / "gaps.npy", out);
    const NDArray gaps = load_npy(folder / "gaps.npy");
    EXPECT_EQ(gaps.values<std::int32_t>()[20'000], 1);
    EXPECT_EQ(std::count(gaps.values<std::int32_t>().begin(), gaps.values<std::int32_t>().end(), 0), 49'999);
}

TEST(NpySave, FortranOrderOnlyWhereItDiffersAndStridedMemoryPacked) {
    const Folder folder;
    const NDArray f = numbered<std::int16_t>({4, 5}, Order::F);
    save_npy(folder / "f.npy", f.view());
    EXPECT_EQ(read_npy_header(*open_file(folder / "f.npy")).order, Order::F);
    save_npy(folder / "t.npy", f.view().transposed({1, 0}));
    EXPECT_EQ(read_npy_header(*open_file(folder / "t.npy")).order, Order::C);
    save_npy(folder / "p.npy", f.view().part({{1, 1}, {2, 3}}));
    EXPECT_EQ(read_npy_header(*open_file(folder / "p.npy")).order, Order::C);
    EXPECT_EQ(python(folder,
                     "import numpy as np\nf = np.arange(1, 21, dtype='i2').reshape(4, 5, order='F')\n"
                     "print((np.load('f.npy') == f).all(), (np.load('t.npy') == f.T).all(),"
                     " (np.load('p.npy') == f[1:3, 1:4]).all())"),
              "True True True\n");
}

// ---- mapping

TEST(MappedNpy, ReadReadWriteAndCreate) {
    const Folder folder;
    python(folder, "import numpy as np\nnp.save('a.npy', np.arange(12, dtype='<i4').reshape(3, 4, order='F'))");
    {
        MappedNpy r(folder / "a.npy");
        EXPECT_EQ(r.header().order, Order::F);
        EXPECT_EQ(r.view().typed<std::int32_t>()(1, 2), 7);
        EXPECT_EQ(error_of([&] { (void)r.mutable_view(); }, "a.npy"), ErrorCode::invalid_argument);
        MappedNpy rw(folder / "a.npy", MappedNpy::Mode::read_write);
        MappedNpy moved = std::move(rw);
        moved.mutable_view().typed<std::int32_t>()(1, 2) = -5;
        moved.flush();
        EXPECT_EQ(r.view().typed<std::int32_t>()(1, 2), -5);  // the same file
        MappedNpy w = MappedNpy::create(folder / "a.npy", "<f8", {2, 3});
        EXPECT_EQ(w.view().typed<double>()(1, 2), 0.0);
        w.mutable_view().typed<double>()(1, 2) = 2.5;
        w.flush();
    }
    EXPECT_EQ(python(folder, "import numpy as np\nprint(np.load('a.npy').tolist())"),
              "[[0.0, 0.0, 0.0], [0.0, 0.0, 2.5]]\n");
    EXPECT_EQ(error_of([&] { (void)MappedNpy(folder / "none.npy"); }), ErrorCode::not_found);
}

TEST(MappedNpy, EveryGoldenCaseMapsEqual) {
    for (const Value& c : cases().as_array()) {
        if (!flag(c, "expected")) continue;
        SCOPED_TRACE(c.at("name").as_string());
        const MappedNpy mapped(golden / c.at("path").as_string());
        const NDArray expected = load_golden(c.at("expected").as_string());
        EXPECT_TRUE(elements_equal(mapped.view(), expected.view()));
    }
}

// ---- selections

/// Counts what is asked of the source beneath.
class Counting final : public ArraySource {
public:
    Counting(std::unique_ptr<ArraySource> inner, Shape chunks) : inner_(std::move(inner)), chunks_(chunks) {}
    ArrayInfo info() const override {
        ArrayInfo info = inner_->info();
        info.chunks = chunks_;
        return info;
    }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        elements += region.count();
        largest = std::max(largest, region.count());
        ++reads;
        inner_->read_into(region, out, io);
    }
    const std::string& name() const override { return inner_->name(); }
    mutable std::int64_t elements = 0, largest = 0, reads = 0;

private:
    std::unique_ptr<ArraySource> inner_;
    Shape chunks_;
};

TEST(ReadSelection, EqualsNumPysSlices) {
    const Folder folder;
    const NDArray all = numbered<std::int32_t>({7, 9, 11});
    save_npy(folder / "a.npy", all.view());
    const std::vector<std::string> selections{"",         "...",
                                              "3",        "-1",
                                              "1:4, 2:5", "::2, ::3, ::4",
                                              "::-1",     "::-2, 1, ::-3",
                                              "..., 0",   "5:2:-1, ..., 10:0:-4",
                                              "2:2",      "6, 8, 10",
                                              "::100",    "1:6:3, :, -3:"};
    std::string script = "import numpy as np\na = np.load('a.npy')\n";
    for (const std::string& s : selections) {
        script += fmt::format("b = a[{0}]\nprint(b.shape, np.ravel(b).tolist())\n", s.empty() ? "..." : s);
    }
    std::string ours;
    for (const Shape& chunks : {Shape{}, Shape{2, 3, 4}}) {
        ours.clear();
        const Counting source(open_npy(open_file(folder / "a.npy")), chunks);
        for (const std::string& s : selections) {
            const NDArray b = read_selection(source, Selection::parse(s, {7, 9, 11}));
            std::vector<std::string> numbers;
            for (const std::int32_t v : b.values<std::int32_t>()) numbers.push_back(std::to_string(v));
            ours += b.shape().to_string() + " [";
            for (std::size_t i = 0; i < numbers.size(); ++i) ours += (i > 0 ? ", " : "") + numbers[i];
            ours += "]\n";
        }
        EXPECT_EQ(ours, python(folder, script));
    }
}

TEST(ReadSelection, LargeStepsReadLittleAndChunksOnce) {
    const Folder folder;
    const Shape shape{3000, 20'000};  // 240 MB, sparse
    create_npy(create_file(folder / "a.npy"), "<i4", shape)->finish();
    const Counting plain(open_npy(open_file(folder / "a.npy")), {});
    EXPECT_EQ(read_selection(plain, Selection::parse("::300, :", shape)).shape(), (Shape{10, 20'000}));
    EXPECT_EQ(plain.elements, 200'000);  // nothing in between
    (void)read_selection(plain, Selection::parse(":, ::10000", shape));
    EXPECT_LE(plain.largest, (8 << 20) / 4);  // in slabs
    const Counting chunked(open_npy(open_file(folder / "a.npy")), {1000, 1000});
    (void)read_selection(chunked, Selection::parse("::7, ::5000", shape));
    EXPECT_EQ(chunked.reads, 3 * 4);  // each chunk with a picked element once
}

}  // namespace
}  // namespace tessera
