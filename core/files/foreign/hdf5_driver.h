// libhdf5 over bytes that are no file of this machine, and over files that are written.
#pragma once

#include <memory>

#include <tessera/byte_io.h>

#include "hdf5_file.h"

namespace tessera {

/// Opens `bytes` for reading; the handle keeps them. Not good() if libhdf5 cannot.
[[nodiscard]] Hdf5Id open_hdf5_bytes(std::shared_ptr<const ByteSource> bytes);

/// Opens a new file for writing, or with `adds` one that is there. What cannot be written is kept in memory, and
/// libhdf5 told that it was: libhdf5 cannot close a file whose writing fails, and crashes when the process ends.
/// `error` gets the errno of the first failure. Links to other files lead nowhere. Not good() if it cannot.
[[nodiscard]] Hdf5Id open_hdf5_output(const std::string& path, bool adds, hid_t creation, std::shared_ptr<int> error);

/// Rethrows the exception of such a read in this thread, and forgets it. libhdf5 cannot pass exceptions on.
void rethrow_hdf5();
void forget_hdf5_failure();

}  // namespace tessera
