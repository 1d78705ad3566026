// What a snapshot costs: of an array of as many chunks as asked for, made and put back; and the blocks of the disk that
// it takes.
//
//   bench_snapshots [CHUNKS] [ROUNDS]
#include <fmt/format.h>
#include <sys/stat.h>
#include <tessera/tessera.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <set>
#include <vector>

using namespace tessera;

namespace {

double seconds(const std::function<void()>& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Of all files below a folder, those with several names counted once.
std::uint64_t bytes_on_disk(const std::filesystem::path& folder) {
    std::set<ino_t> seen;
    std::uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        struct stat status {};
        if (!entry.is_regular_file() || ::stat(entry.path().c_str(), &status) != 0) continue;
        if (seen.insert(status.st_ino).second) bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
    }
    return bytes;
}

}  // namespace

int main(int argc, char** argv) {
    const std::int64_t chunks = argc > 1 ? std::atoi(argv[1]) : 10'000;
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 3;
    const auto folder = std::filesystem::temp_directory_path() / fmt::format("tessera-bench-snapshots-{}", ::getpid());
    const auto path = folder / "a.zarr";
    std::vector<std::int32_t> values(static_cast<std::size_t>(chunks) * 4096);
    std::mt19937 random(1);
    for (auto& v : values) v = static_cast<std::int32_t>(random());
    Array array = Array::create(path, {.shape = {chunks * 4096}, .chunks = {4096}, .dtype = DType::of<std::int32_t>()},
                                {.durability = Durability::none});
    array.write(Region::whole(array.shape()), view(values, array.shape()));
    ::sync();
    for (const Durability durability : {Durability::none, Durability::commit}) {
        for (int round = 0; round < rounds; ++round) {
            const std::uint64_t before = bytes_on_disk(folder);
            SnapshotInfo info;
            const double made = seconds([&] { info = create_snapshot(path, "one", {.durability = durability}); });
            const std::uint64_t after = bytes_on_disk(folder);
            const double restored = seconds([&] { restore_snapshot(path, "one", {.durability = durability}); });
            fmt::print(
                "{}: {} files ({} reflinks, {} links, {} copies) of {} MiB: made in {:.3f} s, {} KiB more on "
                "the disk; put back in {:.3f} s\n",
                durability == Durability::none ? "none" : "commit", info.files, info.reflinked, info.linked,
                info.copied, info.bytes >> 20U, made, (after - before) >> 10U, restored);
            remove_snapshot(path, "one");
        }
    }
    std::filesystem::remove_all(folder);
}
