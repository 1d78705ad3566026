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
void rechunk_to(const Stage& stage, const plain::Point& chunks, std::uint64_t budget) {
    const Bench& bench = stage.bench();
    plain::Layout to = stage.layout();
    to.chunks = chunks;
    for (const int threads : bench.thread_counts()) {
        const std::string name =
            stage.named_alone(fmt::format("W6 to {}, {} MiB", dims(to, chunks).to_string(), budget >> 20));
        if (!bench.wanted(name)) continue;
        FreshFolder theirs(stage.folder(), "plain");
        FreshFolder ours(stage.folder(), "ours");
        const Array from = stage.open();
        std::optional<Array> array;
        bench.compare(
            {name, threads},
            {[&] { plain::rechunk(stage.layout(), to, threads); }, [&] { to.folder = theirs.next().string(); }},
            {[&] { copy_array(from, *array, {.io = {.threads = threads, .max_memory = budget}}); },
             [&] { array = Array::create(ours.next() / "array", options_of(to), {.durability = Durability::none}); }});
        stage.check(array->read());
    }
}

}  // namespace

void rechunking(const Stage& stage) {
    for (const std::uint64_t budget : {std::uint64_t{64} << 20, std::uint64_t{1} << 30}) {
        rechunk_to(stage, {512, 512, 1}, budget);
        rechunk_to(stage, {1, 512, 512}, budget);
    }
}

void npy_files(const Stage& stage) {
    const Bench& bench = stage.bench();
    const NDArray& elements = stage.elements();
    NDArray copy = NDArray::copy_of(elements);  // memory that is there already
    const auto copy_all = [&](const std::byte* from) { std::memcpy(copy.bytes().data(), from, copy.bytes().size()); };
    for (const Order order : {Order::C, Order::F}) {
        const std::string suffix = order == Order::C ? ", C order" : ", Fortran order";
        const std::string out_name = stage.named_alone("W8 export" + suffix);
        const std::string in_name = stage.named_alone("W8 import" + suffix);
        for (const int threads : bench.thread_counts()) {
            const IoOptions io{.threads = threads};
            if (bench.wanted(out_name)) {
                NDArray out = NDArray::copy_of(elements);
                const Array array = stage.open();
                FreshFolder files(stage.folder(), "npy");
                fs::path file;
                bench.compare({out_name, threads}, {[&] {
                                  plain::read_all(stage.layout(), out.bytes().data(), threads);
                                  copy_all(out.bytes().data());
                              }},
                              {[&] {
                                   const auto sink = create_array_file({file}, elements.dtype(), elements.shape(),
                                                                       {.order = order, .durable = false});
                                   copy_array(array, *sink, {.io = io});
                               },
                               [&] { file = files.next() / "elements.npy"; }});
                stage.check(NDArray::copy_of(read_selection(*open_array_file({file}), Selection::all(array.shape()))));
            }
            if (bench.wanted(in_name)) {
                const fs::path file = fresh(stage.folder(), "npy") / "elements.npy";
                copy_array(stage.open(),
                           *create_array_file({file}, elements.dtype(), elements.shape(), {.order = order}));
                FreshFolder theirs(stage.folder(), "plain");
                FreshFolder ours(stage.folder(), "ours");
                plain::Layout to = stage.layout();
                std::optional<Array> array;
                bench.compare({in_name, threads},
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
                stage.check(array->read());
                fs::remove(file);
            }
        }
    }
}

}  // namespace bench
