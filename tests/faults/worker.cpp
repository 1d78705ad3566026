// The process that tests kill, starve or let race. worker JOB PATH ...; every job prints a line once what it stands for
// is done, with one write to standard output: an acknowledgement.
//
//   steps PATH SEED FIRST COUNT DURABILITY THREADS   does steps FIRST to COUNT of steps.h. A step that fails is
//                                                    reported on standard error and tried once more.
//   increment, toggle, resize, append, write_blocks, read_blocks PATH SELF ALL COUNT   see contention.h
#include <fmt/format.h>
#include <tessera/array.h>
#include <tessera/error.h>
#include <tessera/snapshot.h>
#include <unistd.h>

#include <algorithm>
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

/// Whether a step whose error came after its last change has taken effect: what cannot be done twice, and is there as a
/// whole or not at all.
bool took_effect(const Step& step, const State& before, const State& after, const std::string& path) {
    const auto there = [&] {
        return std::ranges::any_of(list_snapshots(path), [&](const SnapshotInfo& s) { return s.name == step.name; });
    };
    switch (step.kind) {
        case Step::Kind::append:
        case Step::Kind::batch:
        case Step::Kind::undo: {
            const Table found = table_of(Array::open(path));
            if (!(found == before.table) && !(found == after.table)) throw corrupt(path + ": half of a step is there");
            return found == after.table;
        }
        case Step::Kind::snapshot:
            return there();
        case Step::Kind::remove:
            return !there();
        default:
            return false;
    }
}

void do_steps(const std::vector<std::string>& words) {
    const int first = std::stoi(words[1]);
    const auto steps = make_steps(static_cast<unsigned>(std::stoul(words[0])), std::stoi(words[2]));
    const auto states = states_after(steps);
    const Way way{.store = {.durability = durability_named(words[3])}, .io = {.threads = std::stoi(words[4])}};
    const auto opened = [&] {
        try {
            return Array::open(words[5], way.store);
        } catch (const Error& e) {
            fmt::print(stderr, "{}\n", e.what());
            return Array::open(words[5], way.store);
        }
    };
    Array array = opened();
    for (std::size_t i = static_cast<std::size_t>(first); i < steps.size(); ++i) {
        try {
            apply(steps[i], array, way);
        } catch (const Error& e) {
            fmt::print(stderr, "{}\n", e.what());
            const bool done = took_effect(steps[i], states[i], states[i + 1], words[5]);
            const bool is_batch = steps[i].kind == Step::Kind::batch || steps[i].kind == Step::Kind::undo;
            if (is_batch && done != (e.code() == ErrorCode::recorded)) {
                throw corrupt(fmt::format("{}: {} took effect, but the error said: {}", words[5],
                                          done ? "a batch" : "nothing", e.what()));
            }
            if (!done) apply(steps[i], array, way);
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
