// Whether files may lead to others that lie elsewhere.
#pragma once

namespace tessera {

/// Whether references and HDF5 files that are opened by path may lead out of their folder, for programs whose user
/// allowed it. Applies to the whole process, because any thread opens paths; initially false. Any thread may call it.
void allow_outside(bool allow);
[[nodiscard]] bool outside_allowed();

/// The same for symbolic links below the paths that are read (StoreOptions::follow_links).
void allow_links(bool allow);
[[nodiscard]] bool links_allowed();

}  // namespace tessera
