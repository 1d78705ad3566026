// The table of all kinds of stores. A new one needs a file with a StoreKind, and here its name.
#include <tessera/store_kind.h>

#include <tessera/added_rows.h>
#include <tessera/error_text.h>
#include <tessera/percent.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "keys.h"

namespace tessera {

// Each is defined at the end of its own file.
extern const StoreKind folder_kind;
extern const StoreKind ocfl_kind;
extern const StoreKind n5_kind;
#ifdef TESSERA_REMOTE
extern const StoreKind http_kind;
extern const StoreKind https_kind;
extern const StoreKind s3_kind;
extern const StoreKind anonymous_s3_kind;
extern const StoreKind google_kind;
extern const StoreKind anonymous_google_kind;
#endif

namespace {

/// The library's own. Those of this machine first.
std::span<const StoreKind> own_kinds() {
    static const std::array table{
        folder_kind, ocfl_kind,  n5_kind,
#ifdef TESSERA_REMOTE
        http_kind,   https_kind, s3_kind, anonymous_s3_kind, google_kind, anonymous_google_kind,
#endif
    };
    return table;
}

/// What programs add, until the table is read for the first time.
AddedRows<StoreKind>& added_kinds() {
    static AddedRows<StoreKind> rows;
    return rows;
}

}  // namespace

std::span<const StoreKind> store_kinds() {
    static const std::vector<StoreKind> table = added_kinds().table(own_kinds());
    return table;
}

void add_store_kind(const StoreKind& kind) {
    const auto fits = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
    };
    const std::string_view scheme = kind.scheme;
    if (scheme.size() < 2 || scheme[0] < 'a' || scheme[0] > 'z' || !std::ranges::all_of(scheme, fits) || !kind.place) {
        throw invalid_argument(
            "adding kind of store \"{}\": it needs a place(), and a scheme of two or more of a-z, 0-9, '+', "
            "'-' and '.', the first a letter",
            scheme);
    }
    added_kinds().add(kind, own_kinds(), "kind of store", &StoreKind::scheme);
}

std::pair<std::string, std::string> split_store_path(const std::filesystem::path& path) {
    const std::string& text = path.native();
    const std::string_view whole = std::string_view(text).substr(0, text.find_last_not_of('/') + 1);
    const std::size_t slash = std::min(whole.find('/'), whole.size());
    std::string name(whole.substr(0, slash));
    if (name.find(':') == std::string::npos || name.ends_with(':')) {
        throw invalid_argument("{}: expected SCHEME:NAME, perhaps with /PREFIX after it", text);
    }
    std::string prefix(whole.substr(std::min(slash + 1, whole.size())));
    in_context([&] { return text; }, [&] { require_prefix(prefix); });
    return {std::move(name), std::move(prefix)};
}

namespace {

/// Throws for "s3://bucket/x" and the like: nobody means a folder named "s3:" by it.
void require_no_scheme(std::string_view path) {
    const std::size_t end = path.find("://");
    const auto fits = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '-' ||
               c == '.';
    };
    if (end == std::string_view::npos || end < 2 || !std::ranges::all_of(path.substr(0, end), fits) ||
        !(path[0] >= 'A' && path[0] <= 'z')) {
        return;
    }
    std::string known;
    for (const StoreKind& kind : store_kinds().subspan(1)) {
        known += (known.empty() ? ": " : ", ") + std::string(kind.scheme) + ":";
    }
    throw unsupported("{0}: no kind of store has the scheme {1}:; there {2}{3} (a folder of that name is ./{0})", path,
                      path.substr(0, end), known.empty() ? "are only files and folders of this machine" : "are",
                      known.empty() ? "" : known + ", and files and folders of this machine");
}

}  // namespace

const StoreKind& store_kind_of(const std::filesystem::path& path) {
    const std::string_view text = path.native();
    const auto table = store_kinds();
    const auto found = std::ranges::find_if(table.subspan(1), [&](const StoreKind& kind) {
        const std::size_t size = kind.scheme.size();
        return text.size() > size && text[size] == ':' && text.starts_with(kind.scheme);
    });
    if (found != table.end()) return *found;
    require_no_scheme(text);
    return table.front();
}

std::string path_below(std::string_view path, std::string_view name) {
    const bool url = store_kind_of(path).url;
    const std::size_t end = url ? std::min(path.find('?'), path.size()) : path.size();
    std::string below(path.substr(0, end));
    if (!below.ends_with('/')) below += '/';
    below += url ? percent_encoded(name, true) : name;
    return below.append(path.substr(end));
}

bool is_local(const std::filesystem::path& path) {
    return store_kind_of(path).scheme.empty();
}

void require_local(const std::filesystem::path& path, std::string_view what) {
    const StoreKind& kind = store_kind_of(path);
    if (kind.scheme.empty()) return;
    throw unsupported("{0} needs a folder on this machine; {1} is in {2} (a folder of that name is ./{1})", what,
                      path.string(), kind.about);
}

}  // namespace tessera
