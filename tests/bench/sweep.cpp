// Many cases beside the plain loop, drawn with a fixed seed: shapes that chunks do not divide, memory that begins
// anywhere, every order, filter and selection. What is slow nowhere must be fast here too.
//
//   sweep [--folder DIR] [--rounds N] [--threads N] [--from N] [--to N]     cases N to N - 1 of the 300
//   sweep [--folder DIR] [--rounds N] [--threads N] CASE...                 these, as they are printed
//
// With --renames 1 the plain loop writes temporary files and renames them: what it costs to replace whole files.
//
// A case is ten words:
//
//   read 509x500x511 64x64x64 <f4 <f4 blosc:lz4:5:shuffle C 0 16 contiguous all
//
// operation (read, write, batch), shape, chunks, dtype, dtype of the memory, codecs, order in the chunk, shards (0:
// none), bytes from a page to where the memory begins, layout of the memory (contiguous; row: the rows of an array
// twice as long; fortran; reversed), selection. Prints a line for each: the medians of the ratios round by round, of
// time and of processor time, the milliseconds of both, number, case. The slowest: sort -rn.
#include <blosc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/copy_elements.h>
#include <tessera/tessera.h>

#include "cost.h"
#include "plain_grid.h"

namespace {

using namespace tessera;
namespace fs = std::filesystem;

struct Case {
    std::string operation;
    std::string shape;
    std::string chunks;
    std::string dtype;
    std::string memory;
    std::string codecs;
    std::string order;
    std::string shards;
    std::string offset;
    std::string layout;
    std::string selection;

    [[nodiscard]] std::string text() const {
        return fmt::format("{} {} {} {} {} {} {} {} {} {} {}", operation, shape, chunks, dtype, memory, codecs, order,
                           shards, offset, layout, selection);
    }
};

Case parse_case(const std::string& text) {
    std::istringstream in(text);
    Case c;
    if (!(in >> c.operation >> c.shape >> c.chunks >> c.dtype >> c.memory >> c.codecs >> c.order >> c.shards >>
          c.offset >> c.layout >> c.selection)) {
        throw std::runtime_error("no case: " + text);
    }
    return c;
}

Shape parse_shape(const std::string& text) {
    Shape shape;
    std::istringstream in(text);
    for (std::string n; std::getline(in, n, 'x');) shape.push_back(std::stoll(n));
    return shape;
}

// ---- drawing

/// SplitMix64.
class Dice {
public:
    explicit Dice(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {
        std::uint64_t x = state_ += 0x9e3779b97f4a7c15;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
        x = (x ^ x >> 27) * 0x94d049bb133111eb;
        return x ^ x >> 31;
    }
    /// 0 … n - 1.
    std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(n)); }
    bool chance(int percent) { return below(100) < percent; }
    template <class T>
    T one_of(std::initializer_list<T> all) {
        return all.begin()[below(static_cast<std::int64_t>(all.size()))];
    }

private:
    std::uint64_t state_;
};

Shape draw_chunks(Dice& dice, int rank) {
    const std::int64_t side = std::array<std::int64_t, 5>{262144, 512, 64, 16, 8}[static_cast<std::size_t>(rank - 1)];
    switch (rank < 2 ? 0 : dice.below(6)) {
        case 0: {  // thin in one dimension, long in the others
            Shape chunks = Shape::filled(rank, rank == 2 ? 4096 : rank == 3 ? 512 : rank == 1 ? side : 32);
            if (rank > 1) chunks[static_cast<int>(dice.below(rank))] = rank == 2 ? 16 : 1;
            return chunks;
        }
        case 1:
            return Shape::filled(rank, side / 2);
        case 2: {  // about round numbers, which are no powers of two
            return Shape::filled(rank, rank == 2 ? 1000 : rank == 3 ? 100 : rank == 4 ? 30 : 13);
        }
        case 3: {
            Shape chunks;
            for (int d = 0; d < rank; ++d) chunks.push_back(side / 2 + dice.below(side));
            return chunks;
        }
        default:
            return Shape::filled(rank, side);
    }
}

std::string text_of(const Shape& shape) {
    return fmt::format("{}", fmt::join(shape.begin(), shape.end(), "x"));
}

std::string draw_selection(Dice& dice, const Shape& shape) {
    const auto kind = dice.below(20);
    if (kind < 9) return "all";
    std::vector<std::string> axes;
    const std::int64_t step = dice.one_of<std::int64_t>({2, 3, 7});
    for (const std::int64_t n : shape) {
        const std::int64_t a = dice.below(std::max<std::int64_t>(n / 4, 1));
        const std::int64_t b = n - dice.below(std::max<std::int64_t>(n / 4, 1));
        if (kind < 13) {
            axes.push_back(n > 12 ? "3:-3" : ":");
        } else if (kind < 16) {
            axes.push_back(fmt::format("{}:{}", a, b));
        } else if (kind < 19) {
            axes.push_back(n > 4 * step ? fmt::format("::{}", step) : ":");
        } else {
            axes.push_back(dice.chance(50) ? "::-1" : ":");
        }
    }
    return fmt::format("{}", fmt::join(axes, ","));
}

Case draw(std::uint64_t number) {
    Dice dice(0x7e55e7a00000 + number);
    Case c;
    const int rank = static_cast<int>(1 + dice.below(5));
    const auto item = dice.one_of({1, 2, 2, 4, 4, 4, 8, 8, 16});
    const char* const kind = item == 1   ? "u1"
                             : item == 2 ? dice.one_of({"i2", "u2"})
                             : item == 4 ? dice.one_of({"f4", "f4", "i4"})
                             : item == 8 ? dice.one_of({"f8", "i8"})
                                         : "c16";
    const bool big = item > 1 && dice.chance(25);
    c.dtype = fmt::format("{}{}", item == 1 ? '|' : big ? '>' : '<', kind);
    c.memory = big && dice.chance(80) ? fmt::format("<{}", kind) : c.dtype;
    const Shape chunks = draw_chunks(dice, rank);
    // 48 to 96 MiB, more than stays in cache.
    Shape shape = chunks;
    const std::int64_t wanted = (std::int64_t{48} << 20) + dice.below(std::int64_t{48} << 20);
    while (byte_count(shape, item) < wanted) {
        int d = static_cast<int>(dice.below(rank));
        for (int e = 0; e < rank; ++e) {  // mostly the dimension that is shortest
            if (dice.chance(60) && shape[e] < shape[d]) d = e;
        }
        shape[d] += chunks[d];
    }
    if (dice.chance(67)) {
        for (int d = 0; d < rank; ++d) shape[d] -= chunks[d] > 1 && dice.chance(70) ? dice.below(chunks[d]) : 0;
    }
    c.shape = text_of(shape);
    c.chunks = text_of(chunks);
    c.codecs =
        dice.one_of({"blosc:lz4:5:shuffle", "blosc:lz4:5:shuffle", "blosc:lz4:5:shuffle", "blosc:lz4:5:bitshuffle",
                     "blosc:lz4:5:noshuffle", "blosc:zstd:5:shuffle", "none", "none", "zstd:1", "zstd:1"});
    if (item < 16 && dice.chance(15)) c.codecs = c.codecs == "none" ? "delta" : "delta," + c.codecs;
    const bool sharded = c.codecs.starts_with("blosc:lz4") && dice.chance(25);
    c.order = !sharded && rank > 1 && dice.chance(20) ? "F" : "C";
    Shape shards = chunks;
    for (int d = 0; d < rank; ++d) shards[d] *= rank > 3 ? 2 : 4;
    c.shards = sharded ? text_of(shards) : "0";
    c.offset = dice.one_of({"0", "4", "16", "16", "16", "32", "1", "8"});
    c.layout = dice.one_of({"contiguous", "contiguous", "contiguous", "contiguous", "contiguous", "row", "row",
                            rank > 1 ? "fortran" : "row", "reversed", "reversed"});
    c.operation = dice.one_of({"read", "read", "read", "read", "read", "read", "write", "write", "write", "batch"});
    c.selection = c.operation == "batch" ? "all" : draw_selection(dice, shape);
    return c;
}

// ---- elements and memory

/// One period of a sine, nearly: from integers by a polynomial, so that no library's sine changes the bytes.
double wave(std::int64_t i, double period) {
    double t = static_cast<double>(i) / period;
    t = 4 * (t - std::floor(t)) - 2;
    return t * (2 - std::abs(t));
}

/// A smooth field with noise, as the workloads of bench have it, within what each dtype holds.
template <class T>
void fill_as(NDArray& a, double amplitude, double step) {
    const Shape& shape = a.shape();
    std::vector<double> along;
    for (std::int64_t i = 0; i < shape.back(); ++i) along.push_back(wave(i, 97));
    auto* p = reinterpret_cast<T*>(a.bytes().data());
    const std::int64_t rows = a.count() / shape.back();
    const std::int64_t inner = shape.rank() > 1 ? shape[shape.rank() - 2] : 1;
    Dice dice(1);
    for (std::int64_t row = 0; row < rows; ++row) {
        const double u = wave(row / inner, 311);
        const double v = wave(row % inner, 173);
        for (const double w : along) {
            const double smooth = amplitude * (1 + (u * v + v * w + w * u) / 3);
            *p++ = static_cast<T>((std::round(smooth / step) + static_cast<double>(dice.below(4))) * step);
        }
    }
}

void fill(NDArray& a) {
    const DType& dtype = a.dtype();
    if (dtype.kind() == Kind::real) {
        return dtype.size() == 4 ? fill_as<float>(a, 100, 0.0625) : fill_as<double>(a, 100, 0.0625);
    }
    switch (dtype.size()) {
        case 1:
            return fill_as<std::uint8_t>(a, 80, 1);
        case 2:
            return fill_as<std::uint16_t>(a, 1000, 1);
        case 4:
            return fill_as<std::int32_t>(a, 100000, 1);
        case 8:
            return fill_as<std::int64_t>(a, 100000, 1);
        default:
            return fill_as<std::complex<double>>(a, 100, 0.0625);
    }
}

/// Memory for elements of a shape, laid out as a case says.
class Memory {
public:
    Memory(const Case& c, const Shape& shape) {
        const DType dtype = DType::parse(c.memory);
        const int rank = shape.rank();
        std::int64_t step = dtype.size();
        Strides strides = Strides::filled(rank, 0);
        for (int i = 0; i < rank; ++i) {
            const int d = c.layout == "fortran" ? i : rank - 1 - i;
            strides[d] = step;
            step *= shape[d] * (c.layout == "row" && i == 0 ? 2 : 1);
        }
        constexpr std::size_t page = 4096;
        buffer_.assign(static_cast<std::size_t>(step) + 2 * page, std::byte{1});
        auto* p = buffer_.data();
        p += page - reinterpret_cast<std::uintptr_t>(p) % page + std::stoul(c.offset);
        for (int d = 0; c.layout == "reversed" && d < rank; ++d) {
            p += (shape[d] - 1) * strides[d];
            strides[d] = -strides[d];
        }
        view_ = {p, dtype, shape, strides, nullptr};
    }
    [[nodiscard]] const MutableArrayView& view() const { return view_; }

private:
    std::vector<std::byte> buffer_;
    MutableArrayView view_;
};

plain::Dims dims(const Shape& shape) {
    return {shape.begin(), shape.end()};
}

std::vector<plain::Axis> axes_of(const Selection& selection, const MutableArrayView& v) {
    std::vector<plain::Axis> axes;
    for (int d = 0; d < selection.rank(); ++d) {
        const auto& a = selection.axes()[static_cast<std::size_t>(d)];
        axes.push_back({a.start, a.step, a.count, v.strides[d]});
    }
    return axes;
}

plain::Grid grid_of(const Case& c) {
    const DType dtype = DType::parse(c.dtype);
    plain::Grid g;
    g.shape = dims(parse_shape(c.shape));
    g.chunks = dims(parse_shape(c.chunks));
    g.item = static_cast<std::size_t>(dtype.size());
    g.kind = c.dtype[1];
    g.big_endian = c.dtype[0] == '>';
    g.fortran = c.order == "F";
    std::string codec = c.codecs;
    g.delta = codec.starts_with("delta");
    if (g.delta) codec = codec.size() > 5 ? codec.substr(6) : "none";
    g.shuffle = codec.ends_with("noshuffle")    ? BLOSC_NOSHUFFLE
                : codec.ends_with("bitshuffle") ? BLOSC_BITSHUFFLE
                                                : BLOSC_SHUFFLE;
    g.codec = codec.starts_with("zstd") ? "zstd" : codec.substr(0, codec.find(':', 6));
    return g;
}

// ---- measuring

struct Settings {
    fs::path folder = fs::temp_directory_path();
    int rounds = 5;
    int threads = 1;
    int renames = 0;  ///< of the plain loop
};

using Side = std::function<void()>;

class Sweep {
public:
    explicit Sweep(Settings settings) : settings_(std::move(settings)) {}

    void run(const Case& c, int number) const {
        const fs::path folder = settings_.folder / fmt::format("tessera-sweep-{}", ::getpid());
        fs::create_directories(folder);
        try {
            measure(c, number, folder);
        } catch (const std::exception& e) {
            fs::remove_all(folder);
            throw std::runtime_error(fmt::format("{}: {}", c.text(), e.what()));
        }
        fs::remove_all(folder);
    }

private:
    [[nodiscard]] static ArrayOptions options(const Case& c) {
        return {.shape = parse_shape(c.shape),
                .chunks = parse_shape(c.chunks),
                .dtype = c.dtype,
                .fill_value = Value(77),
                .shards = c.shards == "0" ? Shape() : parse_shape(c.shards),
                .codec = c.codecs,
                .format = c.shards == "0" ? "v2" : "v3",
                .order = c.order == "F" ? Order::F : Order::C};
    }

    void measure(const Case& c, int number, const fs::path& folder) const {
        const Shape shape = parse_shape(c.shape);
        const Selection whole = Selection::all(shape);
        const Selection selection = c.selection == "all" ? whole : Selection::parse(c.selection, shape);
        const int threads = settings_.threads;
        const IoOptions io{.threads = threads};
        const bool swap = c.memory[0] != c.dtype[0];
        plain::Grid grid = grid_of(c);
        grid.renames = settings_.renames != 0;
        grid.folder = folder / "plain";
        fs::create_directory(grid.folder);
        Array array = Array::create(folder / "array", options(c), {.durability = Durability::none});
        {
            NDArray all(DType::parse(c.memory), shape);
            fill(all);
            plain::write(grid, axes_of(whole, all.view()), all.bytes().data(), swap, 1);
            array.write(whole, all.view(), {.threads = 2});
        }
        if (c.operation == "batch") return batch(c, number, grid, array);
        const Memory ours(c, selection.full_shape());
        const auto axes = axes_of(selection, ours.view());
        if (c.operation == "read") {
            report(
                c, number, [&] { plain::read(grid, axes, ours.view().data, swap, threads); },
                [&] { array.read_into(selection, ours.view(), io); });
            Memory theirs(c, selection.full_shape());
            plain::read(grid, axes_of(selection, theirs.view()), theirs.view().data, swap, threads);
            array.read_into(selection, ours.view(), io);
            if (!elements_equal(ours.view(), theirs.view())) throw std::runtime_error("the two differ");
            return;
        }
        // Other elements, so that nothing is written that is there.
        plain::read(grid, axes, ours.view().data, swap, 1);
        report(
            c, number, [&] { plain::write(grid, axes, ours.view().data, swap, threads); },
            [&] { array.write(selection, ours.view(), io); });
        NDArray all = array.read(whole);
        NDArray theirs(all.dtype(), shape);
        plain::read(grid, axes_of(whole, theirs.view()), theirs.bytes().data(), false, 1);
        if (!elements_equal(all, theirs)) throw std::runtime_error("the two differ");
    }

    /// 400 boxes by one call, beside a plain loop that reads each chunk once for all of its boxes.
    void batch(const Case& c, int number, const plain::Grid& grid, const Array& array) const {
        const Shape shape = array.shape();
        constexpr std::int64_t count = 400;
        Shape extent;
        for (const auto n : array.chunks()) extent.push_back(std::max<std::int64_t>(n / 4, 1));
        for (int d = 0; d < shape.rank(); ++d) extent[d] = std::min(extent[d], shape[d]);
        Shape all = extent;
        all[0] *= count;
        const Memory memory(c, all);
        Dice dice(static_cast<std::uint64_t>(number));
        std::vector<RegionRead> parts;
        std::vector<std::vector<plain::Axis>> axes;
        for (std::int64_t i = 0; i < count; ++i) {
            Region box{Index::filled(shape.rank(), 0), extent};
            for (int d = 0; d < shape.rank(); ++d) box.start[d] = dice.below(shape[d] - extent[d] + 1);
            Region to{Index::filled(shape.rank(), 0), extent};
            to.start[0] = i * extent[0];
            parts.push_back({box, memory.view().part(to)});
            axes.push_back(axes_of(Selection(box, shape), parts.back().out));
        }
        const bool swap = c.memory[0] != c.dtype[0];
        std::vector<std::byte*> outs;
        for (const auto& part : parts) outs.push_back(part.out.data);
        report(
            c, number, [&] { plain::read_many(grid, axes, outs, swap); },
            [&] { array.read_many(parts, {.threads = 1}); });
        const NDArray ours = NDArray::copy_of(memory.view());
        plain::read_many(grid, axes, outs, swap);
        if (!elements_equal(ours, memory.view())) throw std::runtime_error("the two differ");
    }

    void report(const Case& c, int number, const Side& plain, const Side& ours) const {
        std::vector<double> wall[2];
        std::vector<double> ratio;
        std::vector<double> cpu_ratio;
        for (int round = 0; round <= settings_.rounds; ++round) {
            bench::Cost cost[2];
            for (int turn = 0; turn < 2; ++turn) {
                const int who = (round + turn) % 2;
                cost[who] = bench::cost_of(who == 0 ? plain : ours);
            }
            if (round == 0) continue;
            ratio.push_back(cost[1].wall / cost[0].wall);
            cpu_ratio.push_back(cost[1].cpu / cost[0].cpu);
            for (const int who : {0, 1}) wall[who].push_back(cost[who].wall);
        }
        std::cout << fmt::format("{:.3f}\t{:.3f}\t{:.2f}\t{:.2f}\t{}\t{}\n", median(ratio), median(cpu_ratio),
                                 1e3 * median(wall[1]), 1e3 * median(wall[0]), number, c.text())
                  << std::flush;
    }

    static double median(std::vector<double> v) {
        std::ranges::sort(v);
        return v[v.size() / 2];
    }

    Settings settings_;
};

int run(int argc, char** argv) {
    Settings s;
    int from = 0;
    int to = 300;
    std::vector<Case> given;
    const std::map<std::string, int*> numbers{{"--rounds", &s.rounds},
                                              {"--threads", &s.threads},
                                              {"--from", &from},
                                              {"--to", &to},
                                              {"--renames", &s.renames}};
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--list") {
            for (int n = from; n < to; ++n)
                std::cout << n << '\t' << draw(static_cast<std::uint64_t>(n)).text() << '\n';
            return 0;
        }
        if (!word.starts_with("--")) {
            given.push_back(parse_case(word));
            continue;
        }
        if (++i == argc) throw std::runtime_error(word + " needs a value");
        if (word == "--folder") {
            s.folder = argv[i];
        } else if (numbers.contains(word)) {
            *numbers.at(word) = std::stoi(argv[i]);
        } else {
            throw std::runtime_error("no option " + word);
        }
    }
    const Sweep sweep(s);
    for (const Case& c : given) sweep.run(c, 0);
    for (int n = from; given.empty() && n < to; ++n) sweep.run(draw(static_cast<std::uint64_t>(n)), n);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& e) {
        std::cerr << e.what() << '\n';
        return 2;
    }
}
