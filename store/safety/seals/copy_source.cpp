#include "copy_source.h"

#include <tessera/error_text.h>
#include <tessera/seal.h>
#include <tessera/store_kind.h>
#include <unistd.h>

#include <string>

#include "batch.h"

namespace tessera {

namespace fs = std::filesystem;

fs::path place_for_copy(const fs::path& path, const PlaceView& from) {
    const fs::path target = fs::absolute(path).lexically_normal();
    fs::path place = target.has_filename() ? target : target.parent_path();
    const std::string source = from.name();
    if (is_local(source) && (real_path(place).string() + '/').starts_with(real_path(source).string() + '/')) {
        throw invalid_argument("{}: lies in {}, which is copied; choose another place", path.string(), source);
    }
    return place;
}

LockedNodes lock_to_copy(const PlaceRef& place) {
    if (!place.store.read_only()) return lock_settled_nodes(place);
    for (const Node& node : all_nodes(place)) {
        if (node.kind != NodeKind::array || !batch_pending({place.store, node.path})) continue;
        throw invalid_argument(
            "{}: a batch of edits is pending, which a copy would lack, and nothing can be written there; finish it "
            "where that is possible, by any change or by `tessera repair`",
            place.store.name_of(node.path));
    }
    return {};
}

StoreOptions options_to_copy(const fs::path& path, StoreOptions options) {
    options.read_only = ::access(path.c_str(), W_OK) != 0;
    return options;
}

}  // namespace tessera
