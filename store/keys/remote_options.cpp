#include <tessera/remote_options.h>

#include <tessera/error_text.h>
#include <tessera/quantities.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>

#include "remote_activity.h"

namespace tessera {

namespace {

struct Chosen {
    std::mutex mutex;
    std::shared_ptr<const RemoteOptions> options;
};

Chosen& chosen_options() {
    static auto& chosen = *new Chosen;  // never destroyed: threads may end later than main()
    return chosen;
}

std::atomic<RemoteActivity (*)()>& activity_source() {
    static std::atomic<RemoteActivity (*)()> source = nullptr;
    return source;
}

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

}  // namespace

RemoteActivity remote_activity() {
    RemoteActivity (*const source)() = activity_source();
    return source == nullptr ? RemoteActivity() : source();
}

void set_activity_source(RemoteActivity (*source)()) {
    activity_source() = source;
}

int parse_absent_status(std::string_view what, std::string_view text) {
    if (text != "401" && text != "403") throw invalid_argument("{}: expected 401 or 403, found '{}'", what, text);
    return text == "401" ? 401 : 403;
}

std::shared_ptr<const RemoteOptions> remote_options() {
    {
        const std::lock_guard guard(chosen_options().mutex);
        if (chosen_options().options) return chosen_options().options;
    }
    auto options = std::make_shared<RemoteOptions>();
    options->cache = variable("TESSERA_CACHE");
    if (const std::string size = variable("TESSERA_CACHE_SIZE"); !size.empty()) {
        options->cache_bytes = parse_bytes("TESSERA_CACHE_SIZE", size);
    }
    if (const std::string age = variable("TESSERA_CACHE_AGE"); !age.empty()) {
        options->cache_age = parse_duration("TESSERA_CACHE_AGE", age);
    }
    const std::string offline = variable("TESSERA_OFFLINE");
    if (!offline.empty() && offline != "0" && offline != "1") {
        throw invalid_argument("TESSERA_OFFLINE: expected 0 or 1, found '{}'", offline);
    }
    options->offline = offline == "1";
    if (const std::string status = variable("TESSERA_ABSENT"); !status.empty()) {
        options->absent_status = parse_absent_status("TESSERA_ABSENT", status);
    }
    return options;
}

void set_remote_options(const RemoteOptions& options) {
    const std::lock_guard guard(chosen_options().mutex);
    chosen_options().options = std::make_shared<const RemoteOptions>(options);
}

}  // namespace tessera
