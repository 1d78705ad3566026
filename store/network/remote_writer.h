// RemoteWriter: changes of values over HTTP that take effect once, whatever answers are lost, and that replace no
// version but the one that was read. Private to the store module.
//
// Each PUT carries an id, the same whenever it is sent, and the ids of the 48 writes before it. If an answer is lost or
// says that the condition failed, a HEAD decides: a list with our id means done; a list that reaches back to the
// version that was read, without our id, means that somebody else was faster; else nobody can tell.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "remote_service.h"

namespace tessera {

/// What a server holds of the conditions that a PUT states.
struct ServerConduct {
    enum class Holds : std::uint8_t {
        none,         ///< neither
        create_only,  ///< If-None-Match: a value is set only if there is none
        full,         ///< If-Match, too: a value is replaced only if it is still the one that was read
    };
    Holds holds = Holds::none;
    bool bare = false;  ///< ETags in If-Match stand without their quotation marks (Ceph)
};

/// Thread rule: every member may be called from several threads at once.
class RemoteWriter {
public:
    explicit RemoteWriter(std::shared_ptr<const RemoteService> service) : service_(std::move(service)) {}

    /// Found out with a scratch value below `.tessera/` of the store, which is removed; kept for a day in the user's
    /// cache folder. Throws io if nothing can be written there.
    [[nodiscard]] const ServerConduct& conduct() const;
    /// The same, as far as it is known without asking.
    [[nodiscard]] std::optional<ServerConduct> known_conduct() const;

    /// Sets a value if the present one is `expected`, which then becomes the new one; false if it is another, which
    /// `expected` becomes. Only for servers that hold the condition. Throws io, also if it cannot be told whether the
    /// value was set.
    [[nodiscard]] bool put_if(std::string_view key, std::shared_ptr<const Buffer> body, RemoteVersion& expected) const;
    /// A PUT without condition, that may be carried out more than once.
    [[nodiscard]] HttpTicket start_put(std::string_view key, std::shared_ptr<const Buffer> body) const;
    void finish(HttpTicket ticket, std::string_view key) const;

    [[nodiscard]] RemoteVersion version(std::string_view key) const { return look(key).first; }
    /// And for how many seconds it has been there, by the server's clock.
    [[nodiscard]] std::pair<RemoteVersion, std::int64_t> look(std::string_view key) const;

private:
    struct Doubted;

    [[nodiscard]] ServerConduct probe() const;
    [[nodiscard]] RemotePut conditional(std::shared_ptr<const Buffer> body, const RemoteVersion& expected,
                                        const std::string& mark) const;
    /// After the first write on a condition that replaced a value: repeats it, which the server has to refuse now.
    /// Throws io if it does not, whatever it promised when it was tested.
    void confirm(std::string_view key, const RemotePut& put, const RemoteVersion& now) const;

    std::shared_ptr<const RemoteService> service_;
    mutable std::mutex mutex_;
    mutable std::optional<ServerConduct> conduct_;
};

/// 128 bits drawn by lot, in hexadecimal digits.
[[nodiscard]] std::string random_id();

}  // namespace tessera
