#include <tessera/block_source.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

namespace tessera {

namespace {

class BlockSource final : public ByteSource {
public:
    explicit BlockSource(std::unique_ptr<const ByteSource> file) : file_(std::move(file)) {}
    std::uint64_t size() const override { return file_->size(); }
    const std::string& name() const override { return file_->name(); }
    ByteSpan mapped() const override { return file_->mapped(); }
    std::uint64_t worth_skipping() const override { return file_->worth_skipping(); }

    void expect(std::span<const Extent> extents) const override {
        {
            const std::lock_guard lock(mutex_);
            expected_.assign(extents.begin(), extents.end());
            std::ranges::sort(expected_, {}, &Extent::begin);
        }
        file_->expect(extents);
    }

    void read(std::uint64_t offset, MutableByteSpan out) const override {
        const bool beyond = offset > size() || out.size() > size() - offset;
        if (beyond || out.size() >= block || is_expected(offset, out.size())) return file_->read(offset, out);
        while (!out.empty()) {
            const std::size_t done = read_start(offset, out);
            offset += done;
            out = out.subspan(done);
        }
    }

private:
    static constexpr std::uint64_t block = std::uint64_t{64} << 10;
    static constexpr std::size_t most_blocks = 32;
    struct Block {
        std::uint64_t begin = 0;
        Buffer bytes;
    };

    [[nodiscard]] bool is_expected(std::uint64_t offset, std::size_t length) const {
        const std::lock_guard lock(mutex_);
        const auto after = std::ranges::upper_bound(expected_, offset, {}, &Extent::begin);
        return after != expected_.begin() && offset + length <= std::prev(after)->end;
    }

    /// Fills what of `out` lies in one block; returns its size.
    std::size_t read_start(std::uint64_t offset, MutableByteSpan out) const {
        const std::uint64_t begin = offset / block * block;
        const std::lock_guard lock(mutex_);
        const auto found = std::ranges::find(blocks_, begin, &Block::begin);
        if (found != blocks_.end()) {
            blocks_.splice(blocks_.begin(), blocks_, found);
        } else {
            Block fresh{begin, read_range(*file_, begin, std::min(block, size() - begin))};
            if (blocks_.size() == most_blocks) blocks_.pop_back();
            blocks_.push_front(std::move(fresh));
        }
        const ByteSpan bytes = blocks_.front().bytes.span().subspan(static_cast<std::size_t>(offset - begin));
        const std::size_t n = std::min(bytes.size(), out.size());
        std::memcpy(out.data(), bytes.data(), n);
        return n;
    }

    std::unique_ptr<const ByteSource> file_;
    mutable std::mutex mutex_;
    mutable std::list<Block> blocks_;  ///< the one that was read last first
    mutable std::vector<Extent> expected_;
};

}  // namespace

std::unique_ptr<const ByteSource> block_source(std::unique_ptr<const ByteSource> file) {
    return std::make_unique<BlockSource>(std::move(file));
}

}  // namespace tessera
