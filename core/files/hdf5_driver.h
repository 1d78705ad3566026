// libhdf5 over bytes that are no file of this machine. Private to core/files; compiled if libhdf5 is installed.
#pragma once

#include <memory>

#include <tessera/byte_io.h>

#include "hdf5_file.h"

namespace tessera {

/// Opens `bytes` for reading; the handle keeps them. Not good() if libhdf5 cannot. Under an Hdf5Lock.
[[nodiscard]] Hdf5Id open_hdf5_bytes(std::shared_ptr<const ByteSource> bytes);

/// Throws what reading such bytes threw in this thread, which libhdf5 cannot pass on, and forgets it.
void rethrow_hdf5();
void forget_hdf5_failure();

}  // namespace tessera
