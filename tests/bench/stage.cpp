// W1 to W4 and W7: reading and writing one array, whole and in parts.
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <tessera/tessera.h>

#include "bench.h"
#include "workloads.h"

namespace bench {

using namespace tessera;

namespace {

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

bool in_memory(const fs::path& folder) {
    struct statfs status {};
    return ::statfs(folder.c_str(), &status) == 0 && status.f_type == TMPFS_MAGIC;
}

}  // namespace

fs::path fresh(const fs::path& folder, const std::string& name) {
    static int count = 0;
    const fs::path mine = folder / fmt::format("{}-{}-{}", name, ::getpid(), count++);
    fs::create_directories(mine);
    return mine;
}

FreshFolder::FreshFolder(const fs::path& parent, std::string name)
    : parent_(fresh(parent, name)), name_(std::move(name)) {}

FreshFolder::~FreshFolder() {
    fs::remove_all(parent_);
    if (!in_memory(parent_.parent_path())) ::sync();  // what the next case measures is not the end of this one
}

const fs::path& FreshFolder::next() {
    if (!now_.empty() && in_memory(parent_)) fs::remove_all(now_);
    return now_ = fresh(parent_, name_);
}

Shape dims(const plain::Layout& l, const plain::Point& all) {
    Shape shape;
    for (int d = 3 - l.rank; d < 3; ++d) shape.push_back(all[static_cast<unsigned>(d)]);
    return shape;
}

Region region_of(const plain::Layout& l, const plain::Box& box) {
    return {dims(l, box.start), dims(l, box.extent)};
}

const char* dtype_of(const plain::Layout& l) {
    return l.item == 2 ? "<u2" : l.rank == 3 ? "<f4" : "<i4";
}

ArrayOptions options_of(const plain::Layout& l) {
    return {.shape = dims(l, l.shape),
            .chunks = dims(l, l.chunks),
            .dtype = dtype_of(l),
            .fill_value = Value(l.item == 2 ? 65535 : -1),
            .codec = l.compressor == plain::Compressor::zstd ? "zstd:3" : "blosc:lz4:5:shuffle",
            .format = "v2"};
}

Stage::Stage(const Bench& bench, std::string name, const plain::Layout& layout, void (*fill)(NDArray&),
             const std::function<void(ArrayOptions&)>& options)
    : bench_(bench),
      name_(std::move(name)),
      layout_(layout),
      options_(options_of(layout)),
      elements_(options_.dtype, options_.shape),
      folder_(fresh(bench.settings().folder, "tessera-bench")),
      array_(folder_ / "array") {
    fill(elements_);
    layout_.folder = array_.string();
    if (options) {
        layout_.folder = (folder_ / "plain").string();
        fs::create_directory(layout_.folder);
        plain::write_all(layout_, elements_.bytes().data(), 1);
        options(options_);
    }
    Array array = create(array_, Durability::none);
    array.write(whole(), elements_.view());
    std::cout << fmt::format("# {}: {} MiB, {:.2f}:1 stored, {}\n", name_, layout_.bytes() >> 20,
                             static_cast<double>(layout_.bytes()) / static_cast<double>(array.stored_size().bytes),
                             folder_.string());
}

Stage::~Stage() {
    fs::remove_all(folder_);
}

Region Stage::whole() const {
    return Region::whole(elements_.shape());
}

Array Stage::open() const {
    return Array::open(array_);
}

Array Stage::create(const fs::path& folder, Durability durability) const {
    return Array::create(folder, options_, {.durability = durability});
}

void Stage::check(const NDArray& out) const {
    if (std::memcmp(out.bytes().data(), elements_.bytes().data(), out.bytes().size()) != 0) {
        throw std::runtime_error(name_ + ": what was read is not what was written");
    }
}

void Stage::read_all() const {
    NDArray out(elements_.dtype(), elements_.shape());
    std::memset(out.bytes().data(), 1, out.bytes().size());
    const Array array = open();
    for (const int threads : bench_.thread_counts()) {
        bench_.compare(named("read all"), threads, {[&] { plain::read_all(layout_, out.bytes().data(), threads); }},
                       {[&] { array.read_into(whole(), out, {.threads = threads}); },
                        [&] { std::memset(out.bytes().data(), 1, 4096); }},
                       [&] { return fmt::format("read_all\t{}\t{}", layout_.folder, threads); });
        if (bench_.wanted(named("read all"))) check(out);
    }
}

void Stage::read_fresh() const {
    const Array array = open();
    for (const int threads : bench_.thread_counts()) {
        std::optional<NDArray> out;
        std::optional<SmallPages> pages;
        const auto drop = [&] {
            out.reset();
            pages.reset();
        };
        bench_.compare(named("read into new memory"), threads,
                       {[&] {
                            pages.emplace(layout_.bytes());
                            plain::read_all(layout_, pages->data(), threads);
                        },
                        drop},
                       {[&] { out = array.read(whole(), {.threads = threads}); }, drop}, [&] {
                           drop();
                           return fmt::format("read_new\t{}\t{}", layout_.folder, threads);
                       });
    }
}

void Stage::write_all(Durability durability, const std::string& what) const {
    plain::Layout copy = layout_;
    std::optional<Array> array;
    for (const int threads : bench_.thread_counts()) {
        if (!bench_.wanted(named("write all" + what))) continue;
        if (durability != Durability::none && threads > 1) continue;
        FreshFolder theirs(folder_, "plain");
        FreshFolder ours(folder_, "ours");
        FreshFolder peers(folder_, "peer");
        const auto request = [&] {
            return fmt::format("write_all\t{}\t{}\t{}", layout_.folder, threads, peers.next().string());
        };
        bench_.compare(named("write all" + what), threads,
                       {[&] { plain::write_all(copy, elements_.bytes().data(), threads); },
                        [&] { copy.folder = theirs.next().string(); }},
                       {[&] { array->write(whole(), elements_.view(), {.threads = threads}); },
                        [&] { array = create(ours.next() / "array", durability); }},
                       durability == Durability::none ? std::function<std::string()>(request) : nullptr);
    }
}

std::string Stage::boxes_file(int count, std::int64_t side) const {
    const fs::path path = folder_ / fmt::format("boxes-{}-{}", count, side);
    std::ofstream file(path, std::ios::binary);
    for (const auto& box : workloads::random_boxes(layout_, count, side, 0)) {
        const Index start = dims(layout_, box.start);
        file.write(reinterpret_cast<const char*>(start.begin()), static_cast<std::streamsize>(8 * start.size()));
    }
    return path.string();
}

void Stage::read_boxes(const std::string& what, int count, std::int64_t side) const {
    const Array array = open();
    for (const int callers : bench_.thread_counts()) {
        const auto each_caller = [&](const auto& read) {
            std::vector<std::thread> others;
            const auto call = [&](int caller) {
                const auto boxes = workloads::random_boxes(layout_, count, side, static_cast<std::uint64_t>(caller));
                NDArray out(elements_.dtype(), dims(layout_, boxes[0].extent));
                for (const auto& box : boxes) read(box, out);
            };
            for (int c = 1; c < callers; ++c) others.emplace_back(call, c);
            call(0);
            for (auto& t : others) t.join();
        };
        const auto request = [&] {
            return fmt::format("read_boxes\t{}\t1\t{}\t{}", layout_.folder, boxes_file(count, side), side);
        };
        bench_.compare(named(what + " one by one"), callers, {[&] {
                           each_caller([&](const plain::Box& b, NDArray& out) {
                               plain::read_box(layout_, b, out.bytes().data());
                           });
                       }},
                       {[&] {
                           each_caller([&](const plain::Box& b, NDArray& out) {
                               array.read_into(region_of(layout_, b), out, {.threads = 1});
                           });
                       }},
                       callers == 1 ? std::function<std::string()>(request) : nullptr);
    }
}

void Stage::read_batch(const std::string& what, int count, std::int64_t side) const {
    const Array array = open();
    const auto boxes = workloads::random_boxes(layout_, count, side, 0);
    const Shape extent = dims(layout_, boxes[0].extent);
    const auto size = static_cast<std::size_t>(byte_count(extent, elements_.dtype().size()));
    NDArray out("|u1", {static_cast<std::int64_t>(size) * count});
    std::vector<RegionRead> parts;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        parts.push_back(
            {region_of(layout_, boxes[i]), view_bytes(out.bytes().data() + i * size, elements_.dtype(), extent)});
    }
    bench_.compare(named(what + " as one batch"), 1, {[&] {
                       for (const auto& box : boxes) plain::read_box(layout_, box, out.bytes().data());
                   }},
                   {[&] { array.read_many(parts, {.threads = 1}); }});
}

void Stage::edit_boxes(const std::string& name, int count, std::int64_t side, std::uint64_t cache) const {
    if (!bench_.wanted(name)) return;
    plain::Layout copy = layout_;
    copy.folder = (folder_ / "plain").string();
    fs::copy(layout_.folder, copy.folder);
    fs::copy(array_, folder_ / "ours", fs::copy_options::recursive);
    Array array = Array::open(folder_ / "ours", {.durability = Durability::none});
    const auto boxes = workloads::random_boxes(layout_, count, side, 0);
    NDArray box(elements_.dtype(), dims(layout_, boxes[0].extent));
    const auto change = [&] {
        for (float& v : box.values<float>()) v += 0.0625F;
    };
    const auto edit = [&](auto& target) {
        for (const auto& b : boxes) {
            target.read_into(region_of(layout_, b), box, {.threads = 1});
            change();
            target.write(region_of(layout_, b), box, {.threads = 1});
        }
    };
    bench_.compare(name, 1, {[&] {
                       for (const auto& b : boxes) {
                           plain::read_box(copy, b, box.bytes().data());
                           change();
                           plain::write_box(copy, b, box.bytes().data());
                       }
                   }},
                   {[&] {
                       if (cache == 0) {
                           edit(array);
                       } else {
                           CachedArray cached(array, cache);
                           edit(cached);
                           cached.flush({.threads = 1});
                       }
                   }});
    const NDArray ours = array.read();
    NDArray theirs(elements_.dtype(), elements_.shape());
    plain::read_all(copy, theirs.bytes().data(), 1);
    if (std::memcmp(ours.bytes().data(), theirs.bytes().data(), ours.bytes().size()) != 0) {
        throw std::runtime_error(name + ": the two arrays differ");
    }
    fs::remove_all(copy.folder);
    fs::remove_all(folder_ / "ours");
}

}  // namespace bench
