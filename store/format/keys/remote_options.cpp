#include <tessera/remote_options.h>

#include <tessera/caller.h>
#include <tessera/error_text.h>

#include <mutex>
#include <string>
#include <utility>

namespace tessera {

namespace {

struct Chosen {
    std::mutex mutex;
    std::shared_ptr<const RemoteOptions> options = std::make_shared<const RemoteOptions>();
};

Chosen& chosen_options() {
    static auto& chosen = *new Chosen;  // never destroyed: threads may end later than main()
    return chosen;
}

}  // namespace

int parse_absent_status(std::string_view what, std::string_view text) {
    if (text != "401" && text != "403") throw invalid_argument("{}: expected 401 or 403, found '{}'", what, text);
    return text == "401" ? 401 : 403;
}

RemoteScope::RemoteScope(std::shared_ptr<const RemoteOptions> options)
    : options_(std::move(options)), outer_(std::exchange(Caller::current().remote, this)) {}

RemoteScope::~RemoteScope() {
    Caller::current().remote = outer_;
}

std::shared_ptr<const RemoteOptions> remote_options() {
    for (const Caller* caller = &Caller::current(); caller != nullptr; caller = caller->outer) {
        if (caller->remote != nullptr) return caller->remote->options();
    }
    const std::lock_guard guard(chosen_options().mutex);
    return chosen_options().options;
}

void set_remote_options(const RemoteOptions& options) {
    const std::lock_guard guard(chosen_options().mutex);
    chosen_options().options = std::make_shared<const RemoteOptions>(options);
}

}  // namespace tessera
