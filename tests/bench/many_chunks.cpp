// What does not depend on how many chunks an array has: the cost of one of them, and of opening.
#include <cstring>

#include <fmt/format.h>
#include <tessera/tessera.h>

#include "bench.h"
#include "workloads.h"

namespace bench {

using namespace tessera;

namespace {

/// Chunks as those of W3, in bands that are read into the same memory again and again, so that it is the chunks that
/// cost and not the room for the result.
void read_bands(const Bench& bench, std::int64_t bands) {
    const std::string name = fmt::format("{} chunks read", 1024 * bands);
    if (!bench.wanted(name)) return;
    plain::Layout band = workloads::w3();
    band.shape = {1, 2048, 2048};
    plain::Layout all = band;
    all.shape[1] *= bands;
    all.folder = (fresh(bench.settings().folder, "tessera-bench") / "array").string();
    NDArray elements(dtype_of(band), dims(band, band.shape));
    workloads::fill_w3(elements);
    Array array = Array::create(all.folder, options_of(all), {.durability = Durability::none});
    const auto region = [&](std::int64_t b) { return Region({2048 * b, 0}, elements.shape()); };
    for (std::int64_t b = 0; b < bands; ++b) array.write(region(b), elements);
    NDArray out(elements.dtype(), elements.shape());
    bench.compare({name}, {[&] {
                      for (std::int64_t b = 0; b < bands; ++b) {
                          plain::read_box(all, {{0, 2048 * b, 0}, band.shape}, out.bytes().data());
                      }
                  }},
                  {[&] {
                      for (std::int64_t b = 0; b < bands; ++b) array.read_into(region(b), out, {.threads = 1});
                  }});
    fs::remove_all(fs::path(all.folder).parent_path());
}

/// An array of a million chunks of one byte; the plain loop opens and reads one of its files.
void open_million(const Bench& bench) {
    const std::string name = "a million chunks: open, read one element";
    if (!bench.wanted(name)) return;
    const fs::path folder = fresh(bench.settings().folder, "tessera-bench") / "array";
    const ArrayOptions options{
        .shape = {1000, 1000}, .chunks = {1, 1}, .dtype = "|u1", .codec = "none", .format = "v2"};
    Array array = Array::create(folder, options, {.durability = Durability::none});
    NDArray ones(options.dtype, options.shape);
    std::memset(ones.bytes().data(), 1, ones.bytes().size());
    array.write(Region::whole(options.shape), ones);
    NDArray out(options.dtype, {1, 1});
    const plain::Layout file{.folder = folder.string(),
                             .shape = {1, 1000, 1000},
                             .rank = 2,
                             .item = 1,
                             .compressor = plain::Compressor::none};
    std::int64_t row = 0;
    bench.compare({name},
                  {[&] {
                       plain::read_box(file, {{0, row, 7}, {1, 1, 1}}, out.bytes().data());
                   },
                   [&] { row = (row + 37) % 1000; }},
                  {[&] {
                       Array::open(folder).read_into({{row, 7}, {1, 1}}, out, {.threads = 1});
                   },
                   [&] { row = (row + 37) % 1000; }});
    bench.compare({"a million chunks: count"}, {[&] {
                      const std::string find = fmt::format("find {} | wc -l > /dev/null", folder.string());
                      if (std::system(find.c_str()) != 0) throw std::runtime_error(find);
                  }},
                  {[&] {
                      if (Array::open(folder).stored_size(50'000).chunks != 1'000'000)
                          throw std::runtime_error("not a million");
                  }});
    fs::remove_all(folder.parent_path());
}

}  // namespace

void many_chunks(const Bench& bench) {
    for (const std::int64_t bands : {1, 8, 64}) read_bands(bench, bands);
    open_million(bench);
}

}  // namespace bench
