// Tessera beside the plain loop, workload by workload: see README.md for how to run it and what the rows mean.
//
//   bench [--folder DIR] [--only "W1 read;W3"] [--rounds N] [--threads N] [--peer COMMAND]...
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

void run(const Bench& bench) {
    if (bench.wants_any("W1") || bench.wants_any("W5") || bench.wants_any("W6") || bench.wants_any("W8")) {
        const Stage w1(bench, "W1", workloads::w1(), workloads::fill_w1);
        w1.read_all();
        w1.read_fresh();
        w1.write_all(Durability::none, "");
        w1.write_all(Durability::commit, " durable");
        w1.read_boxes("elements", 10000, 1);
        w1.read_boxes("boxes", 1000, 16);
        w1.read_batch("elements", 10000, 1);
        w1.read_batch("boxes", 1000, 16);
        w1.edit_boxes("W5 one by one", 200, 100, 0);
        w1.edit_boxes("W5 cached", 200, 100, std::uint64_t{1} << 30);
        rechunking(w1);
        npy_files(w1);
    }
    if (bench.wants_any("W2")) {
        const Stage w2(bench, "W2", workloads::w2(), workloads::fill_w2);
        w2.read_all();
        w2.write_all(Durability::none, "");
        w2.write_all(Durability::commit, " durable");
    }
    if (bench.wants_any("W3")) {
        const Stage w3(bench, "W3", workloads::w3(), workloads::fill_w3);
        w3.read_all();
        w3.write_all(Durability::none, "");
        w3.write_all(Durability::commit, " durable");
    }
    if (bench.wants_any("W7")) {
        plain::Layout layout = workloads::w1();
        layout.compressor = plain::Compressor::zstd;
        const Stage w7(bench, "W7", layout, workloads::fill_w1, [](tessera::ArrayOptions& options) {
            options.format = "v3";
            options.shards = {256, 256, 256};
        });
        w7.read_all();
        w7.read_boxes("boxes", 1000, 16);
        w7.read_batch("boxes", 1000, 16);
        w7.write_all(Durability::none, "");
        w7.write_all(Durability::commit, " durable");
    }
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
