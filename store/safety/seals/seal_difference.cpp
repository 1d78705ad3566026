#include <tessera/seal_difference.h>

#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/error_text.h>
#include <tessera/own_names.h>
#include <tessera/seal.h>

#include <optional>

#include "parity_archive.h"
#include "seal_changes.h"
#include "sums.h"

namespace tessera {

namespace {

FileList require_sums_of(const PlaceView& place) {
    std::optional<FileList> sums = sealed_sums(place);
    if (!sums) {
        throw not_found("{}: it has no seal, whose sums could be compared", place.name())
            .advising(Action::seal, "makes one");
    }
    if (seal_broken(place)) {
        throw invalid_argument("{}: its seal was broken by writing, so that its sums are not those of the files",
                               place.name())
            .advising(Action::seal, "renews it");
    }
    return *std::move(sums);
}

Place sealed_place(const std::string& path) {
    const StoreOptions reading{.read_only = true};
    if (auto beside = place_beside(path, reading)) return *std::move(beside);
    return find_place(path, reading);
}

}  // namespace

SealDifference seal_difference(const PlaceView& a, const PlaceView& b) {
    SealDifference found;
    join_files(require_sums_of(a), require_sums_of(b), [&](const ListedFile* in_a, const ListedFile* in_b) {
        const std::string& path = in_a != nullptr ? in_a->path : in_b->path;
        if (path == readme_name) return;
        if (in_a == nullptr || in_b == nullptr) {
            (in_a != nullptr ? found.only_in_a : found.only_in_b).push_back(path);
        } else if (in_a->sum != in_b->sum) {
            found.different.push_back(path);
        } else {
            ++found.same;
        }
    });
    return found;
}

SealDifference seal_difference(const std::string& a, const std::string& b) {
    const Place one = sealed_place(a);
    const Place two = sealed_place(b);
    return seal_difference(one, two);
}

}  // namespace tessera
