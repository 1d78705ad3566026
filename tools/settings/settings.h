// What a user prefers where nothing is said: one value for each name, from the environment, else from a file. For the
// program and the Python module alone; the library reads none of these.
//
//   name        variable             in the file
//   format      TESSERA_FORMAT       format = "v3"           format of new arrays that have none around or before them
//   codec       TESSERA_CODEC        codec = "blosc:zstd:5"  codecs of arrays that are made anew
//   durability  TESSERA_DURABILITY   durability = "none"
//   max_memory  TESSERA_MAX_MEMORY   max_memory = "1G"
//   threads     TESSERA_THREADS      threads = 4
//   color       TESSERA_COLOR        color = "never"         auto, always or never
//   cache       TESSERA_CACHE        cache = "/data/cache"   folder of what is read over the network
//   cache_size  TESSERA_CACHE_SIZE   cache_size = "10G"
//   cache_age   TESSERA_CACHE_AGE    cache_age = "6h"
//   offline     TESSERA_OFFLINE      offline = 1
//   absent      TESSERA_ABSENT       absent = 403
//
// The file is tessera.toml in $XDG_CONFIG_HOME, else in ~/.config, or what TESSERA_CONFIG names; if that is empty, none
// is read. It is TOML with nothing but these keys, texts, whole numbers and comments.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/error.h>
#include <tessera/remote_options.h>

namespace tessera {

struct Setting {
    std::string value;
    std::string from;  ///< "TESSERA_CODEC", or "/home/me/.config/tessera.toml: codec": for messages
};

/// All names, as above.
[[nodiscard]] std::span<const std::string_view> setting_names();
/// The setting of this name; nullopt if there is none. An empty variable is none, and the file is not asked then. Reads
/// a file once. Throws corrupt for a file that is not as above, and io if it cannot be read. Thread rule: any thread.
[[nodiscard]] std::optional<Setting> setting(std::string_view name);
/// Its value after check(value), whose error names where it is from; empty if there is none.
template <class Check>
[[nodiscard]] std::string checked_setting(std::string_view name, const Check& check) {
    auto found = setting(name);
    if (!found) return {};
    in_context([&] { return found->from; }, [&] { check(found->value); });
    return std::move(found->value);
}
/// What the settings say of places over the network. Throws invalid_argument, naming the setting, for another text.
[[nodiscard]] RemoteOptions remote_settings();
/// Its value, or `otherwise`.
[[nodiscard]] std::string setting_or(std::string_view name, std::string_view otherwise);

}  // namespace tessera
