// The sources of an HDF5 dataset: other datasets, and other files.
#pragma once

#include "hdf5_file.h"

namespace tessera {

/// Throws unless everything that the dataset draws its elements from may be read and is there, to any depth: libhdf5
/// would take what it does not find for fill values. Elements lie in other files only if outside_allowed(), and never
/// if the dataset's own file is `elsewhere`, no file of this machine.
void require_hdf5_sources(hid_t dataset, bool elsewhere);
/// The dataset, opened again if it has elements in other files: their names begin in the folder of its file. Not done
/// for others, because libhdf5 takes the fill for a source that is open with another folder.
[[nodiscard]] Hdf5Id open_with_hdf5_folder(Hdf5Id dataset);

}  // namespace tessera
