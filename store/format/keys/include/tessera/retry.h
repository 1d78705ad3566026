// The loop of what begins again because others changed what it works on meanwhile.
#pragma once

#include <tessera/error.h>

namespace tessera {

/// Calls body(begun) with what begin() returned. If that throws, and outdated(begun, error) says that others changed
/// it, calls pause(tries), without what was begun and its locks, and does both again, `most` times in all.
///
/// A file or folder is the same by its FileId, whatever is written into it; a value by its ValueStamp, or by the
/// version that a server states. Loops that no error ends do not use this: they take a lock until its file has its
/// name, name the version of bytes that they have read (tiles, serve), or ask until an answer comes (HTTP).
template <class Begin, class Body, class Outdated, class Pause>
auto retry(const Begin& begin, const Body& body, const Outdated& outdated, int most, const Pause& pause) {
    for (int tries = 1;; ++tries) {
        {
            auto begun = begin();
            try {
                return body(begun);
            } catch (const Error& e) {
                if (tries == most || !outdated(begun, e)) throw;
            }
        }
        pause(tries);
    }
}

/// The same at once and at most 100 times, if what was found was replaced by another.
template <class Find, class Look, class Replaced>
auto retry_when_replaced(const Find& find, const Look& look, const Replaced& replaced) {
    return retry(find, look, replaced, 100, [](int) {});
}

/// The same, if the error is that something is missing and was_replaced(found).
template <class Find, class Look>
auto retry_when_replaced(const Find& find, const Look& look) {
    return retry_when_replaced(find, look, [](const auto& found, const Error& e) {
        return e.code() == ErrorCode::not_found && was_replaced(found);
    });
}

}  // namespace tessera
