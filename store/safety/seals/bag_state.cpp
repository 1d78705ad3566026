#include "bag_state.h"

#include <fmt/format.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bag_lists.h"
#include "copy_bytes.h"
#include "file_list.h"
#include "keys.h"
#include "sealed_file_store.h"
#include "sums.h"

namespace tessera {

bool is_bag(const Listing& folder) {
    if (std::ranges::binary_search(folder.keys, bag_declaration)) return true;
    return std::ranges::binary_search(folder.prefixes, "data") &&
           std::ranges::any_of(folder.keys, [](std::string_view name) {
               return is_bag_tag_manifest(name) || (name.starts_with("manifest-") && name.ends_with(".txt"));
           });
}

namespace {

constexpr std::string_view payload_folder = "data/";

/// A file that is listed, or there, or both.
struct BagFile {
    std::string path;
    std::uint64_t size = 0;
    bool there = false;
    bool to_fetch = false;
    std::uint32_t listed = 0;  ///< bits of algorithms
    std::array<Sha256, bag_algorithms.size()> sums{};
};

class BagCheck {
public:
    BagCheck(const PlaceView& place, const BagLists& lists, PackageState& state)
        : place_(place),
          lists_(lists),
          state_(state),
          files_(files_below(place, Covered::all)),
          there_(files_),
          lines_(lists.lines) {
        file_ = there_.next();
        line_ = lines_.next();
    }

    void run(const IoOptions& io) {
        if (io.progress != nullptr) io.progress->start(static_cast<std::int64_t>(files_.bytes()), "checking the bag");
        in_batches<BagFile, char>([&](BagFile& file) { return next(file); }, io,
                                  [&](const BagFile& file, char& same) {
                                      same = is_same(file) ? 1 : 0;
                                      if (io.progress == nullptr) return;
                                      io.progress->advance(static_cast<std::int64_t>(file.size));
                                  },
                                  [&](const BagFile& file, char same) { note(file, same != 0); });
        for (const BagFile& file : perhaps_) {
            if (const std::string other = same_elsewhere(file); !other.empty()) {
                state_.notes.push_back({file.path, other});
            } else {
                state_.files.missing.push_back(file.path);
            }
        }
        std::ranges::sort(state_.files.missing);
        check_oxum();
    }

private:
    /// Counts only where nothing else is wrong: what is missing is missing from the payload's size, too.
    void check_oxum() {
        const SealState& files = state_.files;
        if (!state_.wrong.empty() || !files.changed.empty() || !files.missing.empty() || !files.added.empty()) return;
        if (!perhaps_.empty() || !lists_.oxum || *lists_.oxum == std::pair(payload_bytes_, payload_files_)) return;
        state_.wrong.push_back({std::string(bag_info_name),
                                fmt::format("says that the payload has {} bytes in {} files, and it has {} in {}",
                                            lists_.oxum->first, lists_.oxum->second, payload_bytes_, payload_files_)});
    }

    /// The next path of the lists and of what is there.
    bool next(BagFile& file) {
        if (file_ == nullptr && line_ == nullptr) return false;
        const bool there = line_ == nullptr || (file_ != nullptr && file_->path <= line_->path);
        file = {.path = there ? file_->path : line_->path, .there = there};
        if (there) {
            file.size = file_->size;
            if (file.path.starts_with(payload_folder)) {
                ++payload_files_;
                payload_bytes_ += file.size;
            }
            file_ = there_.next();
        } else {
            // Such as what lies behind a link, which no list of what is there has.
            file.there = is_there(place_.store, place_.key(file.path));
        }
        for (; line_ != nullptr && line_->path == file.path; line_ = lines_.next()) add_line(file);
        return true;
    }

    void add_line(BagFile& file) {
        if (line_->segment == fetch_line) {
            file.to_fetch = true;
            return;
        }
        Sha256& sum = file.sums[line_->segment];
        const std::uint32_t bit = 1U << line_->segment;
        if ((file.listed & bit) != 0) {
            const std::string_view name = bag_algorithms[line_->segment].name;
            const bool differs = sum != line_->sum;
            (differs || lists_.strict ? state_.wrong : state_.notes)
                .push_back({file.path, fmt::format("is listed twice in a manifest of {}{}", name,
                                                   differs ? ", with two sums" : ", with the same sum")});
        }
        file.listed |= bit;
        sum = line_->sum;
    }

    /// Reads the file once, whatever the number of its sums.
    [[nodiscard]] bool is_same(const BagFile& file) const {
        if (!file.there || file.listed == 0) return true;
        try {
            const auto source = place_.store.open(place_.key(file.path));
            if (source == nullptr) return false;
            std::vector<std::pair<std::size_t, AnyHasher>> hashers;
            for (std::size_t i = 0; i < bag_algorithms.size(); ++i) {
                if ((file.listed >> i & 1U) != 0) hashers.emplace_back(i, AnyHasher(bag_algorithms[i].type()));
            }
            for_each_piece(*source, [&](ByteSpan bytes) {
                for (auto& one : hashers) one.second.add(bytes.data(), bytes.size());
            });
            return std::ranges::all_of(hashers, [&](auto& one) {
                std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
                const auto digits = std::span(sum).first(bag_algorithms[one.first].bytes);
                one.second.finish(digits);
                return folded_sum(digits) == file.sums[one.first];
            });
        } catch (const Error& e) {
            if (e.code() == ErrorCode::cancelled) throw;
            return false;  // an unreadable file counts as changed
        }
    }

    void note(const BagFile& file, bool same) {
        SealState& files = state_.files;
        const bool payload = file.path.starts_with(payload_folder);
        if (file.to_fetch && file.listed == 0) {
            state_.wrong.push_back({file.path, "is in fetch.txt and in no manifest of the bag"});
        } else if (!file.there && file.to_fetch) {
            state_.wrong.push_back(
                {file.path, "is a hole in the bag: fetch.txt names where it is, and Tessera fetches nothing"});
        } else if (!file.there) {
            note_missing(file);
        } else if (file.listed == 0) {
            note_unlisted(file, payload);
        } else if (!same) {
            files.changed.push_back(file.path);
        } else {
            ++files.unchanged;
            if (!lists_.strict || !payload || file.listed == lists_.payload) return;
            state_.wrong.push_back({file.path, "is not in every manifest of the payload, as BagIt 1.0 demands"});
        }
    }

    void note_missing(const BagFile& file) {
        constexpr std::size_t most = 64;           // each costs a search
        if (file.path == bag_declaration) return;  // said before
        if (!lists_.strict && perhaps_.size() < most) {
            perhaps_.push_back(file);
        } else {
            state_.files.missing.push_back(file.path);
        }
    }

    /// No manifest has to list the tag files.
    void note_unlisted(const BagFile& file, bool payload) {
        if (payload) {
            state_.files.added.push_back(file.path);
        } else if (lists_.has_tags && !is_bag_tag_manifest(file.path) &&
                   !file.path.starts_with(std::string(bag_seal_folder) + '/')) {
            state_.notes.push_back({file.path, "is a tag file that no manifest lists"});
        }
    }

    /// What a missing file of an old bag is, if nothing is lost with it; else empty.
    [[nodiscard]] std::string same_elsewhere(const BagFile& file) const {
        const std::string_view path = file.path;
        const std::string_view folder = path.substr(0, path.rfind('/') + 1);
        const std::string_view name = path.substr(folder.size());
        if (name == ".DS_Store" || name == "Thumbs.db") return "is missing: a file of an operating system, no data";
        FileList::Reader lines(lists_.lines, lists_.lines.lower_bound(folder));
        while (const ListedFile* const other = lines.next()) {
            if (!other->path.starts_with(folder)) break;
            if (other->path == path || other->segment == fetch_line || (file.listed >> other->segment & 1U) == 0)
                continue;
            if (other->path.find('/', folder.size()) != std::string::npos) continue;
            if (other->sum != file.sums[other->segment] || !is_there(place_.store, place_.key(other->path))) continue;
            return fmt::format(
                "is there as {}, of the same content: some file systems tell names apart by neither case "
                "nor accents",
                other->path);
        }
        return {};
    }

    const PlaceView& place_;
    const BagLists& lists_;
    PackageState& state_;
    FileList files_;
    FileList::Reader there_;
    FileList::Reader lines_;
    const ListedFile* file_ = nullptr;
    const ListedFile* line_ = nullptr;
    std::uint64_t payload_bytes_ = 0, payload_files_ = 0;
    std::vector<BagFile> perhaps_;  ///< missing, of an old bag
};

}  // namespace

PackageState bag_state(const PlaceView& place, const IoOptions& io) {
    PackageState state;
    state.files.present = true;
    const BagLists lists = read_bag_lists(place, state);
    if (lists.readable) BagCheck(place, lists, state).run(io);
    return state;
}

}  // namespace tessera
