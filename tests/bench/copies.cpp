// W6 and W8: from chunks to other chunks, and between chunks and .npy files.
#include <cstring>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>
#include <tessera/array_file.h>
#include <tessera/tessera.h>

#include "bench.h"

namespace bench {

using namespace tessera;

namespace {

/// Beside a slab loop, which holds 64 MiB.
void rechunk_to(const Stage& w1, const plain::Point& chunks, std::uint64_t budget) {
    const Bench& bench = w1.bench();
    plain::Layout to = w1.layout();
    to.chunks = chunks;
    for (const int threads : bench.thread_counts()) {
        const std::string name = fmt::format("W6 to {}, {} MiB", dims(to, chunks).to_string(), budget >> 20);
        if (!bench.wanted(name)) continue;
        FreshFolder theirs(w1.folder(), "plain");
        FreshFolder ours(w1.folder(), "ours");
        const Array from = w1.open();
        std::optional<Array> array;
        bench.compare(
            name, threads,
            {[&] { plain::rechunk(w1.layout(), to, threads); }, [&] { to.folder = theirs.next().string(); }},
            {[&] { copy_array(from, *array, {.io = {.threads = threads, .max_memory = budget}}); },
             [&] { array = Array::create(ours.next() / "array", options_of(to), {.durability = Durability::none}); }});
        w1.check(array->read());
    }
}

}  // namespace

void rechunking(const Stage& w1) {
    for (const std::uint64_t budget : {std::uint64_t{64} << 20, std::uint64_t{1} << 30}) {
        rechunk_to(w1, {512, 512, 1}, budget);
        rechunk_to(w1, {1, 512, 512}, budget);
    }
}

void npy_files(const Stage& w1) {
    const Bench& bench = w1.bench();
    const NDArray& elements = w1.elements();
    NDArray copy = NDArray::copy_of(elements);  // memory that is there already
    const auto copy_all = [&](const std::byte* from) { std::memcpy(copy.bytes().data(), from, copy.bytes().size()); };
    for (const Order order : {Order::C, Order::F}) {
        const std::string suffix = order == Order::C ? ", C order" : ", Fortran order";
        for (const int threads : bench.thread_counts()) {
            const IoOptions io{.threads = threads};
            if (bench.wanted("W8 export" + suffix)) {
                NDArray out = NDArray::copy_of(elements);
                const Array array = w1.open();
                FreshFolder files(w1.folder(), "npy");
                fs::path file;
                bench.compare("W8 export" + suffix, threads, {[&] {
                                  plain::read_all(w1.layout(), out.bytes().data(), threads);
                                  copy_all(out.bytes().data());
                              }},
                              {[&] {
                                   const auto sink = create_array_file({file}, elements.dtype(), elements.shape(),
                                                                       {.order = order, .durable = false});
                                   copy_array(array, *sink, {.io = io});
                               },
                               [&] { file = files.next() / "w1.npy"; }});
                w1.check(NDArray::copy_of(read_selection(*open_array_file({file}), Selection::all(array.shape()))));
            }
            if (bench.wanted("W8 import" + suffix)) {
                const fs::path file = fresh(w1.folder(), "npy") / "w1.npy";
                copy_array(w1.open(), *create_array_file({file}, elements.dtype(), elements.shape(), {.order = order}));
                FreshFolder theirs(w1.folder(), "plain");
                FreshFolder ours(w1.folder(), "ours");
                plain::Layout to = w1.layout();
                std::optional<Array> array;
                bench.compare("W8 import" + suffix, threads,
                              {[&] {
                                   copy_all(elements.bytes().data());
                                   plain::write_all(to, copy.bytes().data(), threads);
                               },
                               [&] { to.folder = theirs.next().string(); }},
                              {[&] { copy_array(*open_array_file({file}), *array, {.io = io}); },
                               [&] {
                                   array = Array::create(ours.next() / "array", options_of(to),
                                                         {.durability = Durability::none});
                               }});
                w1.check(array->read());
                fs::remove(file);
            }
        }
    }
}

}  // namespace bench
