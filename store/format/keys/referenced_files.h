// The files that references lead to, in whatever form these are written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/byte_io.h>
#include <tessera/descriptor.h>
#include <tessera/references_within.h>

#include "read_only_store.h"

namespace tessera {

inline constexpr std::size_t longest_reference = 4096;  ///< of a key, or of a path

/// Where a value lies.
struct Reference {
    std::string text;        ///< the value itself, if there is no file
    std::int64_t file = -1;  ///< its number; -1: none
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    bool whole = false;  ///< all of the file
};

/// A store of references, of whatever form.
class StoreOfReferences : public ReadOnlyStore {
public:
    /// The files that they lead to; URLs as they are.
    [[nodiscard]] virtual std::vector<std::filesystem::path> files() const = 0;
};

/// Whether a part of a key has a name of Tessera's own. Such files are not taken from references, which may come from
/// an untrusted sender.
[[nodiscard]] bool has_own_name(std::string_view key);

/// The files that references name, by their numbers, and some of them open: many references lead to one file. Thread
/// rule: any.
///
/// A path that must stay below the folder of the references is opened with open_beneath(), from a descriptor of that
/// folder. So no link is followed, not even one that appears meanwhile. Only regular files are read.
class ReferencedFiles {
public:
    /// `document` lies in the folder to which paths are relative; `outside`: they may lead out of it.
    ReferencedFiles(const std::filesystem::path& document, bool outside, MayRead may_read);

    /// The number of a file. Throws unsupported for a path that is refused.
    std::int64_t number(const std::string& path);
    [[nodiscard]] std::vector<std::filesystem::path> all() const;
    /// The bytes of a value, which has this name in messages. Throws corrupt if they are not there.
    [[nodiscard]] std::unique_ptr<ByteSource> open(const Reference& at, const std::string& name) const;
    [[nodiscard]] std::uint64_t size_of(const Reference& at) const;

private:
    using Open = std::pair<std::int64_t, std::shared_ptr<const ByteSource>>;

    [[nodiscard]] std::shared_ptr<const ByteSource> open_file(std::int64_t number) const;
    [[nodiscard]] std::string checked(const std::string& path) const;
    [[nodiscard]] std::shared_ptr<const ByteSource> open_path(const std::string& path) const;

    bool outside_;
    MayRead may_read_;  ///< null: any
    std::filesystem::path folder_;
    std::filesystem::path real_folder_;
    Descriptor directory_;
    mutable std::mutex mutex_;  ///< of what follows
    std::map<std::string, std::int64_t, std::less<>> numbers_;
    std::vector<std::string> paths_;
    mutable std::vector<Open> open_;  ///< the last used first
};

}  // namespace tessera
