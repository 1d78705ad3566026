// Tessera beside the plain loop, workload by workload: see README.md for how to run it and what the rows mean.
//
//   bench [--folder DIR] [--only "W1 read;W3"] [--rounds N] [--threads N] [--offset N] [--peer COMMAND]...
//
// What a line says is told at Bench::compare.
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "bench.h"
#include "workloads.h"

namespace {

using namespace bench;
using tessera::Durability;

/// What is done with a workload.
enum Operation : unsigned {
    whole = 1,     ///< all of it read and written
    inner = 2,     ///< [3:-3] in each dimension
    durable = 4,   ///< all of it written, with the disk waited for
    elements = 8,  ///< one by one and as one batch
    boxes = 16,
    edits = 32,    ///< W5
    rechunk = 64,  ///< W6
    files = 128,   ///< W8
    looks = 256,   ///< stats, digest, diff
    everything = 511,
    renames = 512  ///< all of it written, beside a plain loop that renames files too
};

struct Workload {
    std::string name;
    plain::Layout layout;
    void (*fill)(tessera::NDArray&);
    unsigned operations;
    std::function<void(tessera::ArrayOptions&)> options = nullptr;
};

plain::Layout with(plain::Layout layout, plain::Compressor compressor) {
    layout.compressor = compressor;
    return layout;
}

std::vector<Workload> all_workloads() {
    using namespace workloads;
    const auto sharded = [](tessera::ArrayOptions& options) {
        options.format = "v3";
        options.shards = {256, 256, 256};
    };
    return {
        {"W1", w1(), fill_w1, everything},
        {"W2", w2(), fill_w2, whole | inner | durable},
        {"W3", w3(), fill_w3, whole | inner | durable | renames},
        {"W7", with(w1(), plain::Compressor::zstd), fill_w1, whole | boxes | durable, sharded},
        {"W9", w9(), fill_w1, everything},
        {"W9 500", cube(500), fill_w1, whole | inner},
        {"W9 509", cube(509), fill_w1, whole | inner},
        {"W10 u1", w10_bytes(), fill_w10_bytes, everything},
        {"W10 u1 uncompressed", with(w10_bytes(), plain::Compressor::none), fill_w10_bytes, whole | inner | boxes},
        {"W10 >f8", w10_doubles(), fill_w10_doubles, everything},
        {"W10 >f8 uncompressed", with(w10_doubles(), plain::Compressor::none), fill_w10_doubles, whole | inner | boxes},
    };
}

void run(const Bench& bench, const Workload& w) {
    const bool has_own_names = w.name == "W1";  // W5, W6 and W8 are done with it
    if (!bench.wants_any(w.name) &&
        !(has_own_names && (bench.wants_any("W5") || bench.wants_any("W6") || bench.wants_any("W8"))))
        return;
    const Stage stage(bench, w.name, w.layout, w.fill, w.options);
    const auto has = [&](Operation operation) { return (w.operations & operation) != 0; };
    if (has(whole)) {
        stage.read_all();
        stage.read_fresh();
        stage.write_all(Durability::none, "");
    }
    if (has(inner)) {
        stage.read_inner();
        stage.write_inner();
    }
    if (has(renames)) stage.write_all(Durability::none, " beside renaming", true);
    if (has(durable)) stage.write_all(Durability::commit, " durable");
    if (has(elements)) {
        stage.read_boxes("elements", 10000, 1);
        stage.read_items("elements one by one", 10000);
        stage.read_batch("elements", 10000, 1);
    }
    if (has(boxes)) {
        stage.read_boxes("boxes", 1000, 16);
        stage.read_batch("boxes", 1000, 16);
    }
    if (has(edits)) {
        stage.edit_boxes(stage.named_alone("W5 one by one"), 200, 100, 0);
        stage.edit_boxes(stage.named_alone("W5 cached"), 200, 100, std::uint64_t{1} << 30);
    }
    if (has(rechunk)) rechunking(stage);
    if (has(files)) npy_files(stage);
    if (has(looks)) passes(stage);
}

void run(const Bench& bench) {
    for (const Workload& w : all_workloads()) run(bench, w);
    many_chunks(bench);
}

Settings parse(int argc, char** argv) {
    Settings s;
    for (int i = 1; i < argc; ++i) {
        const std::string option = argv[i];
        if (i + 1 == argc) throw std::runtime_error(option + " needs a value");
        const std::string value = argv[++i];
        if (option == "--folder") {
            s.folder = value;
        } else if (option == "--only") {
            std::istringstream words(value);
            for (std::string one; std::getline(words, one, ';');) s.only.push_back(one);
        } else if (option == "--rounds") {
            s.rounds = std::stoi(value);
        } else if (option == "--threads") {
            s.threads = std::stoi(value);
        } else if (option == "--offset") {
            s.offset = std::stoi(value);
        } else if (option == "--peer") {
            s.peers.push_back(value);
        } else {
            throw std::runtime_error("no option " + option);
        }
    }
    return s;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        run(Bench(parse(argc, argv)));
        return 0;
    } catch (const std::exception& e) {
        std::cerr << e.what() << '\n';
        return 2;
    }
}
