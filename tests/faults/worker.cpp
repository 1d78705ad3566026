// The process that tests kill, starve or let race. worker JOB PATH ...; every job prints a line once what it stands for
// is done, with one write to standard output: an acknowledgement.
//
//   steps PATH SEED FIRST COUNT DURABILITY THREADS   does steps FIRST to COUNT of steps.h. A step that fails is
//                                                    reported on standard error and tried once more.
//   increment, toggle, resize, append, write_blocks, read_blocks PATH SELF ALL COUNT   see contention.h
#include <fmt/format.h>
#include <tessera/array.h>
#include <tessera/error.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "contention.h"
#include "steps.h"

namespace tessera::faults {

namespace {

void acknowledge(const std::string& what) {
    const std::string line = what + "\n";
    // One call, so that the line is there as a whole.
    if (::write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
}

/// Whether a step whose error came after its last change has taken effect: appends and batches are not to be done
/// twice. They are there as a whole or not at all.
bool took_effect(const Step& step, const Table& before, const Table& after, const std::string& path) {
    if (step.kind != Step::Kind::append && step.kind != Step::Kind::batch) return false;
    const Table found = table_of(Array::open(path));
    if (!(found == before) && !(found == after)) throw corrupt(path + ": half of a step is there");
    return found == after;
}

void do_steps(const std::vector<std::string>& words) {
    const int first = std::stoi(words[1]);
    const auto steps = make_steps(static_cast<unsigned>(std::stoul(words[0])), std::stoi(words[2]));
    const auto tables = tables_after(steps);
    const StoreOptions options{.durability = durability_named(words[3])};
    const IoOptions io{.threads = std::stoi(words[4])};
    const auto opened = [&] {
        try {
            return Array::open(words[5], options);
        } catch (const Error& e) {
            fmt::print(stderr, "{}\n", e.what());
            return Array::open(words[5], options);
        }
    };
    Array array = opened();
    for (std::size_t i = static_cast<std::size_t>(first); i < steps.size(); ++i) {
        try {
            apply(steps[i], array, io);
        } catch (const Error& e) {
            fmt::print(stderr, "{}\n", e.what());
            if (!took_effect(steps[i], tables[i], tables[i + 1], words[5])) apply(steps[i], array, io);
        }
        acknowledge(fmt::format("{}", i + 1));
    }
}

void contend(const std::string& job, const std::vector<std::string>& words) {
    const Party party{std::stoi(words[0]), std::stoi(words[1]), std::stoi(words[2])};
    Array array = Array::open(words[3], {.durability = Durability::none});
    if (job == "increment") increment(array, party);
    if (job == "toggle") toggle(array, party);
    if (job == "resize") resize_often(array, party);
    if (job == "write_blocks") write_blocks(array, party);
    if (job == "read_blocks") read_blocks(array, party);
    if (job == "append") {
        append_often(array, party, [](std::int64_t start, std::int64_t rows, std::int32_t number) {
            acknowledge(fmt::format("{} {} {}", start, rows, number));
        });
    }
}

}  // namespace

}  // namespace tessera::faults

int main(int count, char** words) {
    using namespace tessera::faults;
    try {
        const std::string job = words[1];
        std::vector<std::string> rest(words + 3, words + count);
        rest.emplace_back(words[2]);
        if (job == "steps") {
            do_steps(rest);
        } else {
            contend(job, rest);
        }
    } catch (const tessera::Error& e) {
        fmt::print(stderr, "{}\n", e.what());
        return 1;
    }
    return 0;
}
