// One operation of the library on a small fixed array, for compare.py to count what it takes.
//
//   operations         the names, one a line
//   operations --compiler
//   operations NAME    makes the array in the current folder, does the operation once to warm up, then once more to be
//                      counted; prints "allocations N" and "allocated_bytes N"
//
// compare.py runs it under strace, where two getppid() mark where the operation begins and ends, and under callgrind,
// which is told to count between them. Everything runs in one thread.
#include <unistd.h>
#include <valgrind/callgrind.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <string_view>
#include <vector>

#include <tessera/measure.h>
#include <tessera/npy.h>
#include <tessera/tessera.h>

// Every allocation of the program and of all libraries that it uses.
namespace {

struct Allocations {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
};
Allocations allocations;

void* counted(std::size_t size, void* p) {
    ++allocations.count;
    allocations.bytes += size;
    return p;
}

}  // namespace

extern "C" {

void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* p, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
    return counted(size, __libc_malloc(size));
}
void* calloc(std::size_t count, std::size_t size) {
    return counted(count * size, __libc_calloc(count, size));
}
void* realloc(void* p, std::size_t size) {
    return counted(size, __libc_realloc(p, size));
}
void* memalign(std::size_t alignment, std::size_t size) {
    return counted(size, __libc_memalign(alignment, size));
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
    return counted(size, __libc_memalign(alignment, size));
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
    *out = counted(size, __libc_memalign(alignment, size));
    return *out == nullptr ? ENOMEM : 0;
}

}  // extern "C"

namespace {

namespace fs = std::filesystem;
using namespace tessera;

const IoOptions one_thread{.threads = 1};

using Elements = std::shared_ptr<NDArray>;  // operations can be copied

/// Smooth values with some noise, which compress as measured ones do; the same on every machine.
template <class T>
Elements elements(const Shape& shape) {
    auto a = std::make_shared<NDArray>(DType::of<T>(), shape);
    std::uint32_t random = 1;
    std::int64_t n = 0;
    for (T& v : a->template values<T>()) {
        random = random * 1664525U + 1013904223U;
        v = static_cast<T>(1000 + n++ / 50 % 400 + (random >> 30U));
    }
    return a;
}

/// An array that is there: made in the current folder and written.
struct Stored {
    Stored(const ArrayOptions& options, Elements values, const fs::path& name = "array",
           Durability durability = Durability::none)
        : path(name), in(std::move(values)), array(Array::create(name, options, {.durability = durability})) {
        array.write(all(), *in, one_thread);
    }
    [[nodiscard]] Region all() const { return Region::whole(in->shape()); }

    fs::path path;
    Elements in;
    Array array;
};

/// float32, 8 chunks of 1 MiB, each of two blocks of c-blosc.
ArrayOptions cube_options() {
    return {.shape = {128, 128, 128}, .chunks = {64, 64, 64}, .dtype = "<f4", .fill_value = Value(-1), .format = "v2"};
}
Stored cube() {
    return {cube_options(), elements<float>({128, 128, 128})};
}
/// uint16, 64 chunks of 8 KiB.
ArrayOptions tiles_options() {
    return {.shape = {512, 512}, .chunks = {64, 64}, .dtype = "<u2", .fill_value = Value(65535), .format = "v2"};
}
Stored tiles(Durability durability = Durability::none) {
    return {tiles_options(), elements<std::uint16_t>({512, 512}), "array", durability};
}
/// Four shards of 64 chunks of 8 KiB each.
Stored shards() {
    ArrayOptions options = tiles_options();
    options.shape = {1024, 1024};
    options.shards = {512, 512};
    options.codec = "zstd:3";
    options.format = "v3";
    return {options, elements<std::uint16_t>(options.shape)};
}

Index place(const Shape& shape, std::int64_t extent, int i) {
    Index at;
    for (int d = 0; d < shape.rank(); ++d) at.push_back((i * (37 + 31 * d) + 11 * d) % (shape[d] - extent + 1));
    return at;
}

/// What is done: `round` is 0 for the warm-up and 1 for what is counted. Made when its name was asked for, with what it
/// needs.
using Operation = std::function<void(int round)>;

Operation read_all(Stored (*make)()) {
    return [s = make(), out = Elements()](int) mutable {
        if (!out) out = std::make_shared<NDArray>(s.in->dtype(), s.in->shape());
        s.array.read_into(s.all(), *out, one_thread);
    };
}

Operation read_boxes(Stored (*make)(), std::int64_t side, int count) {
    return [s = make(), side, count](int) {
        NDArray out(s.in->dtype(), Shape::filled(s.in->shape().rank(), side));
        for (int i = 0; i < count; ++i) {
            s.array.read_into({place(s.in->shape(), side, i), out.shape()}, out, one_thread);
        }
    };
}

Operation write_all(const ArrayOptions& options, Elements in, Durability durability) {
    return [options, in = std::move(in), durability](int round) {
        Array::create(round == 0 ? "warm" : "array", options, {.durability = durability})
            .write(Region::whole(in->shape()), *in, one_thread);
    };
}

Operation write_boxes(Stored s, std::int64_t side, int count) {
    return [s = std::move(s), side, count](int round) mutable {
        const Shape extent = Shape::filled(s.in->shape().rank(), side);
        NDArray box(s.in->dtype(), extent);
        std::memset(box.bytes().data(), 2 + round, box.bytes().size());
        for (int i = 0; i < count; ++i) s.array.write({place(s.in->shape(), side, i), extent}, box, one_thread);
    };
}

std::vector<Index> places(const Shape& shape, int count) {
    std::vector<Index> points;
    for (int i = 0; i < count; ++i) points.push_back(place(shape, 1, i));
    return points;
}

Operation open_array(const char* format) {
    ArrayOptions options = tiles_options();
    options.format = format;
    const Stored s(options, elements<std::uint16_t>(options.shape));
    return [path = s.path](int) { (void)Array::open(path); };
}

Operation rechunk(const ArrayOptions& to) {
    return [s = cube(), to](int round) {
        Array array = Array::create(round == 0 ? "warm" : "copy", to, {.durability = Durability::none});
        copy_array(s.array, array, {.io = {.threads = 1, .max_memory = 16 << 20}});
    };
}

Operation import_npy(Order order) {
    const fs::path path = "in.npy";
    const Elements in = elements<float>({128, 128, 128});
    const auto file = create_array_file({path}, in->dtype(), in->shape(), {.order = order});
    file->write(Region::whole(in->shape()), *in, one_thread);
    file->finish();
    return [path](int round) {
        Array array = Array::create(round == 0 ? "warm" : "array", cube_options(), {.durability = Durability::none});
        copy_array(*open_array_file({path}), array, {.io = one_thread});
    };
}

Operation export_npy(Order order, bool durable = true) {
    return [s = cube(), order, durable](int round) {
        const auto file = create_array_file({round == 0 ? "warm.npy" : "out.npy"}, s.in->dtype(), s.in->shape(),
                                            {.order = order, .durable = durable});
        copy_array(s.array, *file, {.io = one_thread});
    };
}

std::optional<ElementBytes> fill_of(const Stored& s) {
    return s.array.metadata().fill.bytes;
}

/// float64 that are stored as uint16, by way of a filter over numbers.
Stored converted() {
    ArrayOptions options = tiles_options();
    options.dtype = "<f8";
    options.fill_value = Value(0);
    options.codec = "fixedscaleoffset:0:1:<u2,blosc";
    return {options, elements<double>(options.shape)};
}

/// An array with one of which every element is greater by `more`.
Operation compare(const Tolerance& tolerance, float more) {
    const Elements other = elements<float>({128, 128, 128});
    for (float& v : other->values<float>()) v += more;
    return [a = cube(), b = Stored(cube_options(), other, "other"), tolerance](int) {
        (void)difference(a.array, b.array, tolerance, 10, one_thread);
    };
}

/// By name, what makes each.
const std::map<std::string, std::function<Operation()>>& operations() {
    static const std::map<std::string, std::function<Operation()>> table = {
        {"open_zmeta", [] { return open_array("zmeta"); }},
        {"open_v2", [] { return open_array("v2"); }},
        {"open_v3", [] { return open_array("v3"); }},
        {"open_read_element",
         [] {
             return Operation([s = tiles()](int) {
                 NDArray out(s.in->dtype(), {1, 1});
                 Array::open(s.path).read_into({{7, 70}, {1, 1}}, out, one_thread);
             });
         }},
        {"create",
         [] {
             return Operation([](int round) {
                 (void)Array::create(round == 0 ? "warm" : "array", tiles_options(), {.durability = Durability::none});
             });
         }},
        {"stored_size", [] { return Operation([s = tiles()](int) { (void)s.array.stored_size(); }); }},
        {"read_large_chunks", [] { return read_all(cube); }},
        {"read_small_chunks", [] { return read_all([] { return tiles(); }); }},
        {"read_new_memory", [] { return Operation([s = cube()](int) { (void)s.array.read(s.all(), one_thread); }); }},
        {"read_absent_chunks",
         [] {
             return Operation([array = Array::create("array", tiles_options())](int) {
                 (void)array.read(Region::whole({512, 512}), one_thread);
             });
         }},
        {"read_steps", [] { return Operation([s = cube()](int) { (void)s.array.read("::3, 5, ::2", one_thread); }); }},
        {"read_100_elements", [] { return read_boxes(cube, 1, 100); }},
        {"read_20_boxes", [] { return read_boxes(cube, 16, 20); }},
        {"read_1000_points",
         [] {
             return Operation(
                 [s = cube(), at = places({128, 128, 128}, 1000)](int) { (void)s.array.read_points(at, one_thread); });
         }},
        {"read_shards", [] { return read_all(shards); }},
        {"read_20_shard_boxes", [] { return read_boxes(shards, 50, 20); }},
        {"write_large_chunks",
         [] {
             return write_all(cube_options(), elements<float>({128, 128, 128}), Durability::none);
         }},
        {"write_small_chunks",
         [] {
             return write_all(tiles_options(), elements<std::uint16_t>({512, 512}), Durability::none);
         }},
        {"write_durable",
         [] {
             return write_all(tiles_options(), elements<std::uint16_t>({512, 512}), Durability::commit);
         }},
        {"write_5_boxes", [] { return write_boxes(cube(), 50, 5); }},
        {"write_box", [] { return write_boxes(tiles(Durability::commit), 50, 1); }},
        {"write_box_undoable",
         [] {
             return Operation([s = tiles(Durability::commit)](int round) mutable {
                 NDArray box(s.in->dtype(), {50, 50});
                 std::memset(box.bytes().data(), 2 + round, box.bytes().size());
                 const Undoable kept(s.array);
                 s.array.write({place(s.in->shape(), 50, 0), box.shape()}, box, one_thread);
             });
         }},
        {"write_5_durable_boxes", [] { return write_boxes(tiles(Durability::commit), 50, 5); }},
        {"write_1000_points",
         [] {
             return Operation([s = cube(), at = places({128, 128, 128}, 1000)](int round) mutable {
                 std::vector<float> values(at.size());
                 std::iota(values.begin(), values.end(), static_cast<float>(round));
                 s.array.write_points(at, view(values), one_thread);
             });
         }},
        {"write_shard_box", [] { return write_boxes(shards(), 50, 1); }},
        {"edit_batch",
         [] {
             return Operation([s = tiles()](int round) {
                 NDArray box(s.in->dtype(), {16, 16});
                 std::memset(box.bytes().data(), 2 + round, box.bytes().size());
                 Edit edit(s.array);
                 for (int i = 0; i < 20; ++i) {
                     edit->write({place(s.in->shape(), 16, i), box.shape()}, box, one_thread);
                 }
                 edit.commit();
             });
         }},
        {"cached_writes",
         [] {
             return Operation([s = cube()](int round) {
                 CachedArray cached(s.array);
                 NDArray box(s.in->dtype(), {50, 50, 50});
                 for (int i = 0; i < 20; ++i) {
                     const Region region(place(s.in->shape(), 50, i), box.shape());
                     cached.read_into(region, box, one_thread);
                     box.values<float>()[0] += 1.0F + static_cast<float>(round);
                     cached.write(region, box, one_thread);
                 }
                 cached.flush(one_thread);
             });
         }},
        {"append",
         [] {
             return Operation([s = tiles(), rows = elements<std::uint16_t>({100, 512})](int) mutable {
                 s.array.append(*rows, 0, one_thread);
             });
         }},
        {"rechunk_to_planes",
         [] {
             ArrayOptions to = cube_options();
             to.chunks = {1, 128, 128};
             return rechunk(to);
         }},
        {"rechunk_to_columns",
         [] {
             ArrayOptions to = cube_options();
             to.chunks = {128, 128, 1};
             return rechunk(to);
         }},
        {"import_npy", [] { return import_npy(Order::C); }},
        {"import_npy_fortran", [] { return import_npy(Order::F); }},
        {"export_npy", [] { return export_npy(Order::C); }},
        {"export_npy_fortran", [] { return export_npy(Order::F); }},
        {"export_npy_not_durable", [] { return export_npy(Order::C, false); }},
        {"digest", [] { return Operation([s = cube()](int) { (void)digest(s.array, one_thread); }); }},
        // What looks at every element: its instructions are those of the kernel, some per element.
        {"stats",
         [] { return Operation([s = cube()](int) { (void)statistics(s.array, fill_of(s), 32, one_thread); }); }},
        {"stats_without_bins",
         [] { return Operation([s = cube()](int) { (void)statistics(s.array, fill_of(s), 0, one_thread); }); }},
        {"diff_equal", [] { return compare({}, 0); }},
        {"diff_different", [] { return compare({}, 1); }},
        {"diff_by_value", [] { return compare({.atol = 2}, 1); }},
        {"read_other_byte_order",
         [] {
             return read_all([] {
                 ArrayOptions options = tiles_options();
                 options.dtype = ">u2";
                 return Stored(options, elements<std::uint16_t>(options.shape));
             });
         }},
        {"read_converted", [] { return read_all(converted); }},
        {"write_converted",
         [] { return Operation([s = converted()](int) mutable { s.array.write(s.all(), *s.in, one_thread); }); }},
        {"write_fill",  // which takes comparing all of it
         [] {
             return Operation(
                 [s = cube()](int) mutable { s.array.fill(Selection::all(s.in->shape()), Value(-1), one_thread); });
         }},
    };
    return table;
}

void count(const Operation& operation) {
    operation(0);
    const Allocations before = allocations;
    (void)::getppid();
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_TOGGLE_COLLECT;
    operation(1);
    CALLGRIND_TOGGLE_COLLECT;
    CALLGRIND_STOP_INSTRUMENTATION;
    (void)::getppid();
    const Allocations after = allocations;
    std::cout << "allocations " << after.count - before.count << "\nallocated_bytes " << after.bytes - before.bytes
              << '\n';
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc == 2 && std::string_view(argv[1]) == "--compiler") {
            std::cout << "compiler " << __VERSION__ << '\n';
        } else if (argc == 2) {
            count(operations().at(argv[1])());
        } else {
            for (const auto& entry : operations()) std::cout << entry.first << '\n';
        }
        return 0;
    } catch (const std::exception& e) {
        std::cerr << e.what() << '\n';
        return 2;
    }
}
