#include "pickle.h"

#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/copy_elements.h>
#include <tessera/npy.h>

#include <tessera/unicode.h>
#include "files.h"

namespace tessera {
namespace {

using namespace test;

const std::filesystem::path golden = std::filesystem::path(TESSERA_GOLDEN) / "pickle";

const std::filesystem::path bad = std::filesystem::path(TESSERA_GOLDEN) / "bad/pickle";

PickledStrings read(std::string_view pickle) {
    return read_pickled_strings(Buffer(bytes(pickle)));
}

/// An array of strings, from a list as C++ writes it.
NDArray strings(const DType& dtype, const Shape& shape, const std::vector<std::string>& elements) {
    NDArray a(dtype, shape);
    auto* slot = reinterpret_cast<VariableSlot*>(a.bytes().data());
    for (const std::string& e : elements) *slot++ = a.view().arena->add(e);
    return a;
}

void save_objects(const std::filesystem::path& path, const NDArray& a, Order order = Order::C) {
    const auto sink = create_array_file({path}, a.dtype(), a.shape(), {.order = order, .object_strings = true});
    sink->write(Region::whole(a.shape()), a.view(), {});
    sink->finish();
}

TEST(Pickle, EveryGoodOneReadsEqual) {
    int n = 0;
    const Value all = Value::parse(content(golden / "expected.json"));
    for (const auto& [name, expected] : all.as_object()) {
        SCOPED_TRACE(name);
        const PickledStrings a = read(content(golden / name));
        const bool is_bytes = expected.at("bytes").as_bool();
        EXPECT_EQ(a.dtype, is_bytes ? DType::variable_bytes() : DType::variable_text());
        std::vector<std::int64_t> shape;
        for (const Value& length : expected.at("shape").as_array()) shape.push_back(length.as_int64());
        EXPECT_EQ(a.shape, Shape(shape));
        const auto& elements = expected.at("elements").as_array();
        ASSERT_EQ(a.elements.size(), elements.size());
        for (std::size_t i = 0; i < elements.size(); ++i) {
            const std::string content(a.elements[i].view());
            EXPECT_EQ(is_bytes ? latin1_to_utf8(content) : content, elements[i].as_string());
        }
        ++n;
    }
    EXPECT_EQ(n, 57);
}

TEST(Pickle, EveryBadOneIsRefusedInWordsAndNothingIsExecuted) {
    int n = 0;
    const Value all = Value::parse(content(bad / "errors.json"));
    for (const auto& [name, words] : all.as_object()) {
        SCOPED_TRACE(name);
        const std::string pickle = content(bad / name);
        const auto code = error_of([&] { (void)read(pickle); }, words.as_string());
        EXPECT_TRUE(code == ErrorCode::corrupt || code == ErrorCode::unsupported);
        ++n;
    }
    EXPECT_EQ(n, 67);
    EXPECT_FALSE(std::filesystem::exists("pickle_was_executed"));
}

TEST(Pickle, TruncatedAnywhereIsAnError) {
    for (const char* name : {"good_text_p0.pkl", "good_bytes_p2.pkl", "good_rows_p3.pkl", "good_text_p5.pkl"}) {
        const std::string whole = content(golden / name);
        for (std::size_t n = 0; n < whole.size(); ++n) {
            const auto code = error_of([&] { (void)read(whole.substr(0, n)); });
            EXPECT_TRUE(code == ErrorCode::corrupt || code == ErrorCode::unsupported) << name << " " << n;
        }
    }
}

// ---- written, as NumPy writes it

struct Case {
    std::string name;
    std::string python;  ///< of the array
    NDArray array;
    Order order = Order::C;
};

std::vector<Case> written_cases() {
    const DType text = DType::variable_text(), octets = DType::variable_bytes();
    std::vector<Case> cases;
    const auto add = [&](const char* python, NDArray a, Order order = Order::C) {
        cases.push_back({fmt::format("case{}.npy", cases.size()), python, std::move(a), order});
    };
    add("np.array(['hello', 'é☃', '', 'y' * 300, 'z', 'z', '', '|', 'b', 'é', 'é', '\\x80', '\\x80'], dtype=object)",
        strings(text, {13},
                {"hello", "é☃", "", std::string(300, 'y'), "z", "z", "", "|", "b", "é", "é", "\u0080", "\u0080"}));
    add("np.array([b'hello', b'\\xff\\x00z', b'', b'w' * 300, b'b', b'|', b'', b'x', b'x'], dtype=object)",
        strings(octets, {9}, {"hello", std::string("\xff\0z", 3), "", std::string(300, 'w'), "b", "|", "", "x", "x"}));
    add("np.array([['a1', 'b1'], ['c1', 'd1'], ['e1', 'f1']], dtype=object)",
        strings(text, {3, 2}, {"a1", "b1", "c1", "d1", "e1", "f1"}));
    add("np.array([['a1', 'b1'], ['c1', 'd1'], ['e1', 'f1']], dtype=object, order='F')",
        strings(text, {3, 2}, {"a1", "b1", "c1", "d1", "e1", "f1"}), Order::F);
    add("np.array('only', dtype=object)", strings(text, {}, {"only"}));
    add("np.array([b'only'], dtype=object)", strings(octets, {1}, {"only"}));
    add("np.zeros((0, 70000, 3, 300, 2), dtype=object)", strings(text, {0, 70000, 3, 300, 2}, {}));
    add("np.zeros((0, 2**31), dtype=object)", strings(text, {0, std::int64_t{1} << 31}, {}));
    add("np.zeros((0, 2**40 + 5, 1), dtype=object)", strings(text, {0, (std::int64_t{1} << 40) + 5, 1}, {}));
    for (const int n : {999, 1000, 1001, 2000, 2001}) {
        std::vector<std::string> many;
        for (int i = 0; i < n; ++i) many.push_back(fmt::format("element {}", i));
        const std::string python = fmt::format("np.array([f'element {{i}}' for i in range({})], dtype=object)", n);
        add(python.c_str(), strings(text, {n}, many));
    }
    return cases;
}

/// NumPy 2 writes another protocol of pickle: there it reads ours as its own.
TEST(PickleWriter, WritesTheBytesThatNumPyWrites) {
    const Folder folder;
    std::string script = "import numpy as np\n";
    std::string compared = "import numpy as np\n";
    const std::vector<Case> cases = written_cases();
    for (const Case& c : cases) {
        script += fmt::format("np.save('{}', {}, allow_pickle=True)\n", c.name, c.python);
        save_objects(folder / fmt::format("ours-{}", c.name), c.array, c.order);
        compared += fmt::format(
            "a, b = (np.load(n, allow_pickle=True) for n in ('{0}', 'ours-{0}'))\n"
            "assert (a.dtype, a.shape, a.flags.f_contiguous, a.tolist()) == "
            "(b.dtype, b.shape, b.flags.f_contiguous, b.tolist()), '{0}'\n",
            c.name);
    }
    python(folder, script);
    EXPECT_EQ(python(folder, compared + "print('equal')"), "equal\n");
    const bool numpy_1 = python(folder, "import numpy\nprint(numpy.__version__)").starts_with("1.");
    for (const Case& c : cases) {
        SCOPED_TRACE(c.python);
        save_objects(folder / "ours.npy", c.array, c.order);
        if (numpy_1) {
            EXPECT_TRUE(content(folder / "ours.npy") == content(folder / c.name));
        }
        const NDArray back = load_npy(folder / "ours.npy");
        EXPECT_EQ(back.shape(), c.array.shape());
        EXPECT_TRUE(c.array.count() == 0 || elements_equal(back.view(), c.array.view()));
    }
}

TEST(PickleWriter, RowByRowItIsTheSameFileAndSkippedRowsAreEmpty) {
    const Folder folder;
    const NDArray a = strings(DType::variable_text(), {4, 2}, {"a1", "b1", "c1", "d1", "e1", "f1", "g1", "h1"});
    save_objects(folder / "whole.npy", a);
    {
        const auto sink = create_npy(create_file(folder / "rows.npy"), a.dtype(), a.shape());
        EXPECT_EQ(sink->info().access, Access::stream);
        for (std::int64_t i = 0; i < 4; ++i) sink->write({{i, 0}, {1, 2}}, a.view().part({{i, 0}, {1, 2}}), {});
        EXPECT_EQ(error_of(
                      [&] {
                          sink->write({{3, 0}, {1, 2}}, a.view().part({{3, 0}, {1, 2}}), {});
                      },
                      "not next"),
                  ErrorCode::invalid_argument);
        sink->finish();
    }
    EXPECT_TRUE(content(folder / "rows.npy") == content(folder / "whole.npy"));
    const auto sink = create_npy(create_file(folder / "gaps.npy"), a.dtype(), a.shape());
    EXPECT_EQ(error_of(
                  [&] {
                      sink->write({{0, 0}, {2, 1}}, a.view().part({{0, 0}, {2, 1}}), {});
                  },
                  "whole rows"),
              ErrorCode::invalid_argument);
    sink->write({{1, 1}, {1, 1}}, a.view().part({{1, 1}, {1, 1}}), {});
    sink->finish();
    EXPECT_EQ(python(folder, "import numpy as np\nprint(np.load('gaps.npy', allow_pickle=True).tolist())"),
              "[['', ''], ['', 'd1'], ['', ''], ['', '']]\n");
}

TEST(ObjectArray, IsReadByRegionAndDamageShowsOnlyWhenElementsAreAskedFor) {
    const Folder folder;
    python(folder,
           "import numpy as np\n"
           "np.save('a.npy', np.array([['a1', 'b1'], ['c1', 'd1'], ['e1', 'f1']], dtype=object, order='F'))\n"
           "np.savez('a.npz', s=np.array(['in a zip'], dtype=object))\n"
           "np.save('s.npy', np.array([(1, 'x')], dtype=[('n', 'i4'), ('o', 'O')]))\n"
           "open('short.npy', 'wb').write(open('a.npy', 'rb').read()[:-20])\n"
           "h = open('a.npy', 'rb').read()\n"
           "open('shape.npy', 'wb').write(h.replace(b'(3, 2), ', b'(2, 3), '))\n");
    const auto source = open_array_file({folder / "a.npy"});
    EXPECT_EQ(source->info().order, Order::F);
    NDArray part(source->info().dtype, {2, 1});
    source->read_into({{1, 1}, {2, 1}}, part.view(), {});
    EXPECT_TRUE(elements_equal(part.view(), strings(DType::variable_text(), {2, 1}, {"d1", "f1"}).view()));
    EXPECT_EQ(open_array_file({folder / "a.npz", "s"})->info().dtype, DType::variable_text());
    const std::vector<std::pair<std::string, ErrorCode>> refused{
        {"s.npy", ErrorCode::unsupported}, {"short.npy", ErrorCode::corrupt}, {"shape.npy", ErrorCode::corrupt}};
    for (const auto& [name, code] : refused) {
        const auto damaged = open_array_file({folder / name});
        NDArray out(damaged->info().dtype, damaged->info().shape);
        EXPECT_EQ(error_of([&] { damaged->read_into(Region::whole(out.shape()), out.view(), {}); }, name), code)
            << name;
        EXPECT_NO_THROW((void)find_array_file_format(folder / name)->describe({folder / name})) << name;
    }
}

TEST(ObjectArray, SharedStringsDoNotMultiplyWithoutBound) {
    const Folder folder;
    python(folder,
           "import numpy as np\n"
           "a = np.empty((2, 300), dtype=object)\n"
           "a[:] = 'x' * 1_000_000\n"
           "np.save('shared.npy', a)\n"
           "np.save('none.npy', np.zeros((2**40, 0), dtype=object))\n");
    EXPECT_EQ(load_npy(folder / "none.npy").count(), 0);
    ASSERT_LT(std::filesystem::file_size(folder / "shared.npy"), 1'010'000);
    EXPECT_EQ(error_of([&] { (void)load_npy(folder / "shared.npy"); }, "shared.npy: the strings of 600 elements"),
              ErrorCode::budget);
    const auto source = open_array_file({folder / "shared.npy"});
    const auto read_columns = [&](std::int64_t n) {
        NDArray out(source->info().dtype, {2, n});
        source->read_into({{0, 10}, {2, n}}, out.view(), {.max_memory = 1 << 20});
        return reinterpret_cast<const VariableSlot*>(out.bytes().data())[2 * n - 1].size;
    };
    EXPECT_EQ(read_columns(8), 1'000'000);
    EXPECT_EQ(error_of([&] { (void)read_columns(9); }, "18000000 bytes"), ErrorCode::budget);
}

TEST(FixedLengthStrings, AreOfTheLongestElement) {
    const Folder folder;
    const NDArray text = strings(DType::variable_text(), {3, 2}, {"a", "☃é", "", "😀bc", "d", "e"});
    const NDArray octets = strings(DType::variable_bytes(), {4}, {"a", std::string("\0\xff", 2), "", "xyz"});
    const NDArray none = strings(DType::variable_text(), {0}, {}),
                  blank = strings(DType::variable_bytes(), {2}, {"", ""});
    int n = 0;
    for (const NDArray* a : {&text, &octets, &none, &blank}) {
        const auto source = view_source(a->view(), "strings");
        const ArrayPath path{folder / fmt::format("{}.npy", n++)};
        EXPECT_EQ(convert_for_array_file(path, *source, {.object_strings = true}), nullptr);
        const auto fixed = convert_for_array_file(path, *source);
        const auto sink = create_array_file(path, fixed->info().dtype, fixed->info().shape);
        NDArray elements(fixed->info().dtype, fixed->info().shape);
        fixed->read_into(Region::whole(elements.shape()), elements.view(), {});
        sink->write(Region::whole(elements.shape()), elements.view(), {});
        sink->finish();
        EXPECT_EQ(error_of([&] { (void)create_array_file(path, a->dtype(), a->shape()); }, "object_strings"),
                  ErrorCode::unsupported);
    }
    EXPECT_EQ(python(folder,
                     "import numpy as np\n"
                     "for i in range(4):\n"
                     "    a = np.load(f'{i}.npy')\n"
                     "    print(a.dtype, a.shape, ascii(a.tolist()))\n"),
              "<U3 (3, 2) [['a', '\\u2603\\xe9'], ['', '\\U0001f600bc'], ['d', 'e']]\n"
              "|S3 (4,) [b'a', b'\\x00\\xff', b'', b'xyz']\n"
              "<U1 (0,) []\n"
              "|S1 (2,) [b'', b'']\n");
    for (const DType& dtype : {DType::variable_text(), DType::variable_bytes()}) {
        const NDArray nul = strings(dtype, {2}, {"a", std::string("b\0", 2)});
        const auto source = view_source(nul.view(), "strings");
        EXPECT_EQ(error_of([&] { (void)convert_for_array_file({"x.npy"}, *source); }, "ends in NUL"),
                  ErrorCode::unsupported);
    }
}

}  // namespace
}  // namespace tessera
