// Tessera beside the plain loop, workload by workload: see README.md for how to run it and what the rows mean.
//
//   bench [--folder DIR] [--only WORDS] [--rounds N] [--threads N] [--list]
//
// One line per case: name, threads, the medians in milliseconds of the plain loop and of Tessera, the median of the
// ratios round by round, and the same ratio of processor time. In each round one runs right after the other, and who
// goes first alternates, so that a machine whose speed drifts treats both alike.
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <optional>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <tessera/tessera.h>

#include "plain_loop.h"
#include "workloads.h"

namespace {

namespace fs = std::filesystem;
using tessera::Array;
using tessera::Durability;
using tessera::NDArray;
using tessera::Region;
using tessera::Shape;

struct Settings {
    fs::path folder = fs::temp_directory_path();
    std::string only;
    int rounds = 7;
    int threads = 0;  ///< 0: 1 and 2
    bool list = false;
};

struct Cost {
    double wall = 0;
    double cpu = 0;
};

double cpu_seconds() {
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(use.ru_utime) + seconds(use.ru_stime);
}

Cost cost_of(const std::function<void()>& run) {
    const double cpu = cpu_seconds();
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    return {wall.count(), cpu_seconds() - cpu};
}

double median(std::vector<double> v) {
    std::ranges::sort(v);
    return v.size() % 2 == 1 ? v[v.size() / 2] : (v[v.size() / 2 - 1] + v[v.size() / 2]) / 2;
}

/// One side of a comparison: what is timed, and what makes ready for it.
struct Side {
    std::function<void()> run;
    std::function<void()> prepare = [] {};
};

class Bench {
public:
    explicit Bench(Settings settings) : settings_(std::move(settings)) {}

    [[nodiscard]] const Settings& settings() const { return settings_; }
    [[nodiscard]] bool wanted(const std::string& name) const {
        return settings_.only.empty() || name.find(settings_.only) != std::string::npos;
    }
    /// Whether any case of a workload is to run, so that its array must be made.
    [[nodiscard]] bool wants_any(const std::string& workload) const {
        return !settings_.list && (wanted(workload) || settings_.only.compare(0, workload.size(), workload) == 0);
    }
    [[nodiscard]] std::vector<int> thread_counts() const {
        return settings_.threads > 0 ? std::vector{settings_.threads} : std::vector{1, 2};
    }

    void compare(const std::string& name, int threads, const Side& plain, const Side& ours) const {
        if (settings_.list) std::cout << name << '\n';
        if (settings_.list || !wanted(name)) return;
        std::vector<double> plain_wall;
        std::vector<double> our_wall;
        std::vector<double> ratio;
        std::vector<double> cpu_ratio;
        for (int round = -1; round < settings_.rounds; ++round) {  // the first one warms up
            Cost cost[2];
            for (int turn = 0; turn < 2; ++turn) {
                const int who = (round + turn) & 1;
                const Side& side = who == 0 ? plain : ours;
                side.prepare();
                cost[who] = cost_of(side.run);
            }
            if (round < 0) continue;
            plain_wall.push_back(cost[0].wall);
            our_wall.push_back(cost[1].wall);
            ratio.push_back(cost[1].wall / cost[0].wall);
            cpu_ratio.push_back(cost[1].cpu / cost[0].cpu);
        }
        std::cout << fmt::format("{}\t{}\t{:.1f}\t{:.1f}\t{:.3f}\t{:.3f}\n", name, threads, 1e3 * median(plain_wall),
                                 1e3 * median(our_wall), median(ratio), median(cpu_ratio))
                  << std::flush;
    }

private:
    Settings settings_;
};

/// The dimensions of a layout that count.
Shape dims(const plain::Layout& l, const std::array<std::int64_t, 3>& all) {
    Shape shape;
    for (int d = 3 - l.rank; d < 3; ++d) shape.push_back(all[static_cast<unsigned>(d)]);
    return shape;
}

Region region_of(const plain::Layout& l, const plain::Box& box) {
    Region region = Region::whole(dims(l, box.extent));
    for (int d = 0; d < l.rank; ++d) region.start[d] = box.start[static_cast<unsigned>(3 - l.rank + d)];
    return region;
}

const char* dtype_of(const plain::Layout& l) {
    return l.item == 2 ? "<u2" : l.rank == 3 ? "<f4" : "<i4";
}

tessera::ArrayOptions options_of(const plain::Layout& l) {
    return {.shape = dims(l, l.shape),
            .chunks = dims(l, l.chunks),
            .dtype = dtype_of(l),
            .fill_value = tessera::Value(-1),
            .codec = l.compressor == plain::Compressor::zstd ? "zstd:3" : "blosc:lz4:5:shuffle",
            .format = "v2"};
}

Array create(const fs::path& folder, const plain::Layout& l, Durability durability) {
    auto options = options_of(l);
    if (l.item == 2) options.fill_value = tessera::Value(65535);
    return Array::create(folder, options, {.durability = durability});
}

/// Fresh memory of small pages, as malloc gives it: for the plain loop that allocates its result.
class SmallPages {
public:
    explicit SmallPages(std::size_t size)
        : size_(size), p_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
        ::madvise(p_, size_, MADV_NOHUGEPAGE);
    }
    ~SmallPages() { ::munmap(p_, size_); }
    SmallPages(const SmallPages&) = delete;
    SmallPages& operator=(const SmallPages&) = delete;
    [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(p_); }

private:
    std::size_t size_;
    void* p_;
};

/// Removes a folder and makes it anew: on ext4, files made where as many were just deleted take far longer.
fs::path fresh(const fs::path& folder, const std::string& name) {
    static int count = 0;
    const fs::path mine = folder / fmt::format("{}-{}-{}", name, ::getpid(), count++);
    fs::create_directories(mine);
    return mine;
}

/// Where the rounds of one side write: a new folder each time, the one before removed.
class FreshFolder {
public:
    FreshFolder(fs::path parent, std::string name) : parent_(std::move(parent)), name_(std::move(name)) {}
    ~FreshFolder() { fs::remove_all(now_); }
    FreshFolder(const FreshFolder&) = delete;
    FreshFolder& operator=(const FreshFolder&) = delete;
    const fs::path& next() {
        if (!now_.empty()) fs::remove_all(now_);
        return now_ = fresh(parent_, name_);
    }

private:
    fs::path parent_;
    std::string name_;
    fs::path now_;
};

/// One workload's array: its elements in memory, and stored, in a folder that goes with this object.
class Stage {
public:
    Stage(const Bench& bench, std::string name, plain::Layout layout, void (*fill)(NDArray&))
        : bench_(bench),
          name_(std::move(name)),
          layout_(std::move(layout)),
          elements_(dtype_of(layout_), dims(layout_, layout_.shape)) {
        folder_ = fresh(bench.settings().folder, "tessera-bench");
        layout_.folder = (folder_ / "array").string();
        fill(elements_);
        Array array = create(layout_.folder, layout_, Durability::none);
        array.write(whole(), elements_.view());
        std::uint64_t stored = array.stored_size().bytes;
        std::cout << fmt::format("# {}: {} MiB, {:.2f}:1 stored, {}\n", name_, layout_.bytes() >> 20,
                                 static_cast<double>(layout_.bytes()) / static_cast<double>(stored),
                                 folder_.parent_path().string());
    }
    ~Stage() { fs::remove_all(folder_); }
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;

    [[nodiscard]] Region whole() const { return Region::whole(dims(layout_, layout_.shape)); }
    [[nodiscard]] Array open() const { return Array::open(layout_.folder); }

    void read_all() const {
        NDArray out(elements_.dtype(), elements_.shape());
        std::memset(out.bytes().data(), 1, out.bytes().size());
        const Array array = open();
        for (const int threads : bench_.thread_counts()) {
            bench_.compare(name_ + " read all", threads,
                           {[&] { plain::read_all(layout_, out.bytes().data(), threads); }},
                           {[&] { array.read_into(whole(), out, {.threads = threads}); },
                            [&] { std::memset(out.bytes().data(), 1, 4096); }});
            check(out);
        }
    }

    void read_fresh() const {
        const Array array = open();
        for (const int threads : bench_.thread_counts()) {
            std::optional<NDArray> out;
            std::optional<SmallPages> pages;
            bench_.compare(name_ + " read into new memory", threads,
                           {[&] {
                                pages.emplace(layout_.bytes());
                                plain::read_all(layout_, pages->data(), threads);
                            },
                            [&] {
                                out.reset();
                                pages.reset();
                            }},
                           {[&] { out = array.read(whole(), {.threads = threads}); },
                            [&] {
                                out.reset();
                                pages.reset();
                            }});
        }
    }

    void write_all(Durability durability, const char* what) const {
        FreshFolder theirs(folder_, "plain");
        FreshFolder ours(folder_, "ours");
        plain::Layout copy = layout_;
        std::optional<Array> array;
        for (const int threads : bench_.thread_counts()) {
            bench_.compare(fmt::format("{} write all{}", name_, what), threads,
                           {[&] { plain::write_all(copy, elements_.bytes().data(), threads); },
                            [&] { copy.folder = theirs.next().string(); }},
                           {[&] { array->write(whole(), elements_.view(), {.threads = threads}); },
                            [&] { array = create(ours.next() / "array", layout_, durability); }});
        }
    }

    void read_boxes(const std::string& what, int count, std::int64_t side) const {
        const Array array = open();
        for (const int callers : bench_.thread_counts()) {
            const auto each_caller = [&](const auto& read) {
                std::vector<std::thread> others;
                const auto call = [&](int caller) {
                    const auto boxes =
                        workloads::random_boxes(layout_, count, side, static_cast<std::uint64_t>(caller));
                    NDArray out(elements_.dtype(), dims(layout_, boxes[0].extent));
                    for (const auto& box : boxes) read(box, out);
                };
                for (int c = 1; c < callers; ++c) others.emplace_back(call, c);
                call(0);
                for (auto& t : others) t.join();
            };
            bench_.compare(fmt::format("{} {} one by one", name_, what), callers, {[&] {
                               each_caller([&](const plain::Box& b, NDArray& out) {
                                   plain::read_box(layout_, b, out.bytes().data());
                               });
                           }},
                           {[&] {
                               each_caller([&](const plain::Box& b, NDArray& out) {
                                   array.read_into(region_of(layout_, b), out, {.threads = 1});
                               });
                           }});
        }
    }

    /// The same in one call, beside the loop that reads them one after another.
    void read_batch(const std::string& what, int count, std::int64_t side) const {
        const Array array = open();
        const auto boxes = workloads::random_boxes(layout_, count, side, 0);
        const Shape extent = dims(layout_, boxes[0].extent);
        const auto size = static_cast<std::size_t>(tessera::byte_count(extent, elements_.dtype().size()));
        NDArray out("|u1", {static_cast<std::int64_t>(size) * count});
        std::vector<tessera::RegionRead> parts;
        for (std::size_t i = 0; i < boxes.size(); ++i) {
            parts.push_back({region_of(layout_, boxes[i]),
                             tessera::view_bytes(out.bytes().data() + i * size, elements_.dtype(), extent)});
        }
        bench_.compare(fmt::format("{} {} as one batch", name_, what), 1, {[&] {
                           for (const auto& box : boxes) plain::read_box(layout_, box, out.bytes().data());
                       }},
                       {[&] { array.read_many(parts, {.threads = 1}); }});
    }

private:
    void check(const NDArray& out) const {
        if (!bench_.wanted(name_ + " read all")) return;
        if (std::memcmp(out.bytes().data(), elements_.bytes().data(), out.bytes().size()) != 0) {
            throw std::runtime_error(name_ + ": what was read is not what was written");
        }
    }

    const Bench& bench_;
    std::string name_;
    plain::Layout layout_;
    NDArray elements_;
    fs::path folder_;
};

void run(const Bench& bench) {
    if (bench.wants_any("W1")) {
        const Stage w1(bench, "W1", workloads::w1(), workloads::fill_w1);
        w1.read_all();
        w1.read_fresh();
        w1.write_all(Durability::none, "");
        w1.write_all(Durability::commit, " durable");
        w1.read_boxes("elements", 10000, 1);
        w1.read_boxes("boxes", 1000, 16);
        w1.read_batch("elements", 10000, 1);
        w1.read_batch("boxes", 1000, 16);
    }
    if (bench.wants_any("W2")) {
        const Stage w2(bench, "W2", workloads::w2(), workloads::fill_w2);
        w2.read_all();
        w2.write_all(Durability::none, "");
    }
    if (bench.wants_any("W3")) {
        const Stage w3(bench, "W3", workloads::w3(), workloads::fill_w3);
        w3.read_all();
        w3.write_all(Durability::none, "");
        w3.write_all(Durability::commit, " durable");
    }
}

Settings parse(int argc, char** argv) {
    Settings s;
    for (int i = 1; i < argc; ++i) {
        const std::string option = argv[i];
        if (option == "--list") {
            s.list = true;
            continue;
        }
        if (i + 1 == argc) throw std::runtime_error(option + " needs a value");
        const std::string value = argv[++i];
        if (option == "--folder") {
            s.folder = value;
        } else if (option == "--only") {
            s.only = value;
        } else if (option == "--rounds") {
            s.rounds = std::stoi(value);
        } else if (option == "--threads") {
            s.threads = std::stoi(value);
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
