// For a program without shared libraries: names of users and hosts come from files and DNS alone. For anything else
// that /etc/nsswitch.conf names, glibc loads the system's plug-ins, which belong to the system's own glibc, not to this
// one.
#include <nss.h>

namespace {

[[maybe_unused]] const bool configured = [] {
    ::__nss_configure_lookup("passwd", "files");
    ::__nss_configure_lookup("group", "files");
    ::__nss_configure_lookup("hosts", "files dns");
    return true;
}();

}  // namespace
