// Where libraries with a history of faults (libhdf5, libtiff) read files: in child processes, or in this one.
#pragma once

namespace tessera {

/// By default these libraries work in child processes, so that a damaged file is an Error and no crash. `trust` makes
/// them work in this process from now on: for files that a person trusts, and for debuggers. Any thread may call it.
void read_in_process(bool trust);
[[nodiscard]] bool reads_in_process();

}  // namespace tessera
