// Reading and writing one array, whole and in parts.
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <tessera/copy_elements.h>
#include <tessera/tessera.h>

#include "bench.h"
#include "workloads.h"

namespace bench {

using namespace tessera;

namespace {

bool in_memory(const fs::path& folder) {
    struct statfs status {};
    return ::statfs(folder.c_str(), &status) == 0 && status.f_type == TMPFS_MAGIC;
}

/// Adds 1 to each number, or what is as good as that.
void change(const MutableArrayView& v) {
    const auto add = [&](auto one) {
        auto* const p = reinterpret_cast<decltype(one)*>(v.data);
        const std::int64_t count = v.count();
        for (std::int64_t i = 0; i < count; ++i) p[i] = static_cast<decltype(one)>(p[i] + one);
    };
    if (v.dtype.size() == 1) return add(std::uint8_t{1});
    if (v.dtype.size() == 8) return add(0.0625);
    add(0.0625F);
}

}  // namespace

Memory::Memory(std::size_t bytes, std::size_t offset) {
    constexpr std::size_t page = 4096;
    bytes_ = std::make_unique<std::byte[]>(bytes + 2 * page);
    std::memset(bytes_.get(), 1, bytes + 2 * page);
    begin_ = bytes_.get() + page - reinterpret_cast<std::uintptr_t>(bytes_.get()) % page + offset;
}

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

DType dtype_of(const plain::Layout& l) {
    const char* kind = l.item == 1 ? "u1" : l.item == 2 ? "u2" : l.item == 8 ? "f8" : l.rank == 3 ? "f4" : "i4";
    return DType::parse(fmt::format("{}{}", l.item == 1 ? '|' : l.big_endian ? '>' : '<', kind));
}

ArrayOptions options_of(const plain::Layout& l) {
    const bool none = l.compressor == plain::Compressor::none;
    return {.shape = dims(l, l.shape),
            .chunks = dims(l, l.chunks),
            .dtype = dtype_of(l),
            .fill_value = Value(l.item == 1   ? 255
                                : l.item == 2 ? 65535
                                              : -1),
            .codec = none                                      ? "none"
                     : l.compressor == plain::Compressor::zstd ? "zstd:3"
                                                               : "blosc:lz4:5:shuffle",
            .format = "v2"};
}

Stage::Stage(const Bench& bench, std::string name, const plain::Layout& layout, void (*fill)(NDArray&),
             const std::function<void(ArrayOptions&)>& options)
    : bench_(bench),
      name_(std::move(name)),
      layout_(layout),
      options_(options_of(layout)),
      elements_(options_.dtype.with_order(native_order), options_.shape),
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

void Stage::check(const ArrayView& out) const {
    if (!elements_equal(out, elements_)) throw std::runtime_error(name_ + ": what was read is not what was written");
}

plain::Box Stage::inner() const {
    plain::Box box{{}, layout_.shape};
    for (std::size_t d = static_cast<std::size_t>(3 - layout_.rank); d < 3; ++d) {
        box.start[d] = 3;
        box.extent[d] -= 6;
    }
    return box;
}

std::size_t Stage::bytes_of(const plain::Box& box) const {
    return static_cast<std::size_t>(box.extent[0] * box.extent[1] * box.extent[2]) * layout_.item;
}

MutableArrayView Stage::view(const Memory& memory, const plain::Box& box) const {
    return view_bytes(memory.data(), elements_.dtype(), dims(layout_, box.extent));
}

void Stage::read_all() const {
    if (!bench_.wanted(named("read all"))) return;
    const Array array = open();
    for (const std::size_t offset : bench_.memory_offsets()) {
        const Memory memory(layout_.bytes(), offset);
        const MutableArrayView out = view(memory, {{}, layout_.shape});
        for (const int threads : bench_.thread_counts()) {
            const auto request = [&] { return fmt::format("read_all\t{}\t{}", layout_.folder, threads); };
            bench_.compare({named("read all"), threads, offset},
                           {[&] { plain::read_all(layout_, memory.data(), threads); }},
                           {[&] { array.read_into(whole(), out, {.threads = threads}); },
                            [&] { std::memset(memory.data(), 1, 4096); }},
                           offset == 0 && peers() ? std::function<std::string()>(request) : nullptr);
            check(out);
        }
    }
}

void Stage::read_inner() const {
    if (!bench_.wanted(named("read 3:-3"))) return;
    const Array array = open();
    const plain::Box box = inner();
    for (const std::size_t offset : bench_.memory_offsets()) {
        const Memory memory(bytes_of(box), offset);
        const MutableArrayView out = view(memory, box);
        for (const int threads : bench_.thread_counts()) {
            bench_.compare({named("read 3:-3"), threads, offset},
                           {[&] { plain::read_box(layout_, box, memory.data(), threads); }},
                           {[&] { array.read_into(region_of(layout_, box), out, {.threads = threads}); },
                            [&] { std::memset(memory.data(), 1, 4096); }});
        }
    }
}

void Stage::with_copies(const std::function<void(const plain::Layout&, Array&)>& body) const {
    plain::Layout copy = layout_;
    copy.folder = (folder_ / "copy").string();
    fs::copy(layout_.folder, copy.folder);
    fs::copy(array_, folder_ / "ours", fs::copy_options::recursive);
    Array array = Array::open(folder_ / "ours", {.durability = Durability::none});
    body(copy, array);
    const NDArray ours = array.read();
    NDArray theirs(elements_.dtype(), elements_.shape());
    plain::read_all(copy, theirs.bytes().data(), 1);
    if (!elements_equal(ours, theirs)) throw std::runtime_error(name_ + ": the two arrays differ");
    fs::remove_all(copy.folder);
    fs::remove_all(folder_ / "ours");
}

void Stage::write_inner() const {
    if (!bench_.wanted(named("write 3:-3"))) return;
    const plain::Box box = inner();
    with_copies([&](const plain::Layout& copy, Array& array) {
        for (const std::size_t offset : bench_.memory_offsets()) {
            const Memory memory(bytes_of(box), offset);
            plain::read_box(layout_, box, memory.data());
            for (const int threads : bench_.thread_counts()) {
                bench_.compare({named("write 3:-3"), threads, offset},
                               {[&] { plain::write_box(copy, box, memory.data(), threads); }}, {[&] {
                                   array.write(region_of(layout_, box), view(memory, box), {.threads = threads});
                               }});
            }
        }
    });
}

void Stage::read_fresh() const {
    const Array array = open();
    for (const int threads : bench_.thread_counts()) {
        std::optional<NDArray> out;
        std::unique_ptr<std::byte[]> memory;
        const auto drop = [&] {
            out.reset();
            memory.reset();
        };
        const auto request = [&] {
            drop();
            return fmt::format("read_new\t{}\t{}", layout_.folder, threads);
        };
        bench_.compare({named("read into new memory"), threads},
                       {[&] {
                            memory = std::make_unique_for_overwrite<std::byte[]>(layout_.bytes());
                            plain::read_all(layout_, memory.get(), threads);
                        },
                        drop},
                       {[&] { out = array.read(whole(), {.threads = threads}); }, drop},
                       peers() ? std::function<std::string()>(request) : nullptr);
    }
}

void Stage::write_all(Durability durability, const std::string& what, bool renames) const {
    if (!bench_.wanted(named("write all" + what))) return;
    plain::Layout copy = layout_;
    copy.renames = renames;
    std::optional<Array> array;
    for (const std::size_t offset : bench_.memory_offsets()) {
        const Memory memory(layout_.bytes(), offset);
        std::memcpy(memory.data(), elements_.bytes().data(), layout_.bytes());
        const MutableArrayView in = view(memory, {{}, layout_.shape});
        for (const int threads : bench_.thread_counts()) {
            if ((renames || durability != Durability::none) && (threads > 1 || offset != offsets[0])) continue;
            FreshFolder theirs(folder_, "plain");
            FreshFolder ours(folder_, "ours");
            FreshFolder others(folder_, "peer");
            const auto request = [&] {
                return fmt::format("write_all\t{}\t{}\t{}", layout_.folder, threads, others.next().string());
            };
            const bool asked = offset == 0 && peers() && durability == Durability::none && !renames;
            bench_.compare({named("write all" + what), threads, offset},
                           {[&] { plain::write_all(copy, memory.data(), threads); },
                            [&] { copy.folder = theirs.next().string(); }},
                           {[&] { array->write(whole(), in, {.threads = threads}); },
                            [&] { array = create(ours.next() / "array", durability); }},
                           asked ? std::function<std::string()>(request) : nullptr);
        }
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
    for (const std::size_t offset : side == 1 ? std::vector<std::size_t>{16} : bench_.memory_offsets()) {
        for (const int callers : bench_.thread_counts()) {
            const auto each_caller = [&](const auto& read) {
                std::vector<std::thread> others;
                const auto call = [&](int caller) {
                    const auto boxes =
                        workloads::random_boxes(layout_, count, side, static_cast<std::uint64_t>(caller));
                    const Memory memory(bytes_of(boxes[0]), offset);
                    for (const auto& box : boxes) read(box, memory);
                };
                for (int c = 1; c < callers; ++c) others.emplace_back(call, c);
                call(0);
                for (auto& t : others) t.join();
            };
            const auto request = [&] {
                return fmt::format("read_boxes\t{}\t1\t{}\t{}", layout_.folder, boxes_file(count, side), side);
            };
            bench_.compare({named(what + " one by one"), callers, offset}, {[&] {
                               each_caller([&](const plain::Box& b, const Memory& memory) {
                                   plain::read_box(layout_, b, memory.data());
                               });
                           }},
                           {[&] {
                               each_caller([&](const plain::Box& b, const Memory& memory) {
                                   array.read_into(region_of(layout_, b), view(memory, b), {.threads = 1});
                               });
                           }},
                           callers == 1 && offset <= 16 && peers() ? std::function<std::string()>(request) : nullptr);
        }
    }
}

void Stage::read_items(const std::string& what, int count) const {
    const Array array = open();
    const auto boxes = workloads::random_boxes(layout_, count, 1, 0);
    const Memory memory(layout_.item, 16);
    bench_.compare({named(what + " beside blosc_getitem"), 1, 16}, {[&] {
                       for (const auto& b : boxes) plain::read_item(layout_, b.start, memory.data());
                   }},
                   {[&] {
                       for (const auto& b : boxes) {
                           array.read_into(region_of(layout_, b), view(memory, b), {.threads = 1});
                       }
                   }});
}

void Stage::read_batch(const std::string& what, int count, std::int64_t side) const {
    const Array array = open();
    const auto boxes = workloads::random_boxes(layout_, count, side, 0);
    const std::size_t size = bytes_of(boxes[0]);
    for (const std::size_t offset : bench_.memory_offsets()) {
        const Memory memory(size * boxes.size(), offset);
        std::vector<RegionRead> parts;
        for (std::size_t i = 0; i < boxes.size(); ++i) {
            parts.push_back({region_of(layout_, boxes[i]),
                             view_bytes(memory.data() + i * size, elements_.dtype(), dims(layout_, boxes[i].extent))});
        }
        const Side ours{[&] { array.read_many(parts, {.threads = 1}); }};
        bench_.compare({named(what + " as one batch"), 1, offset}, {[&] {
                           for (std::size_t i = 0; i < boxes.size(); ++i) {
                               plain::read_box(layout_, boxes[i], memory.data() + i * size);
                           }
                       }},
                       ours);
        bench_.compare({named(what + " as one batch beside a plain batch"), 1, offset},
                       {[&] { plain::read_many(layout_, boxes, memory.data()); }}, ours);
    }
}

void Stage::edit_boxes(const std::string& name, int count, std::int64_t side, std::uint64_t cache) const {
    if (!bench_.wanted(name)) return;
    const auto boxes = workloads::random_boxes(layout_, count, side, 0);
    const Memory memory(bytes_of(boxes[0]), 16);
    const MutableArrayView box = view(memory, boxes[0]);
    with_copies([&](const plain::Layout& copy, Array& array) {
        const auto edit = [&](auto& target) {
            for (const auto& b : boxes) {
                target.read_into(region_of(layout_, b), box, {.threads = 1});
                change(box);
                target.write(region_of(layout_, b), box, {.threads = 1});
            }
        };
        bench_.compare({name, 1, 16}, {[&] {
                           for (const auto& b : boxes) {
                               plain::read_box(copy, b, memory.data());
                               change(box);
                               plain::write_box(copy, b, memory.data());
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
    });
}

}  // namespace bench
