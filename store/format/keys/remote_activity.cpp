#include "remote_activity.h"

#include <atomic>

namespace tessera {

namespace {

std::atomic<RemoteActivity (*)()>& activity_source() {
    static std::atomic<RemoteActivity (*)()> source = nullptr;
    return source;
}

}  // namespace

RemoteActivity remote_activity() {
    RemoteActivity (*const source)() = activity_source();
    return source == nullptr ? RemoteActivity() : source();
}

void set_activity_source(RemoteActivity (*source)()) {
    activity_source() = source;
}

}  // namespace tessera
